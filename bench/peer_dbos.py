"""The w1 workload on DBOS with SQLite: the nearest peer that also embeds in one process.

Three trivial steps per workflow, all workflows started at once in one process, each waited for. The
peer gets the fastest settings found among serial calls, threads, asyncio and its queue: the WAL
journal, which is not its default, with SQLite's own default of synchronous=FULL as for us, and two
executor threads, because more of them only wait for each other at the one write lock. No telemetry.

`measure` runs it in a process of its own, so its threads and globals disturb no other figure.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 3
THREADS = 2
WARM_UP = 10
TIMEOUT_S = 300


def measure(workflows: int = 60, directory: Path | None = None) -> float:
    """Run that many workflows in a fresh process and return steps per second."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="detent-peer-") as place:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", "--dir", place]
        done = subprocess.run(
            [*command, "--workflows", str(workflows)],
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    return float(json.loads(done.stdout.splitlines()[-1])["value"])


def run_here(workflows: int, directory: Path) -> float:
    """Run the workflows in this process, which must end afterwards, and return steps per second."""
    from dbos import DBOS  # the child alone needs the package

    path = directory / "peer.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    DBOS(
        config={
            "name": "detent-peer",
            "system_database_url": f"sqlite:///{path}",
            "log_level": "ERROR",
            "enable_otlp": False,
            "max_executor_threads": THREADS,
        }
    )

    @DBOS.step()
    def add_one(number: int) -> int:
        return number + 1

    @DBOS.workflow()
    def three_steps(number: int) -> int:
        for _ in range(STEPS):
            number = add_one(number)
        return number

    def run(count: int) -> None:
        handles = [DBOS.start_workflow(three_steps, number) for number in range(count)]
        results = [handle.get_result() for handle in handles]
        if results != [number + STEPS for number in range(count)]:
            sys.exit("the peer returned wrong results, so its figure means nothing")

    DBOS.launch()
    run(WARM_UP)
    began = time.perf_counter()
    run(workflows)
    return workflows * STEPS / (time.perf_counter() - began)


def main() -> None:
    """Measure once and print one JSON object."""
    parser = argparse.ArgumentParser(description="Measure w1 on DBOS with SQLite.")
    parser.add_argument("--workflows", type=int, default=60)
    parser.add_argument("--dir", type=Path, default=None, help="a directory on a real disk")
    parser.add_argument("--child", action="store_true", help="run in this process")
    arguments = parser.parse_args()
    run = run_here if arguments.child else measure
    value = run(arguments.workflows, arguments.dir)
    figure = {
        "figure": "w1",
        "peer": "dbos",
        "value": round(value, 1),
        "unit": "steps/s",
        "workflows": arguments.workflows,
        "threads": THREADS,
    }
    print(json.dumps(figure), flush=True)
    if arguments.child:
        os._exit(0)  # nothing is left to save, and its background threads would hold the process


if __name__ == "__main__":
    main()
