"""sleepers, recovery, history: cost must not depend on who waits, nor on what has been."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import detent
from bench.figure import Figure
from bench.load import HANDLERS, ONE, place
from detent.ports.store import Page

SLEEPERS = 100_000
DUE = 10_000
SPREAD = 10  # ticks of 100 ms within the second

_called: dict[str, float] = {}


@detent.handler
async def note(ctx: detent.HandlerContext) -> None:
    """Note when an instance moved on."""
    _called[ctx.instance_id] = time.time()


@detent.handler
async def hang() -> None:
    """A call that is under way when the process dies."""
    await asyncio.sleep(3_600)


def sleepers(count: int = SLEEPERS) -> list[Figure]:
    """Many waiting instances: their size, the idle cost, and how late a wave of due ones is."""
    long = detent.sequence("long", detent.wait("w", duration="30d"))
    with (
        place() as directory,
        detent.Engine(directory / "s.db", handlers=[*HANDLERS, note]) as engine,
    ):
        for _ in range(count // 10_000):
            last = engine.start_many(long, [{"i": i} for i in range(10_000)])[-1]
        engine.wait_for(last, "waiting", timeout=120)
        size = _bytes_each(directory / "s.db")
        time.sleep(2)
        before = time.process_time()
        time.sleep(5)
        idle = (time.process_time() - before) / 5
        late = _wave(engine, directory / "s.db")
    return [
        Figure("sleepers_bytes", size, "bytes each in the snapshot", budget=1_024, lower=True),
        Figure("sleepers_idle", idle, "of one core", budget=0.01, lower=True),
        Figure("sleepers_late_p99", late, "ms late", budget=350, lower=True),
    ]


def _bytes_each(path: Path) -> float:
    from detent.store.sqlite import open_store

    store = open_store(path, create=None, read_only=True)
    rows = store.instances(Page(limit=1_000))
    loaded = store.load([row.id for row in rows])
    store.close()
    return sum(len(each.body or b"") for each in loaded.values()) / len(loaded)


def _wave(engine: detent.Engine, path: Path) -> float:
    """p99 of how late 10,000 instances due within one second move, in milliseconds."""
    from detent.store.sqlite import open_store

    began, ids = time.monotonic(), []
    for tick in range(SPREAD):
        lead_ms = 12_000 + 100 * tick - round((time.monotonic() - began) * 1000)
        wave = detent.sequence(
            f"wave{tick}", detent.wait("w", duration=max(100, lead_ms)), detent.step("n", note)
        )
        ids += engine.start_many(wave, [{} for _ in range(DUE // SPREAD)])
    engine.wait_for(ids[-1], "waiting", timeout=30)
    store = open_store(path, create=None, read_only=True)
    meta = store.meta()
    due = {each: store.instance(each) for each in ids}
    store.close()
    for instance in ids:
        engine.wait_for(instance, timeout=60)
    late = []
    for instance, row in due.items():
        if row is not None and row.due is not None:
            due_ms = meta.epoch_ms + row.due * meta.resolution_ms
            late.append(_called[instance] * 1000 - due_ms)
    late.sort()
    return late[int(len(late) * 0.99)]


def recovery(open_instances: int = SLEEPERS, in_flight: int = DUE) -> list[Figure]:
    """Kill a process with many open instances and calls in flight; time the first turn after."""
    with place() as directory:
        path = directory / "r.db"
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.standing",
                str(path),
                str(open_instances),
                str(in_flight),
            ],
            stdout=subprocess.PIPE,
        )
        if child.stdout is None or child.stdout.readline().strip() != b"ready":
            raise SystemExit("recovery: the child did not get ready")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        began = time.perf_counter()
        with detent.Engine(path, handlers=[*HANDLERS, hang], max_in_flight=20_000) as engine:
            engine.wait_for(engine.start(ONE))
            first = time.perf_counter() - began
    return [Figure("recovery", first, "s to the first turn", budget=2, lower=True)]


def _prepare(path: str, open_instances: int, in_flight: int) -> None:
    """The process to be killed: fill a store and say when it is ready."""
    long = detent.sequence("long", detent.wait("w", duration="30d"))
    stuck = detent.sequence("stuck", detent.step("h", hang))
    engine = detent.Engine(path, handlers=[*HANDLERS, hang], max_in_flight=20_000)
    for _ in range((open_instances - in_flight) // 10_000):
        last = engine.start_many(long, [{"i": i} for i in range(10_000)])[-1]
    engine.wait_for(last, "waiting", timeout=120)
    last = engine.start_many(stuck, [{} for _ in range(in_flight)])[-1]
    engine.wait_for(last, "running", timeout=120)
    time.sleep(1)
    print("ready", flush=True)
    time.sleep(600)


def history(iterations: int = 10_000) -> list[Figure]:
    """A step after 10,000 steps of one instance, against its first ones in the same run."""
    stamps: list[float] = []

    @detent.handler
    async def stamp() -> None:
        stamps.append(time.perf_counter())

    forever = detent.sequence(
        "forever",
        detent.loop("l", "true", detent.step("s", stamp), max_iterations=iterations),
    )
    with place() as directory, detent.Engine(directory / "h.db", handlers=[stamp]) as engine:
        engine.wait_for(engine.start(forever), timeout=300)
    gaps = [b - a for a, b in pairwise(stamps)]
    early, late = sorted(gaps[500:1_500])[500], sorted(gaps[-1_000:])[500]
    return [
        Figure(
            "history",
            late / early,
            "of a fresh step",
            budget=1.2,
            lower=True,
            extra={"fresh_us": round(early * 1e6), "old_us": round(late * 1e6)},
        )
    ]


if __name__ == "__main__":
    _prepare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
