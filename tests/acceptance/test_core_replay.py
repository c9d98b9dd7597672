"""Replay, debugging, what-if and forks: the record runs again without any call (CORE-RPL)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

import detent
from detent import parallel, sequence, step, sub_sequence, wait
from detent.kernel.rerun import Changes, InputChange
from detent.testing import Calls
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    digest,
    finished,
    opened,
    refused,
    rows,
    state,
    virtual,
)

CHILD = sequence("child", step("x", "transform", params={"y": 1}))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def calls():
    return Calls()


def story(act):
    """A call that is retried, a child, a signal and a large value."""
    return sequence(
        "story",
        step("a", act, retry=detent.retry(2, initial_backoff="1s")),
        parallel("p", wait("w", "1h", signal="go", store_as="told"), [sub_sequence("c", "child")]),
        step("b", act),
    )


def lived(path, calls):
    """The story from its start to its end; the id."""
    act = calls.handler("act", detent.Failed("no"), {"n": 1}, {"n": 2, "large": "x" * 50_000})
    with virtual(path, [act]) as engine:
        engine.deploy(CHILD)
        instance = engine.start(story(act), {"start": True})
        engine.advance(HOUR_MS // 2)
        engine.signal(instance, "go", {"text": "hi"})
        assert engine.wait_for(instance) == "completed"
        return instance


@pytest.mark.req("CORE-RPL-1")
def test_a_replay_is_identical_calls_nothing_and_writes_nothing(path, calls):
    instance = lived(path, calls)
    made = len(calls.made)
    with virtual(path) as engine:  # no handler is registered here at all
        before = digest(path)
        found = engine.replay(instance)
        assert found.identical
        assert found.first_difference is None
        assert found.rows == engine.inspect.show(instance).snapshot_version
        assert digest(path) == before
    assert len(calls.made) == made


@pytest.mark.req("CORE-RPL-1")
def test_a_forged_record_shows_the_first_row_and_field_that_differs(path, calls):
    instance = lived(path, calls)
    with opened(path, write=True) as connection:
        at, body = connection.execute(
            "SELECT pos, body FROM journal JOIN instance ON inst = instance.n"
            " WHERE instance.id = ? AND instr(body, ?)",
            (instance, b'"n":1'),
        ).fetchone()
        forged = body.replace(b'"n":1', b'"n":7')
        connection.execute("UPDATE journal SET body = ? WHERE pos = ?", (forged, at))
    with virtual(path) as engine:
        found = engine.replay(instance)
    assert not found.identical
    assert found.first_difference.seq == 4
    assert found.first_difference.expected != found.first_difference.actual
    assert found.first_difference.field


@pytest.mark.req("CORE-RPL-1")
def test_facts_are_fed_from_the_record_and_recomputing_shows_what_would_differ_today(path, calls):
    instance = lived(path, calls)
    newer = sequence("child", step("x", "transform", params={"y": 2}), version=2)
    with virtual(path) as engine:
        assert engine.inspect.recompute(instance) == []
        engine.deploy(newer)
        assert engine.replay(instance).identical
        (changed,) = engine.inspect.recompute(instance)
        assert newer.hash in repr(changed)
        assert CHILD.hash in repr(changed)


@pytest.mark.req("CORE-RPL-2")
def test_a_debugger_peeks_steps_and_goes_back_without_any_effect(path, calls):
    instance = lived(path, calls)
    with virtual(path) as engine:
        before = digest(path)
        session = engine.inspect.debug(instance)
        first = session.peek()
        assert (first.seq, first.node) == (1, "a")
        assert first.context.data == {"start": True}
        seen = []
        while (context := session.step()) is not None:
            seen.append((context.seq, context.state))
        assert seen[-1][1] == "completed"
        assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
        assert session.peek() is None
        back = session.back()
        assert back.seq == len(seen) - 1
        assert session.step().state == "completed"
        assert digest(path) == before


@pytest.mark.req("CORE-RPL-2")
def test_what_if_runs_the_record_with_another_input_and_shows_the_difference(path, calls):
    instance = lived(path, calls)
    with virtual(path) as engine:
        before = digest(path)
        (entry,) = engine.inspect.audit(instance, action="event.received")
        same = engine.inspect.what_if(instance, Changes())
        assert same.same
        other = Raw(msgspec.json.encode({**entry.input, "payload": {"text": "bye"}}))
        change = InputChange(seq=entry.seq, index=0, verb="replace", body=other)
        found = engine.inspect.what_if(instance, Changes(inputs=(change,)))
        assert not found.same
        assert found.data["told"] == {"text": "bye"}
        assert found.changes
        assert digest(path) == before
    assert len(calls.made) == 3


@pytest.mark.req("CORE-RPL-2")
def test_what_if_runs_the_record_against_another_version(path):
    first = sequence("s", wait("w", "1h"), step("a", "transform", params={"v": 1}))
    second = sequence("s", wait("w", "1h"), step("a", "transform", params={"v": 2}), version=2)
    with virtual(path) as engine:
        instance = finished(engine, first).summary.id
        with refused("definition.unknown"):
            engine.inspect.what_if(instance, Changes(definition=second.hash))
        engine.deploy(second)
        found = engine.inspect.what_if(instance, Changes(definition=second.hash))
        assert found.outputs["a"] == {"v": 2}
        assert engine.inspect.show(instance).outputs["a"] == {"v": 1}


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_goes_on_from_any_row_and_repeats_no_effect(path, calls):
    instance = lived(path, calls)
    act = calls.handler("act", {"n": 3})
    with virtual(path, [act]) as engine:
        version = engine.inspect.show(instance).snapshot_version
        before = engine.inspect.show(instance)
        forks = [engine.fork(instance, seq=seq) for seq in range(1, version)]
        engine.run_until_idle()
        for fork in forks:
            assert state(engine, fork) == "completed"
            assert engine.replay(fork).identical
        keys = [call.key for call in calls.made]
        assert len(keys) == len(set(keys))
        assert all(call.instance != instance for call in calls.made[3:]), (
            "a call of the origin was made again"
        )
        assert engine.inspect.show(instance) == before
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_before_a_node_with_other_data_takes_another_way(path):
    definition = sequence(
        "s",
        step("a", "noop"),
        detent.router(
            "r",
            detent.route("data.vip == true", step("gift", "noop")),
            default=step("plain", "noop"),
        ),
    )
    with virtual(path) as engine:
        instance = finished(engine, definition, {"vip": False}).summary.id
        fork = engine.fork(instance, before="r", data={"vip": True})
        engine.run_until_idle()
        assert set(engine.inspect.show(fork).outputs) == {"a", "gift"}
        assert set(engine.inspect.show(instance).outputs) == {"a", "plain"}


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_where_the_record_does_not_tell_is_refused_and_leaves_nothing(path, calls):
    act = calls.handler("act", TimeoutError("lost"), on_doubt="once")
    with virtual(path, [act]) as engine:
        instance = finished(engine, sequence("s", step("a", act))).summary.id
        before = digest(path)
        with refused("effect.unsettled"):
            engine.fork(instance, seq=1)
        for wrong in ({"seq": 99}, {"seq": -1}, {"before": "nowhere"}, {}):
            with refused("fork.refused"):
                engine.fork(instance, **wrong)
        for wrong in ({"seq": "one"}, {"seq": 1, "data": [1]}, {"seq": 1, "dry_run": 1}):
            with refused("request.invalid"):
                engine.fork(instance, **wrong)
        assert digest(path) == before


@pytest.mark.req("CORE-RPL-2")
def test_an_ended_row_cannot_be_forked_but_an_earlier_one_can(path):
    with virtual(path) as engine:
        instance = finished(engine, sequence("s", wait("w", "1d"), step("a", "noop"))).summary.id
        with refused("fork.refused"):
            engine.fork(instance, seq=2)
        fork = engine.fork(instance, seq=1)
        start = engine.now()
        engine.run_until_idle()
        assert state(engine, fork) == "completed"
        assert (engine.now() - start).total_seconds() * 1000 == DAY_MS
    assert len(rows(path, "instance")) == 2
