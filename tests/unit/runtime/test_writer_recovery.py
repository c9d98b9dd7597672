"""Recovery: what an earlier process left open is brought to an end, and nothing else is touched."""

from __future__ import annotations

from random import Random

import pytest

from detent.definition import parallel, step, wait
from detent.model.decision import HandlerSpec
from detent.ports.store import Flight
from detent.runtime import recovery
from detent.runtime.settings import WriterSettings
from tests.unit.runtime.writer_rig import Rig


def rig_at_call(path, doubt, mode="virtual", **more):
    rig = Rig(path, mode=mode, **more).open()
    rig.register(HandlerSpec(name="pay", doubt=doubt))
    start = rig.start(rig.define(blocks=[step("a", "pay")]))
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    return rig, order


def entries(rig, instance):
    return b"".join(row.body for row in rig.journal(instance))


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4")
def test_an_unmarked_call_is_doubted_after_a_crash_and_called_again_under_the_same_key(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "repeatable")
    rig = rig.restart()
    (again,) = rig.orders(rig.settle())
    assert again.key == order.key
    assert b'"crashed":true' in entries(rig, order.instance)
    rig.send(rig.applied(again))
    rig.settle()
    assert rig.row(order.instance).state == "completed"
    rig.check_chain()


@pytest.mark.req("CORE-REC-1", "CORE-EFF-1")
def test_a_marked_effect_without_a_mark_was_certainly_not_called_and_is_just_ordered(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "once")
    rig = rig.restart()
    (again,) = rig.orders(rig.settle())
    assert again == order
    assert len(rig.journal(order.instance)) == 1


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4")
@pytest.mark.parametrize(
    ("doubt", "mode", "state"),
    [
        ("once", None, "waiting"),
        ("queryable", "reconcile", "running"),
        ("keyed", "call", "running"),
    ],
)
def test_a_call_in_flight_at_the_crash_follows_its_class(tmp_path, doubt, mode, state):
    rig, order = rig_at_call(tmp_path / "s.db", doubt)
    rig.send(marks=[order.key])
    rig.settle()
    rig = rig.restart()
    rig.register(HandlerSpec(name="pay", doubt=doubt))
    orders = rig.orders(rig.settle())
    assert [each.mode for each in orders] == ([mode] if mode else [])
    assert rig.row(order.instance).state == state
    assert rig.store.doubts("default", order.instance, 10)
    rig.check_chain()


def test_a_reconcile_call_lost_in_a_second_crash_is_made_again(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "queryable")
    rig.send(marks=[order.key])
    rig.settle()
    rig = rig.restart("two")
    assert [each.mode for each in rig.orders(rig.settle())] == ["reconcile"]
    rig = rig.restart("three")
    rig.settle()
    due = rig.writer.next_due()
    if due is not None:
        rig.clock.advance(due)
    seen = [order for decided in rig.decided for order in decided.orders]
    seen += rig.orders(rig.settle())
    assert [each.mode for each in seen] == ["reconcile"]


@pytest.mark.req("CORE-REC-3")
def test_a_handler_that_kills_the_process_is_not_called_for_ever(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "repeatable")
    calls = 1
    for life in range(10):
        rig = rig.restart(f"life-{life}")
        calls += len(rig.orders(rig.settle()))
    assert calls == 6
    assert rig.row(order.instance).state == "failed"
    assert b"effect.crash_loop" in entries(rig, order.instance)


def test_an_owner_that_comes_back_under_its_old_name_knows_its_old_marks_for_dead(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "keyed")
    rig.send(marks=[order.key])
    rig.settle()
    rig = rig.restart(owner="one")
    (again,) = rig.orders(rig.settle())
    assert again.key == order.key


@pytest.mark.req("CORE-REC-2")
def test_a_call_whose_dispatcher_has_a_valid_lease_is_left_alone_until_the_lease_is_over(tmp_path):
    rig, order = rig_at_call(tmp_path / "s.db", "once", mode="wall")
    now = rig.clock.wall_ms()
    rig.store.mark([Flight(order.key, "elsewhere", 7, rig.clock.tick())])
    rig = rig.restart(settings=WriterSettings())
    _lend(rig, "elsewhere", now + 20_000)
    assert rig.orders(rig.settle()) == []
    for _ in range(21):
        rig.hands.pass_ms(1_000)
        rig.settle()
        assert len(rig.journal(order.instance)) == 1
    rig.hands.pass_ms(1_000)
    rig.settle()
    assert b'"crashed":true' in entries(rig, order.instance)
    assert rig.row(order.instance).state == "waiting"


@pytest.mark.req("CORE-REC-2")
def test_a_dispatcher_that_dies_while_we_run_is_noticed_and_one_that_lives_is_not_disturbed():
    rig, order = rig_at_call(":memory:", "once", mode="wall")
    rig.settle()
    rig.store.mark([Flight(order.key, "elsewhere", 7, rig.clock.tick())])
    until = rig.clock.wall_ms() + 700_000
    _lend(rig, "elsewhere", until)
    for _ in range(130):
        rig.hands.pass_ms(5_000)
        rig.settle()
        assert len(rig.journal(order.instance)) == 1
    for _ in range(130):
        rig.hands.pass_ms(5_000)
        rig.settle()
    assert b'"crashed":true' in entries(rig, order.instance)


def _lend(rig, name, until_ms):
    sql = "INSERT OR REPLACE INTO owner(id, host, pid, lease_until, wake) VALUES (?, 'h', 2, ?, '')"
    rig.store._connection.execute(sql, (name, until_ms))


def test_orders_of_this_process_are_not_recovered_while_the_walk_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "CHUNK", 2)
    rig = Rig(tmp_path / "s.db").open()
    made = rig.define(blocks=[step("a", "work"), step("b", "work")])
    rig.send(*[rig.start(made) for _ in range(9)])
    old = {order.key for order in rig.orders(rig.settle())}
    rig = rig.restart()
    fresh = rig.start(made)
    rig.send(fresh)
    keys = [order.key for order in rig.orders(rig.settle())]
    assert len(keys) == len(set(keys)) == 10
    assert old < set(keys)
    assert len(rig.journal(fresh.instance)) == 1


def test_the_first_turn_does_not_wait_for_the_walk(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "CHUNK", 2)
    rig = Rig(tmp_path / "s.db").open()
    made = rig.define()
    rig.send(*[rig.start(made) for _ in range(9)])
    rig.settle()
    rig = rig.restart()
    fresh = rig.start(made)
    rig.send(fresh)
    assert [order.instance for order in rig.turn().orders][:1] == [fresh.instance]
    assert rig.verdict(fresh).ok


def test_an_outcome_left_as_an_arrival_is_taken_before_its_effect_is_doubted(tmp_path):
    from detent.model.ids import partition_of
    from detent.ports.store import NewArrival

    rig, order = rig_at_call(tmp_path / "s.db", "repeatable")
    told = rig.applied(order)
    left = NewArrival("o-1", partition_of(order.instance, 16), order.instance, told.body)
    rig.store.enqueue([left], 0)
    rig = rig.restart()
    assert rig.orders(rig.settle()) == []
    assert rig.row(order.instance).state == "completed"
    assert b'"crashed":true' not in entries(rig, order.instance)


def test_large_requests_are_ordered_again_whole(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.register(HandlerSpec(name="pay", doubt="once", ctx=True))
    made = rig.define(blocks=[step("a", "pay", params={"text": "{{ data.text }}"})])
    rig.send(rig.start(made, data={"text": "x" * 50_000}))
    (order,) = rig.orders(rig.settle())
    rig = rig.restart()
    rig.register(HandlerSpec(name="pay", doubt="once", ctx=True))
    (again,) = rig.orders(rig.settle())
    assert bytes(again.request) == bytes(order.request)
    assert bytes(again.data) == bytes(order.data)
    assert len(again.request) > 50_000


@pytest.mark.req("CORE-REC-1")
def test_killed_between_any_turns_the_result_is_that_of_a_run_without_a_kill(tmp_path):
    def run(path, kill, chance):
        rig = Rig(path, owner="life").open()
        rig.register(HandlerSpec(name="pay", doubt="once"))
        made = rig.define(
            blocks=[
                parallel("p", [step("a", "pay")], [wait("w", duration=500), step("b", "pay")]),
                step("c", "pay"),
            ]
        )
        start = rig.start(made)
        rig.send(start)
        done = {}
        pending = {}

        def look():
            decided = rig.turn()
            for order in decided.orders if decided else ():
                pending[order.key] = order
            return decided

        for life in range(500):
            decided = look()
            if decided is None and pending:
                key, order = pending.popitem()
                done[key] = order.block
                rig.send(marks=[key])
                number = dict(look().marked)[key]
                rig.send(rig.applied(order, {"did": order.block}, number))
                look()
            elif decided is None:
                due = rig.writer.next_due()
                if due is None or rig.row(start.instance).state == "completed":
                    break
                rig.clock.advance(due)
                continue  # virtual time is durable only with the turn that follows
            if chance.random() < kill:
                pending.clear()
                rig = rig.restart(f"life-{life}")
                rig.register(HandlerSpec(name="pay", doubt="once"))
        rig.check_chain()
        return rig.row(start.instance).state, sorted(done.values())

    expected = ("completed", ["a", "b", "c"])
    assert run(tmp_path / "calm.db", 0, Random(0)) == expected
    for seed in range(8):
        assert run(tmp_path / f"{seed}.db", 0.4, Random(seed)) == expected


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("doubt", ["repeatable", "keyed", "queryable"])
def test_an_order_says_how_often_it_was_tried_before(tmp_path, doubt):
    rig, order = rig_at_call(tmp_path / "s.db", doubt)
    assert order.dispatch == 0
    seen = [0]
    for life in ("two", "three"):
        if rig.orders(rig.decided)[-1].marked:
            rig.send(marks=[order.key])
            rig.settle()
        rig = rig.restart(life)
        for _ in range(20):
            if orders := rig.orders(rig.settle()):
                break
            rig.clock.advance(rig.writer.next_due())
        (again,) = orders
        assert again.key == order.key
        seen.append(again.dispatch)
    assert seen == sorted(set(seen))
