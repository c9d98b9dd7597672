"""w1, noisy, latency, bulk: what the whole engine does, through its public doors."""

from __future__ import annotations

import threading
import time

import detent
from bench.figure import Figure
from bench.load import (
    HANDLERS,
    ONE,
    STEPS,
    W1,
    W1_PLAIN,
    one_step_ms,
    percentile,
    place,
    start_all,
    timed_w1,
    wait_all,
)
from bench.rows import rows_per_step
from bench.where import share_by_part

INSTANCES = 10_000


def w1(floor: float, peer: float | None) -> list[Figure]:
    """Three-step instances with user handlers, default settings, both places of the writer."""
    figures = []
    for mode, budget in (("thread", 7_000), ("process", 10_000)):
        with (
            place() as directory,
            detent.Engine(directory / "w1.db", writer=mode, handlers=HANDLERS) as engine,
        ):
            timed_w1(engine, 1_000)  # warm
            value = max(timed_w1(engine, INSTANCES) for _ in range(2))
            single = timed_w1(engine, INSTANCES // 2, batch=False)
            sync = timed_w1(engine, INSTANCES // 2, W1_PLAIN)
        name = "w1" if mode == "thread" else "w1_process"
        extra = {"single_starts": round(single), "plain_functions": round(sync)}
        if mode == "thread":
            extra |= rows_per_step()
        figures.append(
            Figure(
                name,
                value,
                "steps/s",
                budget=budget,
                floor=floor,
                peer="dbos" if peer else None,
                peer_value=peer,
                extra=extra,
            )
        )
    share = figures[0].value / floor
    figures.append(
        Figure("w1_floor_ratio", share, "of floor", budget=0.5, extra=_where(share, 0.5))
    )
    return figures


_quiet = threading.Event()


@detent.handler
def burn(ms: int) -> dict[str, int]:
    """Keep one thread busy in Python for so long."""
    until = time.perf_counter() + ms / 1000
    rounds = 0
    while time.perf_counter() < until and not _quiet.is_set():
        rounds += sum(range(100))
    return {"rounds": rounds}


def noisy() -> list[Figure]:
    """w1 beside one plain function that never lets go of the interpreter."""
    figures = []
    loud = detent.sequence("loud", detent.step("burn", burn, params={"ms": 60_000}))
    for mode, budget in (("thread", 0.4), ("process", 0.9)):
        with (
            place() as directory,
            detent.Engine(
                directory / "noisy.db", writer=mode, handlers=[*HANDLERS, burn]
            ) as engine,
        ):
            quiet = timed_w1(engine, INSTANCES // 2)
            noise = engine.start(loud)
            share = timed_w1(engine, INSTANCES // 2) / quiet
            p50 = percentile(one_step_ms(engine, 50), 0.5)
            _quiet.set()
            engine.wait_for(noise)
            _quiet.clear()
        figures += [
            Figure(f"noisy_{mode}", share, "of w1", budget=budget, extra=_where(share, budget)),
            Figure(f"noisy_{mode}_p50", p50, "ms", budget=15, lower=True),
        ]
    return figures


def _where(share: float, budget: float) -> dict[str, object]:
    """Where the time of a step goes, for a row that misses its budget."""
    return {} if share >= budget else {"profile": share_by_part()}


def latency() -> list[Figure]:
    """Start to completed of a one-step instance on an idle engine."""
    with place() as directory, detent.Engine(directory / "l.db", handlers=HANDLERS) as engine:
        one_step_ms(engine, 50)
        taken = one_step_ms(engine, 500)
    return [
        Figure("latency_p50", percentile(taken, 0.5), "ms", budget=5, lower=True),
        Figure("latency_p99", percentile(taken, 0.99), "ms", budget=25, lower=True),
    ]


def bulk() -> list[Figure]:
    """Starts until durable, in process, while the engine runs what was started."""
    with place() as directory, detent.Engine(directory / "b.db", handlers=HANDLERS) as engine:
        began = time.perf_counter()
        ids: list[str] = []
        for _ in range(4):
            ids += engine.start_many(ONE, [{"i": i} for i in range(5_000)])
        many = len(ids) / (time.perf_counter() - began)
        wait_all(engine, ids)
        began = time.perf_counter()
        start_all(engine, ONE, 5_000)
        single = 5_000 / (time.perf_counter() - began)
    return [
        Figure("bulk", many, "starts/s", budget=5_000),
        Figure("bulk_single", single, "starts/s", budget=None),
    ]


__all__ = ["STEPS", "W1", "bulk", "latency", "noisy", "w1"]
