"""Recovery: nothing in memory matters, leases are respected, poison is contained (CORE-REC)."""

from __future__ import annotations

import threading

import pytest

import detent
from detent import parallel, sequence, step, sub_sequence, wait
from detent.runtime.settings import WriterSettings
from detent.testing import Calls
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    actions,
    digest,
    opened,
    refused,
    rows,
    state,
    virtual,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def story(act):
    retry = detent.retry(3, initial_backoff="1h")
    return sequence(
        "story",
        step("a", act, retry=retry),
        parallel("p", wait("w", "1d", signal="go"), [sub_sequence("c", "child")]),
        step("b", act),
    )


def told(path, restart_at=()):
    """Run the story by hours; the engine is closed and opened again before some of them."""
    calls = Calls()
    act = calls.handler("act", detent.Failed("no"), {"n": 1})
    engine = virtual(path, [act])
    engine.deploy(sequence("child", wait("cw", "5h")))
    made = [engine.start(story(act), {"n": n}, key=f"k{n}") for n in range(4)]
    for hour in range(30):
        if hour in restart_at:
            engine.close()
            engine = virtual(path, [act])
        if hour == 8:
            engine.signal(made[0], "go", {"x": 1})
        if hour == 9:
            engine.pause(made[1])
        if hour == 26:
            engine.resume(made[1])
        if hour == 10:
            engine.cancel(made[2])
        engine.advance(HOUR_MS)
    shown = [engine.inspect.show(id) for id in made]
    histories = [
        [(entry.action, entry.node, entry.tick) for entry in engine.inspect.audit(id)]
        for id in made
    ]
    assert engine.inspect.verify().valid
    assert all(engine.replay(id).identical for id in made)
    engine.close()
    return [(s.summary.state, s.data, s.error) for s in shown], histories, calls.count("act")


@pytest.mark.req("CORE-REC-1")
def test_an_engine_opened_again_every_hour_gives_the_same_as_one_that_never_closed(tmp_path):
    whole = told(tmp_path / "whole.db")
    cut = told(tmp_path / "cut.db", restart_at=range(30))
    assert whole == cut


@pytest.mark.req("CORE-REC-2", "SEQ-REC-1", "CORE-EFF-4")
def test_a_call_whose_dispatcher_s_lease_is_valid_is_left_alone_and_doubted_when_it_is_not(path):
    """The mark is another process's; its age does not matter, its lease does."""
    calls = Calls()
    act = calls.handler("act", {"n": 1}, on_doubt="once")
    with virtual(path, [act]) as engine:
        instance = engine.start(sequence("s", wait("w", signal="go"), step("a", act)))
    with virtual(path) as engine:
        engine.signal(instance, "go")
        (effect,) = engine.inspect.effects(instance)
        now_ms = int(engine.now().timestamp() * 1000)
    with opened(path, write=True) as connection:
        connection.execute("INSERT INTO flight VALUES (?, 'other', 1, 0)", (effect.key,))
        lease_ms = now_ms + 10 * 60_000
        connection.execute("INSERT INTO owner VALUES ('other', 'far', 1, ?, '')", (lease_ms,))
    turns = WriterSettings(tick_interval_ms=0, stale_instance_threshold_secs=0)
    with virtual(path, [act], turns=turns) as engine:
        engine.advance(9 * 60_000)
        assert state(engine, instance) == "running"
        assert engine.inspect.doubts() == []
        engine.advance(61_000)  # the lease is over, the margin is not
        assert engine.inspect.doubts() == []
        engine.advance(2_000)
        engine.advance(0)
        assert [doubt.state for doubt in engine.inspect.doubts()] == ["indeterminate"]
        assert state(engine, instance) == "waiting"
    assert calls.made == ()


@pytest.mark.req("CORE-REC-2", "SEQ-REC-1")
def test_a_call_that_takes_long_under_a_live_owner_is_not_made_again(path):
    begun, release, called = threading.Event(), threading.Event(), []

    @detent.handler
    def slow():
        called.append(1)
        begun.set()
        release.wait(10)

    turns = WriterSettings(stale_instance_threshold_secs=0, tick_interval_ms=5)
    with detent.Engine(path, handlers=[slow], turns=turns, resolution_ms=5) as engine:
        instance = engine.start(sequence("s", step("a", slow)))
        assert begun.wait(5)
        for _ in range(20):
            engine.wait_for(engine.start(sequence("t", wait("w", "10ms"))))
        assert state(engine, instance) == "running"
        told_of = engine.explain(instance)
        assert told_of.effects[0].handler == "slow"
        release.set()
        assert engine.wait_for(instance) == "completed"
    assert called == [1]


@pytest.mark.req("CORE-REC-3")
def test_one_instance_that_cannot_be_stepped_is_quarantined_and_the_rest_of_its_turn_goes_on(path):
    definition = sequence("s", wait("w", "1h"), step("a", "noop"))
    with virtual(path) as engine:
        made = [engine.start(definition, {"n": n}) for n in range(10)]
    broken = made[4]
    with opened(path, write=True) as connection:
        (n, body) = connection.execute(
            "SELECT n, body FROM snapshot WHERE n = (SELECT n FROM instance WHERE id = ?)",
            (broken,),
        ).fetchone()
        poisoned = body.replace(b'"b":"w"', b'"b":"no such block"')
        assert poisoned != body
        connection.execute("UPDATE snapshot SET body = ? WHERE n = ?", (poisoned, n))
    with virtual(path) as engine:
        engine.advance(HOUR_MS)
        assert [state(engine, id) for id in made if id != broken] == ["completed"] * 9
        shown = engine.inspect.show(broken)
        assert shown.summary.state == "paused"
        assert shown.paused_reason == "consistency"
        assert shown.error["code"] == "invariant.broken"
        assert actions(engine, broken)[-1] == "run.paused"
        assert "consistency" in engine.inspect.explain(broken).summary
        engine.advance(DAY_MS)
        assert state(engine, broken) == "paused"


@pytest.mark.req("CORE-REC-3")
def test_a_definition_that_is_lost_quarantines_its_instances_and_no_others(path):
    lost, kept = sequence("lost", wait("w", "1h")), sequence("kept", wait("w", "1h"))
    with virtual(path) as engine:
        one, two = engine.start(lost), engine.start(kept)
    with opened(path, write=True) as connection:
        connection.execute("DELETE FROM definition WHERE name = 'lost'")
    with virtual(path) as engine:
        engine.advance(HOUR_MS)
        assert state(engine, two) == "completed"
        (listed,) = [each for each in engine.inspect.instances().items if each.id == one]
        assert listed.state == "paused"
        engine.deploy(lost)
        engine.resume(one)
        assert engine.wait_for(one) == "completed"


@pytest.mark.req("CORE-REC-1", "CORE-SCH-4")
def test_a_refused_start_leaves_the_engine_and_the_store_as_they_were(path):
    with virtual(path) as engine:
        standing = engine.start(sequence("s", wait("w", signal="go")))
        before = digest(path)
        for _ in range(50):
            with refused("payload.invalid"):
                engine.start(sequence("s", wait("w", signal="go")), float("nan"))
            with refused("instance.not_found"):
                engine.signal("nobody", "go")
        assert engine._parts.callers._waiting == {}
        assert digest(path) == before
        engine.signal(standing, "go")
        assert state(engine, standing) == "completed"
    assert len(rows(path, "instance")) == 1
