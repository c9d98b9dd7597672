"""kernel, verify and virtual time: what needs no waiting for anybody."""

from __future__ import annotations

import time

import detent
from bench.figure import Figure
from bench.load import HANDLERS, W1, place, timed_w1
from detent.kernel.program import compile_program
from detent.kernel.step import Facts, step
from detent.model.decision import Decision
from detent.model.inputs import Started, encode_input


def kernel(rounds: int = 200) -> list[Figure]:
    """Block moves per second of interpretation alone: decode, moves, entries, encode."""
    body = [detent.step(f"s{i}", "noop") for i in range(9)]
    definition = detent.sequence("k", detent.loop("l", "true", *body))
    program = compile_program(definition)
    facts = Facts(handlers={}, given={})
    start = encode_input(Started(instance="i", definition=definition.hash, data={"a": 1}))
    moves = 0
    began = time.perf_counter()
    for _ in range(rounds // 10):
        snapshot, inputs = None, [start]
        for turn in range(10):
            decision = step(program, snapshot, inputs, turn, facts)
            if not isinstance(decision, Decision):
                raise SystemExit("kernel: the step needs a fact")
            snapshot, inputs = decision.snapshot, []
            moves += decision.journal.count(b'"step.executed"')
    return [Figure("kernel", moves / (time.perf_counter() - began), "moves/s", budget=50_000)]


def verify() -> list[Figure]:
    """Journal rows verified per second, turn rows and snapshots included."""
    with place() as directory, detent.Engine(directory / "v.db", handlers=HANDLERS) as engine:
        timed_w1(engine, 20_000)
        began = time.perf_counter()
        report = engine.inspect.verify()
        taken = time.perf_counter() - began
    if not report.valid:
        raise SystemExit(f"verify: {report}")
    return [Figure("verify", report.rows / taken, "rows/s", budget=200_000)]


def virtual() -> list[Figure]:
    """A 90-day sequence of waits for one contact, and 30 days for 10,000 contacts."""
    days = [
        block
        for day in range(13)
        for block in (
            detent.step(f"send{day}", "work", params={"n": day}),
            detent.wait(f"wait{day}", duration="7d"),
        )
    ]
    ninety = detent.sequence("ninety", *days)
    month = detent.sequence("month", *days[:8])
    with detent.Engine(":memory:", clock="virtual", handlers=HANDLERS, seed="b") as engine:
        engine.start(ninety)
        engine.run_until_idle()
        began = time.perf_counter()
        engine.start(ninety)
        engine.run_until_idle()
        one = (time.perf_counter() - began) * 1000
    with detent.Engine(":memory:", clock="virtual", handlers=HANDLERS, seed="b") as engine:
        began = time.perf_counter()
        engine.start_many(month, [{"contact": i} for i in range(10_000)])
        engine.run_until_idle()
        many = time.perf_counter() - began
    return [
        Figure("virtual_90_days", one, "ms", budget=50, lower=True),
        Figure("virtual_10000_contacts", many, "s for 30 days", budget=30, lower=True),
    ]


__all__ = ["W1", "kernel", "verify", "virtual"]
