"""The workloads shared by the figures: handlers, sequences, and waiting for many instances."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import detent
from bench.floor import disk_directory


@detent.handler
async def work(n: int) -> dict[str, int]:
    """The user handler of w1: async, and nothing in it."""
    return {"n": n}


@detent.handler
def plain(n: int) -> dict[str, int]:
    """The same as a plain function, on the pool."""
    return {"n": n}


@detent.handler
async def stamp() -> dict[str, float]:
    """When it was called."""
    return {"at": time.time()}


HANDLERS = [work, plain]
W1 = detent.sequence("w1", *[detent.step(f"s{i}", work, params={"n": i}) for i in range(3)])
W1_PLAIN = detent.sequence(
    "w1-plain", *[detent.step(f"s{i}", plain, params={"n": i}) for i in range(3)]
)
ONE = detent.sequence("one", detent.step("s0", work, params={"n": 1}))
STEPS = 3


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A directory on a real disk, removed afterwards."""
    directory = Path(tempfile.mkdtemp(dir=disk_directory(), prefix="detent-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def start_all(
    engine: detent.Engine, definition: detent.Definition, count: int, callers: int = 16
) -> list[str]:
    """Start instances one by one from several callers, as programs do."""

    def some(numbers: Sequence[int]) -> list[str]:
        return [engine.start(definition, {"i": i}) for i in numbers]

    chunks = [range(offset, count, callers) for offset in range(callers)]
    with ThreadPoolExecutor(callers) as pool:
        return [instance for ids in pool.map(some, chunks) for instance in ids]


def wait_all(engine: detent.Engine, ids: Sequence[str]) -> None:
    """Wait until every instance has ended."""
    for instance in ids:
        engine.wait_for(instance, timeout=120)


def timed_w1(
    engine: detent.Engine, count: int, definition: detent.Definition = W1, *, batch: bool = True
) -> float:
    """Steps per second from the first start to the last end."""
    began = time.perf_counter()
    if batch:
        ids: list[str] = []
        for offset in range(0, count, 500):
            ids += engine.start_many(definition, [{"i": offset + i} for i in range(500)])
    else:
        ids = start_all(engine, definition, count)
    wait_all(engine, ids)
    return STEPS * count / (time.perf_counter() - began)


def one_step_ms(engine: detent.Engine, count: int) -> list[float]:
    """Sorted milliseconds from start to completed of one-step instances, one after another."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        engine.wait_for(engine.start(ONE))
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)


def percentile(ordered: Sequence[float], share: float) -> float:
    """A percentile of sorted values."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
