"""Commits that fail: nothing is lost, nothing is told too early, poison stands alone."""

from __future__ import annotations

import msgspec
import pytest

from detent.definition import step, wait
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.model.snapshot import decode_snapshot
from detent.runtime import decide
from tests.unit.runtime.writer_rig import Rig, with_faults


def failing(code):
    def fail(commit):
        raise StoreError(code, "the test says so")

    return fail


def touching(instance, error):
    def fail(commit):
        if any(change.id == instance for change in commit.changes):
            raise error

    return fail


@pytest.mark.req("CORE-REC-3")
def test_a_full_disk_refuses_callers_and_keeps_outcomes_until_there_is_room():
    rig = Rig(mode="wall")
    faulty = with_faults(rig)
    rig.open()
    made = rig.define()
    start = rig.start(made)
    rig.send(start)
    (order,) = rig.orders(rig.settle())

    faulty.before = failing("store.full")
    refused = rig.start(made)
    rig.send(rig.applied(order, {"x": 1}), refused)
    decided = rig.turn()
    assert decided.held == "store.full"
    assert decided.orders == []
    assert rig.verdict(refused).code == "store.full"
    later = rig.start(made)
    rig.send(later)
    assert rig.turn().acks[0][1].code == "store.full"
    assert rig.row(refused.instance) is None
    assert 0 < rig.writer.idle_seconds() <= 0.1

    faulty.before = None
    rig.hands.pass_ms(200)
    decided = rig.turn()
    assert decided.held == ""
    assert [each.block for each in decided.orders] == ["b"]
    assert rig.row(later.instance) is None
    rig.check_chain()


def test_a_hold_waits_longer_each_time_and_ends_by_itself_when_nothing_is_left_to_write():
    rig = Rig(mode="wall")
    faulty = with_faults(rig)
    rig.open()
    rig.settle()
    faulty.before = failing("store.full")
    rig.send(rig.start(rig.define()))
    assert rig.turn().held == "store.full"
    tries = len(faulty.commits)
    assert rig.turn() is None
    assert len(faulty.commits) == tries
    rig.hands.pass_ms(150)
    assert (
        rig.turn().held == ""
    )  # the caller was refused, so nothing is queued; a renewal went well
    assert rig.settle() == []


@pytest.mark.req("CORE-REC-1")
def test_a_commit_that_happened_although_it_raised_is_not_made_again():
    rig = Rig(mode="wall")
    rig.register(HandlerSpec(name="work", doubt="once"))
    faulty = with_faults(rig)
    rig.open()
    rig.register(HandlerSpec(name="work", doubt="once"))
    faulty.after = failing("store.unavailable")
    start = rig.start(rig.define())
    rig.send(start)
    (order,) = rig.orders([rig.turn()])
    assert rig.verdict(start).ok
    rig.send(marks=[order.key])
    decided = rig.turn()
    assert [key for key, _ in decided.marked] == [order.key]
    faulty.after = None
    rig.send(rig.applied(order, dispatch=decided.marked[0][1]))
    rig.settle()
    assert len(rig.journal(start.instance)) == 2
    rig.check_chain()


def test_a_commit_of_unknown_fate_is_settled_before_anything_else_moves():
    rig = Rig(mode="wall")
    faulty = with_faults(rig)
    rig.open()
    made = rig.define()
    start = rig.start(made)
    rig.send(start)
    faulty.after = failing("store.unavailable")
    real = rig.store.partitions

    def unreadable():
        raise StoreError("store.unavailable", "not now")

    faulty.partitions = unreadable
    assert rig.turn().held == "store.unavailable"
    assert start.ack not in rig.verdicts
    faulty.after = None
    faulty.partitions = real
    rig.hands.pass_ms(200)
    decided = rig.turn()
    assert rig.verdict(start).ok
    assert decided.held == ""
    assert len(decided.orders) == 1
    assert len(rig.journal(start.instance)) == 1


@pytest.mark.req("CORE-REC-3")
@pytest.mark.parametrize("error", [ValueError("no row for this"), StoreError("store.refused", "x")])
def test_an_instance_whose_commit_fails_is_quarantined_alone_with_its_inputs_kept(error):
    rig = Rig()
    faulty = with_faults(rig)
    rig.open()
    made = rig.define(blocks=[wait("w", signal="go"), step("a", "work")])
    starts = [rig.start(made) for _ in range(21)]
    rig.send(*starts)
    rig.settle()
    poison = starts[13].instance
    failing_now = touching(poison, error)
    faulty.before = lambda commit: None if _quarantines(commit, poison) else failing_now(commit)
    signals = [rig.signal(start.instance, "custom:go", {"n": 1}) for start in starts]
    rig.send(*signals)
    orders = rig.orders(rig.settle())
    assert len(orders) == 20
    assert all(rig.verdict(signal).ok for signal in signals)
    row = rig.row(poison)
    assert row.state == "paused"
    last = msgspec.json.decode(rig.journal(poison)[-1].body)
    assert last["in"][0]["payload"] == {"n": 1}
    assert last["entries"][0][0] == "run.paused"
    assert last["entries"][0][2]["reason"] == "consistency"
    assert sum(rig.row(start.instance).state == "running" for start in starts) == 20
    rig.check_chain()


def _quarantines(commit, instance):
    return any(change.id == instance and change.state == "paused" for change in commit.changes)


@pytest.mark.req("CORE-REC-3", "CORE-STM-1")
def test_a_step_that_raises_is_quarantined_and_can_be_resumed_once_it_is_mended(monkeypatch):
    rig = Rig().open()
    made = rig.define(blocks=[wait("w", signal="go"), step("a", "work")])
    sick, well = rig.start(made), rig.start(made)
    rig.send(sick, well)
    rig.settle()
    real = decide.step

    def stumbling(program, snapshot, inputs, tick, facts):
        if snapshot is not None and decode_snapshot(snapshot).id == sick.instance:
            raise ZeroDivisionError("a bug of ours")
        return real(program, snapshot, inputs, tick, facts)

    monkeypatch.setattr(decide, "step", stumbling)
    rig.send(rig.signal(sick.instance, "custom:go"), rig.signal(well.instance, "custom:go"))
    rig.settle()
    asked = rig.command(sick.instance, "resume", id="r-1")
    rig.send(asked)
    rig.settle()
    assert rig.verdict(asked).code == "invariant.broken"
    assert rig.row(sick.instance).state == "paused"
    assert rig.row(well.instance).state == "running"

    monkeypatch.setattr(decide, "step", real)
    rig.send(rig.command(sick.instance, "resume", id="r-2"))
    rig.settle()
    assert rig.row(sick.instance).state == "waiting"
    rig.send(rig.signal(sick.instance, "custom:go"))
    assert len(rig.orders(rig.settle())) == 1
    rig.check_chain()


def test_a_start_whose_commit_fails_is_refused_and_the_others_are_made():
    rig = Rig()
    faulty = with_faults(rig)
    rig.open()
    made = rig.define()
    starts = [rig.start(made) for _ in range(5)]
    bad = starts[2]
    faulty.before = touching(bad.instance, ValueError("no row for this"))
    rig.send(*starts)
    assert len(rig.orders(rig.settle())) == 4
    assert rig.verdict(bad).code == "invariant.broken"
    assert rig.row(bad.instance) is None
    assert all(rig.verdict(start).ok for start in starts if start is not bad)


def test_one_that_cannot_even_be_quarantined_is_left_out_and_the_rest_goes_on():
    rig = Rig()
    faulty = with_faults(rig)
    rig.open()
    made = rig.define(blocks=[wait("w", duration=1_000, signal="go"), step("a", "work")])
    bad, good = rig.start(made), rig.start(made)
    rig.send(bad, good)
    rig.settle()
    faulty.before = touching(bad.instance, ValueError("no row for this"))
    lost = rig.signal(bad.instance, "custom:go")
    rig.send(lost, rig.signal(good.instance, "custom:go"))
    assert len(rig.orders(rig.settle())) == 1
    assert rig.verdict(lost).code == "invariant.broken"
    again = rig.signal(bad.instance, "custom:go")
    rig.send(again)
    rig.settle()
    assert rig.verdict(again).code == "invariant.broken"
    rig.clock.advance(10)
    assert rig.settle() == []
    assert rig.writer.idle_seconds() > 0
    assert rig.row(bad.instance).state == "waiting"
    ack = rig.control("status")
    rig.settle()
    assert rig.verdicts[ack].result["barred"] == [bad.instance]


def test_an_outcome_of_an_instance_that_has_ended_cannot_pause_it(monkeypatch):
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[step("a", "work")]))
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    rig.send(rig.applied(order))
    rig.settle()

    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(decide, "step", broken)
    rig.send(rig.applied(order))
    rig.settle()
    assert rig.row(start.instance).state == "completed"
    assert b"error.occurred" in rig.journal(start.instance)[-1].body


def test_a_cache_that_was_wrong_is_read_again_and_the_turn_is_decided_anew():
    rig = Rig().open()
    start = rig.start(rig.define())
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    rig.writer._parts.cache.get(start.instance).version = 7
    rig.writer._parts.cache.get(start.instance).body = rig.writer._parts.cache.get(
        start.instance
    ).body.replace(b'"version":1', b'"version":7')
    rig.send(rig.applied(order))
    (after,) = rig.orders(rig.settle())
    assert after.block == "b"
    assert [row.seq for row in rig.journal(start.instance)] == [1, 2]
    rig.check_chain()


def test_the_cache_holds_no_more_bytes_than_it_may_and_nothing_depends_on_it():
    from detent.runtime.settings import WriterSettings

    rig = Rig(settings=WriterSettings(cache_bytes=2_000)).open()
    made = rig.define()
    rig.send(*[rig.start(made) for _ in range(30)])
    orders = rig.orders(rig.settle())
    assert rig.writer._parts.cache.bytes <= 2_000
    rig.send(*[rig.applied(order) for order in orders])
    assert len(rig.orders(rig.settle())) == 30
    assert rig.writer._parts.cache.bytes <= 2_000
    rig.check_chain()
