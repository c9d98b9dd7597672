"""The loop around a writer, its controls, and the messages that cross the link."""

from __future__ import annotations

from collections import deque

import pytest
from msgspec import Raw

from detent.definition import step, wait
from detent.model.decision import HandlerSpec, Order, Verdict
from detent.model.link import (
    Control,
    Decided,
    MarkRequest,
    Submit,
    decode_decided,
    decode_submit,
    encode_decided,
    encode_submit,
)
from detent.runtime.writer import run_writer
from tests.unit.runtime.writer_rig import Rig


class Mail:
    """Batches by script; notes how long each `get_batch` might have waited."""

    def __init__(self, *scripted):
        self.scripted = deque(scripted)
        self.waits = []

    def get_batch(self, timeout):
        self.waits.append(timeout)
        return list(self.scripted.popleft()) if self.scripted else []


def test_the_loop_opens_turns_publishes_and_releases_the_store_when_told_to_close():
    rig = Rig()
    start = rig.start(rig.define())
    mail = Mail([Submit([start])], [], [Submit(control=[Control("close", 99)])])
    run_writer(rig.writer, mail, rig.keep)
    assert rig.verdict(start).ok
    assert rig.verdicts[99].ok
    assert len(rig.orders(rig.decided)) == 1
    assert all(row.owner == "" for row in rig.store.partitions())


def test_closing_takes_in_every_outcome_that_was_sent_before():
    rig = Rig()
    made = rig.define(blocks=[step("a", "work")])
    starts = [rig.start(made) for _ in range(3)]
    keep = rig.keep

    def publish(decided):
        keep(decided)
        for order in decided.orders:
            mail.scripted.append([Submit([rig.applied(order)])])
        if len(rig.orders(rig.decided)) == 3 and not publish.told:
            publish.told = True
            mail.scripted.append([Submit(control=[Control("close")])])

    publish.told = False
    mail = Mail([Submit(starts)])
    run_writer(rig.writer, mail, publish)
    assert [rig.row(start.instance).state for start in starts] == ["completed"] * 3


def test_a_caller_whose_answer_cannot_come_any_more_is_told_that_the_engine_closed():
    rig = Rig().open()
    rig.settle()
    ghost = rig.start(rig.define())
    from tests.unit.runtime.test_writer_arrivals import leave

    leave(rig, ghost, "a-1")
    rig.store._connection.execute("DELETE FROM arrival")
    signal = rig.signal(ghost.instance)
    rig.send(signal)
    rig.settle()  # its instance is not born and its start is gone: it waits
    assert signal.ack not in rig.verdicts
    assert rig.writer.settled
    rig.keep(rig.writer.dismiss())
    assert rig.verdict(signal).code == "engine.closed"


def test_the_loop_sleeps_until_something_is_due_and_not_while_there_is_work():
    rig = Rig(mode="wall")
    made = rig.define(blocks=[wait("w", duration=300), step("a", "work")])
    mail = Mail([Submit([rig.start(made)])], [], [Submit(control=[Control("close")])])
    run_writer(rig.writer, mail, rig.keep)
    assert mail.waits[0] == 0
    assert mail.waits[-1] == pytest.approx(0.3)


def test_a_handler_is_what_it_was_registered_as_from_then_on():
    rig = Rig().open()
    made = rig.define(blocks=[step("a", "pay")])
    first, second = rig.start(made), rig.start(made)
    rig.send(first)
    (before,) = rig.orders(rig.settle())
    rig.control("register", [{"name": "pay", "doubt": "once"}])
    rig.send(second)
    (after,) = rig.orders(rig.settle())
    assert (before.marked, after.marked) == (False, True)


def test_controls_that_make_no_sense_are_refused_and_change_nothing():
    rig = Rig(mode="wall").open()
    acks = [
        rig.control("dance"),
        rig.control("register", [{"doubt": "once"}]),
        rig.control("advance", {"to": 5}),
    ]
    rig.settle()
    codes = [rig.verdicts[ack].code for ack in acks]
    assert codes == ["request.invalid", "request.invalid", "engine.running"]


def test_virtual_time_is_advanced_by_a_control_and_the_status_tells_what_follows():
    rig = Rig().open()
    rig.send(rig.start(rig.define(blocks=[wait("w", duration=5_000), step("a", "work")])))
    ack = rig.control("status")
    rig.settle()
    status = rig.verdicts[ack].result
    assert (status["tick"], status["next_due"], status["queued"]) == (0, 50, 0)
    ack = rig.control("advance", {"to": 50})
    assert len(rig.orders(rig.settle())) == 1
    assert rig.verdicts[ack].result == {"tick": 50}
    back = rig.control("advance", {"to": 3})
    rig.settle()
    assert rig.verdicts[back].code == "request.invalid"


def test_messages_of_the_link_arrive_as_they_were_sent_with_users_json_untouched():
    rig = Rig()
    start = rig.start(rig.define(), key="k")
    sent = Submit([start], [MarkRequest(["a", "b"])], [Control("register", 3, [{"name": "x"}])])
    assert decode_submit(encode_submit(sent)) == sent
    order = Order(
        key="k",
        instance="i",
        tenant="t",
        node="n",
        block="b",
        handler="h",
        request=Raw(b'{"a": 1e21,  "b":[1.0]}'),
        data=Raw(b"{}"),
        dispatch=1 << 60,
    )
    decided = Decided(
        orders=[order],
        marked=[("k", 1 << 60)],
        lost=["l"],
        recalled=["r"],
        acks=[(7, Verdict(id="q", ok=False, code="store.full", result={"x": [1]}))],
        moved=[("i", "running")],
        held="store.full",
        lease_until_ms=5,
    )
    back = decode_decided(encode_decided(decided))
    assert back == decided
    assert bytes(back.orders[0].request) == b'{"a": 1e21,  "b":[1.0]}'
    assert bytes(back.orders[0].config) == b"null"
    assert HandlerSpec(name="x").marked is False
