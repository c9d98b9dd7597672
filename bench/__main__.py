"""Measure the figures, print a table, and write one JSON line per figure to bench/results."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from bench import databases, floor, gated, pure, serving, standing, throughput, workers
from bench.figure import Figure, machine

RESULTS = Path(__file__).parent / "results"


def _peer() -> float | None:
    try:
        from bench import peer_dbos

        return peer_dbos.measure(directory=floor.disk_directory())
    except ImportError:
        print("dbos is not installed: no peer figure (make bench installs it)", file=sys.stderr)
        return None


def _w1() -> list[Figure]:
    base = floor.measure()
    figures = throughput.w1(base, _peer())
    return [Figure("floor", base, "steps/s"), *figures]


GROUPS: dict[str, Callable[[], list[Figure]]] = {
    "w1": _w1,
    "noisy": throughput.noisy,
    "kernel": pure.kernel,
    "latency": throughput.latency,
    "bulk": throughput.bulk,
    "history": standing.history,
    "verify": pure.verify,
    "virtual": pure.virtual,
    "sleepers": standing.sleepers,
    "recovery": standing.recovery,
    "limits": gated.limits,
    "w1_limited": gated.w1_limited,
    "w1_postgres": databases.w1_postgres,
    "serve": serving.serve,
    "idle_workers": workers.idle_workers,
    "signal_to_effect": workers.signal_to_effect,
}


def main() -> None:
    """Run the groups named, or all."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"some of: {', '.join(GROUPS)}")
    parser.add_argument("--dry", action="store_true", help="do not write bench/results")
    given = parser.parse_args()
    unknown = [name for name in given.group if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {', '.join(unknown)}; choose from {', '.join(GROUPS)}")
    here = machine()
    print(here)
    lines = []
    for name in given.group or GROUPS:
        for figure in GROUPS[name]():
            lines.append(figure.line(here))
            print(_row(figure), flush=True)
    if not given.dry:
        _write(lines, here)


def _row(figure: Figure) -> str:
    mark = {True: "ok", False: "MISSED", None: ""}[figure.met]
    budget = "" if figure.budget is None else f"{'<=' if figure.lower else '>='} {figure.budget:g}"
    more = figure.line("")
    notes = [
        f"{key} {value}"
        for key, value in more.items()
        if key not in ("figure", "value", "unit", "budget", "met", "machine")
    ]
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"
    return f"{figure.name:24} {value:>12} {figure.unit:28} {budget:>10} {mark:7} {', '.join(notes)}"


def _write(lines: list[dict[str, object]], here: str) -> None:
    """Replace the lines of the figures just measured; others measured here before are kept."""
    RESULTS.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", here.split(",", maxsplit=1)[0].lower()).strip("-")
    path = RESULTS / f"{slug}.jsonl"
    kept: dict[str, object] = {}
    if path.exists():
        for text in path.read_text().splitlines():
            row = json.loads(text)
            kept[row["figure"]] = row
    kept |= {str(row["figure"]): row for row in lines}
    path.write_text("".join(json.dumps(row) + "\n" for row in kept.values()))
    print(f"written to {path.relative_to(Path.cwd())}" if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    main()
