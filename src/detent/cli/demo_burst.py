"""A burst: many small instances at once on the wall clock, to give an idea of the speed.

It is short and runs beside whatever else the machine does, so one round says little: the median of
several is shown with their range, and `make bench` is what measures.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from msgspec import Struct

from detent.bootstrap.engine import Engine
from detent.bootstrap.stores import open_reader
from detent.cli.tally import count_steps
from detent.definition import sequence, step
from detent.handlers import handler
from detent.ports.store import Store

ROUNDS = 3
INSTANCES = 1_000
STEPS = 3
_LONGEST_S = 3.0


class Burst(Struct, frozen=True, kw_only=True):
    """How the rounds went; steps are those the journal holds, not those that were asked for."""

    instances: int
    steps: int
    completed: int
    rounds: list[int]  # steps per second of each
    median: int


@handler("work")
async def work(n: int) -> dict[str, int]:
    """As little as a handler can do."""
    return {"n": n}


BURST = sequence("burst", *(step(f"s{n}", work, params={"n": n}) for n in range(STEPS)))


def run_burst(path: Path) -> Burst:
    """Run the rounds one after the other on one store."""
    with Engine(path, handlers=[work]) as engine:
        reader = open_reader(path)
        try:
            rates: list[int] = []
            steps = pos = 0
            for number in range(1, ROUNDS + 1):
                began = time.perf_counter()
                engine.start_many(BURST, ({"n": n} for n in range(INSTANCES)))
                _wait(reader, number * INSTANCES, began + _LONGEST_S)
                seconds = time.perf_counter() - began
                made, pos = count_steps(reader, pos)
                rates.append(round(made / seconds))
                steps += made
            completed = reader.count_states("").get("completed", 0)
        finally:
            reader.close()
    return Burst(
        instances=ROUNDS * INSTANCES,
        steps=steps,
        completed=completed,
        rounds=rates,
        median=round(statistics.median(rates)),
    )


def _wait(reader: Store, completed: int, until: float) -> None:
    """Wait for so many completed instances; those that failed do not count as work done."""
    while reader.count_states("").get("completed", 0) < completed:
        if time.perf_counter() > until:
            return
        time.sleep(0.01)
