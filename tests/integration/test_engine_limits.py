"""Definitions and instances at their limits: the largest allowed works, one more is refused."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import detent
from detent import for_each, loop, parallel, scope, sequence, step, wait
from detent.model import limits
from tests.acceptance.stage import finished, refused, state, virtual


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def nested(levels, make):
    block = step("bottom", "noop")
    for level in range(levels - 1):
        block = make(f"l{level}", block)
    return block


WRAPPERS = {
    "scope": scope,
    "parallel": parallel,
    "try": lambda name, block: detent.try_catch(name, do=block, catch=[]),
    "router": lambda name, block: detent.router(name, detent.route("true", block)),
    "loop": lambda name, block: loop(name, "true", block, max_iterations=1),
    "for_each": lambda name, block: for_each(name, "items", block),
}


@pytest.mark.req("SEQ-BLK-1", "SEQ-BLK-5")
@pytest.mark.parametrize("kind", WRAPPERS)
def test_blocks_nest_64_deep_and_not_deeper(engine, kind):
    deepest = sequence("deepest", nested(limits.BLOCK_DEPTH, WRAPPERS[kind]))
    shown = finished(engine, deepest, {"items": [1]})
    assert shown.summary.state == "completed"
    assert shown.outputs["bottom"] == {}
    assert engine.replay(shown.summary.id).identical
    with refused("definition.invalid") as refusal:
        sequence("deeper", nested(limits.BLOCK_DEPTH + 1, WRAPPERS[kind]))
    assert str(limits.BLOCK_DEPTH) in refusal.value.message


@pytest.mark.req("SEQ-BLK-2")
def test_a_parallel_may_have_256_branches_and_not_more(engine):
    def branches(count):
        return [[step(f"s{n}", act), wait(f"w{n}", f"{n % 7 + 1}m")] for n in range(count)]

    @detent.handler
    def act(ctx: detent.HandlerContext):
        return {ctx.node: 1}

    engine.register(act)
    shown = finished(engine, sequence("wide", parallel("p", *branches(limits.BRANCHES))))
    assert shown.summary.state == "completed"
    assert len(shown.data) == limits.BRANCHES
    assert engine.replay(shown.summary.id).identical
    with refused("definition.invalid"):
        sequence("wider", parallel("p", *branches(limits.BRANCHES + 1)))


@pytest.mark.req("SEQ-1")
def test_a_definition_may_have_5000_blocks_and_not_more(engine):
    def blocks(count):
        return [step(f"s{n}", "noop") for n in range(count)]

    began = time.monotonic()
    shown = finished(engine, sequence("long", *blocks(limits.BLOCKS_TOTAL)))
    assert shown.summary.state == "completed"
    assert len(shown.outputs) == limits.BLOCKS_TOTAL
    assert len(engine.inspect.tree(shown.summary.id).nodes) == limits.BLOCKS_TOTAL
    assert time.monotonic() - began < 20
    with refused("definition.invalid"):
        sequence("longer", *blocks(limits.BLOCKS_TOTAL + 1))


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_may_turn_as_often_as_the_limit_and_not_more():
    assert loop_of(limits.LOOP_ITERATIONS)
    for wrong in (0, -1, limits.LOOP_ITERATIONS + 1):
        with refused("definition.invalid"):
            loop_of(wrong)


def loop_of(most):
    return sequence("l", loop("l", "true", step("s", "noop"), max_iterations=most))


@pytest.mark.req("CORE-SCH-3")
def test_thousands_of_instances_stand_and_move_together(engine):
    made = engine.start_many(sequence("s", wait("w", "1h"), step("a", "noop")), range(3_000))
    engine.advance(0)
    engine.advance(3_600_000)
    assert {state(engine, id) for id in made[::100]} == {"completed"}
    assert engine.inspect.verify().valid


def test_opening_and_closing_leaves_nothing_behind(tmp_path):
    """No file descriptor and no thread, however an engine ends, also one that was refused."""

    def left():
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    path = tmp_path / "store.db"
    definition = sequence("s", step("a", "noop"))
    for settings in ({}, {"writer": "process"}):
        before = left()
        for _ in range(3):
            with detent.Engine(path, **settings) as engine:
                engine.wait_for(engine.start(definition))
                assert engine.inspect.verify().valid
                with refused("store.owned"):
                    detent.Engine(path)
        assert left() == before
