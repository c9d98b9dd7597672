"""limits, w1_limited: what a tenant's gate costs, with a long line before it and with none."""

from __future__ import annotations

import time
from statistics import median

import detent
from bench.figure import Figure
from bench.load import HANDLERS, place, timed_w1, work
from bench.where import share_by_part
from detent.model.limits import BATCH_STARTS

WAITING = 100_000
FEW = 1_000
MOST = 100  # permits of a window in `limits`
WINDOW_MS = 10_000
SPAN_MS = WINDOW_MS + 100  # a grant counts one tick more than the window
REPEATS = 5
INSTANCES = 5_000
PAIRS = 3
BUDGET = 0.6

LINE = detent.sequence(
    "line", detent.step("s0", work, params={"n": 1}, rate_limit_key="mailbox:{{data.box}}")
)
W1_LIMITED = detent.sequence(
    "w1-limited",
    *[
        detent.step(f"s{i}", work, params={"n": i}, rate_limit_key="provider", pool="boxes")
        for i in range(3)
    ],
)


def limits() -> list[Figure]:
    """Drain a line of 100,000: a release costs the same whether 100,000 wait or 1,000.

    Two tenants have the same limit, half a window apart, one with a long line and one with a short
    one. They are timed in turn, so that whatever else the machine does falls on both.
    """
    with (
        place() as directory,
        detent.Engine(directory / "l.db", clock="virtual", handlers=HANDLERS, seed="l") as engine,
    ):
        _line_up(engine, "many", WAITING)
        began = engine.now()
        pairs: list[tuple[float, float]] = []
        for _ in range(REPEATS):
            engine.advance(SPAN_MS // 2)
            _line_up(engine, "few", FEW)
            pairs += [(_released_in(engine), _released_in(engine)) for _ in range(FEW // MOST)]
            engine.advance(SPAN_MS // 2)
        engine.advance((WAITING // MOST - REPEATS * (FEW // MOST + 1)) * SPAN_MS)
        windows = (engine.now() - began).total_seconds() * 1000 / WINDOW_MS
        left = engine.limits.show("mailbox:a", tenant="many").waiting or 0
    many, few = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    extra = {"release_us": round(many * 1e6), "release_us_few": round(few * 1e6)}
    unit = f"of a release with {FEW:,} waiting"
    rate = (WAITING - left) / MOST / windows
    return [
        Figure("limits", many / few, unit, budget=1.2, lower=True, extra=extra),
        Figure("limits_rate", rate, "of the limit's rate", budget=0.98),
    ]


def _line_up(engine: detent.Engine, tenant: str, count: int) -> None:
    """Let that many stand in line, the first window of them through."""
    engine.limits.set("mailbox:a", max=MOST, window=WINDOW_MS, tenant=tenant)
    for offset in range(0, count + MOST, BATCH_STARTS):
        some = min(BATCH_STARTS, count + MOST - offset)
        engine.start_many(LINE, [{"box": "a"}] * some, tenant=tenant)
    engine.advance(0)


def _released_in(engine: detent.Engine) -> float:
    """Let half a window pass, in which one of the lines moves; the seconds for each that did."""
    began = time.perf_counter()
    engine.advance(SPAN_MS // 2)
    return (time.perf_counter() - began) / MOST


def w1_limited() -> list[Figure]:
    """w1 with a rate limit and a pool on each step, none of which ever defers, beside plain w1."""
    with place() as directory, detent.Engine(directory / "w.db", handlers=HANDLERS) as engine:
        _open_wide(engine)
        timed_w1(engine, 1_000)  # warm
        timed_w1(engine, 1_000, W1_LIMITED)
        pairs = [
            (timed_w1(engine, INSTANCES), timed_w1(engine, INSTANCES, W1_LIMITED))
            for _ in range(PAIRS)
        ]
    share = median(limited / plain for plain, limited in pairs)
    extra: dict[str, object] = {"steps_per_s": round(max(pair[1] for pair in pairs))}
    if share < BUDGET:
        extra["profile"] = share_by_part(definition=W1_LIMITED, prepare=_open_wide)
    return [Figure("w1_limited", share, "of w1", budget=BUDGET, extra=extra)]


def _open_wide(engine: detent.Engine) -> None:
    """A limit and a pool that nobody ever waits for."""
    engine.limits.set("provider", max=1_000_000, window="1s")
    engine.pools.create("boxes")
    engine.pools.add("boxes", "a", weight=2)
    engine.pools.add("boxes", "b")
