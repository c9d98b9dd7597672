"""Frames, the desk and the outlet: what travels, what is kept, what never blocks."""

from __future__ import annotations

import io
import socket
import threading

import pytest

from detent.model.errors import StoreError
from detent.model.link import (
    Control,
    Decided,
    MarkRequest,
    Submission,
    Submit,
    decode_decided,
    decode_submit,
)
from detent.runtime.dispatch_desk import Desk, Inbox
from detent.runtime.dispatch_frames import (
    FAULT,
    MESSAGE,
    Outlet,
    decided_frames,
    fault_frame,
    frame,
    read_fault,
    read_frames,
    submit_frames,
)
from tests.unit.handlers.calling import order_for

PATIENCE_S = 10.0


def bodies(frames):
    return [body for _kind, body in read_frames(io.BytesIO(b"".join(frames)))]


def test_frames_are_read_back_and_one_that_is_cut_off_does_not_count():
    stream = frame(MESSAGE, b"one") + frame(FAULT, b"") + frame(MESSAGE, b"two")
    found = [(MESSAGE, b"one"), (FAULT, b""), (MESSAGE, b"two")]
    assert list(read_frames(io.BytesIO(stream))) == found
    for cut in (1, 4, 7):
        assert list(read_frames(io.BytesIO(stream[:-cut]))) == found[:2]


def test_a_connection_that_is_reset_is_the_end_of_its_frames():
    near, far = socket.socketpair()
    with near, near.makefile("rb") as stream:
        near.sendall(b"unread")
        far.sendall(frame(MESSAGE, b"one"))
        far.close()
        assert list(read_frames(stream)) == [(MESSAGE, b"one")]


def test_a_batch_is_split_at_the_limit_and_its_controls_come_last():
    inputs = [Submission(f"i{n}", b"x" * 10) for n in range(5)]
    batch = Submit(inputs, [MarkRequest(["k"])], [Control("close")])
    (whole,) = bodies(submit_frames(batch))
    assert decode_submit(whole) == batch
    pieces = [decode_submit(body) for body in bodies(submit_frames(batch, limit=20))]
    assert [len(piece.inputs) for piece in pieces] == [2, 2, 1]
    assert [piece.marks for piece in pieces] == [[MarkRequest(["k"])], [], []]
    assert [piece.control for piece in pieces] == [[], [], [Control("close")]]
    assert bodies(submit_frames(Submit())) == []


def test_a_turn_is_split_at_the_limit_and_all_but_the_last_hold_orders_only():
    orders = [order_for("h", "x" * 8, key=f"k{n}") for n in range(3)]
    work = [("charge", "q", "acme")]
    decided = Decided(
        orders=orders, marked=[("k", 1)], recalled=["r"], held="store.full", work=work
    )
    (whole,) = bodies(decided_frames(decided))
    assert decode_decided(whole) == decided
    pieces = [decode_decided(body) for body in bodies(decided_frames(decided, limit=20))]
    assert [[order.key for order in piece.orders] for piece in pieces] == [["k0", "k1"], ["k2"]]
    assert [piece.marked for piece in pieces] == [[], [("k", 1)]]
    assert [piece.held for piece in pieces] == ["store.full", "store.full"]
    assert [piece.work for piece in pieces] == [[], work]


def test_an_error_travels_with_its_code_and_any_other_as_an_unavailable_store():
    error = StoreError("store.owned", "taken", owner={"pid": 3})
    ((kind, body),) = read_frames(io.BytesIO(fault_frame(error)))
    back = read_fault(body)
    assert (kind, type(back), back.code, back.message) == (
        FAULT,
        StoreError,
        "store.owned",
        "taken",
    )
    assert back.details == {"owner": {"pid": 3}}
    ((_kind, body),) = read_frames(io.BytesIO(fault_frame(ZeroDivisionError("oh"))))
    assert read_fault(body).code == "store.unavailable"
    assert "ZeroDivisionError: oh" in read_fault(body).message


def test_an_outlet_does_not_wait_for_a_slow_reader_and_loses_nothing():
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    outlet = Outlet(near)
    sent = [frame(MESSAGE, bytes([n]) * 50_000) for n in range(20)]
    for data in sent:
        outlet.send(data)  # far more than the buffer holds, and nobody reads yet
    with far, far.makefile("rb") as stream:
        found = [body for _, (_kind, body) in zip(sent, read_frames(stream), strict=False)]
    assert found == [bytes([n]) * 50_000 for n in range(20)]
    outlet.close(PATIENCE_S)
    near.close()


def test_an_outlet_drops_what_nobody_reads_any_more():
    near, far = socket.socketpair()
    outlet = Outlet(near)
    far.close()
    for _ in range(3):
        outlet.send(b"x" * 100_000)
    outlet.close(PATIENCE_S)
    near.close()


def test_an_inbox_gives_everything_at_one_go_sorted_by_kind():
    inbox = Inbox()
    assert inbox.get_batch(0) == []
    one, two = Submission("i1", b"1"), Submission("i2", b"2")
    inbox.put([one])
    inbox.put([MarkRequest(["k"]), Control("wake")])
    inbox.put((two,))
    assert inbox.get_batch(-1) == [Submit([one, two], [MarkRequest(["k"])], [Control("wake")])]
    other = Submit([one], [], [])
    inbox.put([two])
    inbox.put(other)
    inbox.put([two])
    assert inbox.get_batch(1) == [Submit([two]), other, Submit([two])]


def test_an_inbox_wakes_a_reader_who_waits():
    inbox, found = Inbox(), []
    reader = threading.Thread(target=lambda: found.append(inbox.get_batch(PATIENCE_S)))
    reader.start()
    inbox.put([Control("wake")])
    reader.join(PATIENCE_S)
    assert found == [[Submit(control=[Control("wake")])]]


def test_a_lost_writer_leaves_outcomes_and_handlers_to_its_successor():
    desk, told = Desk(), []
    desk.open(told.append)
    outcome, asking = Submission("i1", b"outcome", -1), Submission("i1", b"ask", ack=4, ask=True)
    late, free = Submission("i1", b"late", -2), Submission("i1", b"free")
    desk.submit([Control("register", 9, ["h"]), outcome, asking, MarkRequest(["k1", "k2"])])
    assert len(desk.inbox.get_batch(0)) == 1  # the writer has got all of it
    desk.submit([late, free])
    desk.deliver(Decided(marked=[("k1", 1)]))
    desk.lose("it fell over", succeeded=True)
    lost = told[-1]
    assert (lost.lost, lost.held) == ([], "store.unavailable")
    assert [(ack, verdict.code) for ack, verdict in lost.acks] == [
        (9, "store.unavailable"),
        (4, "store.unavailable"),
    ]
    again = [MarkRequest(["k2"])]
    handlers = [Control("register", args=["h"])]
    assert desk.inbox.get_batch(0) == [Submit([outcome, late, free], again, handlers)]
    desk.deliver(Decided(taken=[-1]))
    desk.lose("again", succeeded=True)
    assert desk.inbox.get_batch(0) == [Submit([late], again, handlers)]
    desk.lose("for good", succeeded=False)
    assert (told[-1].lost, told[-1].acks) == (["k2"], [])


def test_a_shut_desk_takes_nothing_in():
    desk = Desk()
    desk.shut(StoreError("store.unavailable", "gone"))
    desk.shut(StoreError("store.full", "the first reason stays"))
    with pytest.raises(StoreError, match=r"store\.unavailable"):
        desk.submit([Submission("i1", b"x")])
    assert desk.inbox.get_batch(0) == []
