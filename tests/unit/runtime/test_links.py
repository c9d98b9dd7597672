"""Both links: the same interface, the same answers, the same end."""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from detent.model.errors import RequestError, StoreError
from detent.model.link import Control, MarkRequest, Submission
from detent.runtime.links import ProcessLink, ThreadLink
from tests.unit.runtime.links_child import echo, factory

PATIENCE_S = 20.0
CHILD = str(Path(__file__).with_name("links_child.py"))


class Caller:
    """Somebody on the near side of a link, who sees everything that comes back."""

    def __init__(self, link):
        self.link = link
        self.decided = queue.SimpleQueue()
        link.start(self.decided.put)
        assert self.next().lease_until_ms == 1

    def next(self):
        return self.decided.get(timeout=PATIENCE_S)

    def ask(self, text, ack):
        self.link.submit([Submission("i1", text.encode(), ack=ack, id=f"id{ack}")])
        return self.answer(ack)

    def answer(self, ack):
        while True:
            for number, verdict in self.next().acks:
                if number == ack:
                    return verdict


def thread_link(mode):
    return ThreadLink(lambda _successor: factory({"mode": mode}), echo)


def process_link(mode):
    return ProcessLink(json.dumps({"mode": mode}).encode(), [sys.executable, CHILD])


@pytest.fixture(params=[thread_link, process_link], ids=["thread", "process"])
def make(request):
    made = []

    def make_one(mode="echo"):
        made.append(request.param(mode))
        return made[-1]

    yield make_one
    for link in made:
        link.close()


def test_a_caller_is_answered_and_a_mark_is_won(make):
    caller = Caller(make())
    assert caller.ask("hello", 1).result[0] == "hello"
    caller.link.submit([MarkRequest(["k1", "k2"])])
    assert caller.next().marked == [("k1", 7), ("k2", 7)]


def test_orders_arrive_with_their_json_as_it_was(make):
    caller = Caller(make())
    caller.link.submit([Control("order", args={"key": "k1", "request": {"text": "ü", "n": 1}})])
    (order,) = caller.next().orders
    assert json.loads(bytes(order.request)) == {"text": "ü", "n": 1}
    assert (order.key, json.loads(bytes(order.data))) == ("k1", {"a": [1]})
    assert bytes(order.config) == b"null"


def test_a_writer_that_cannot_start_says_why(make):
    link = make("refuse")
    with pytest.raises(StoreError) as caught:
        link.start(lambda _decided: None)
    assert (caught.value.code, caught.value.details) == ("store.owned", {"owner": "x"})


def test_closing_lets_the_writer_finish_and_refuses_what_comes_later(make):
    caller = Caller(make())
    caller.link.submit([Submission("i1", b"last", ack=3)])
    caller.link.close()
    assert caller.answer(3).ok
    assert caller.next().held == "engine.closed"
    with pytest.raises(RequestError, match=r"engine\.closed"):
        caller.link.submit([Submission("i1", b"too late")])
    caller.link.close()


def test_when_the_writer_stops_everybody_who_waits_is_told_and_another_is_started(make, caplog):
    caller = Caller(make())
    caller.link.submit([Control("register", args=["h1"])])
    caller.next()
    with caplog.at_level(logging.ERROR, "detent.runtime"):
        caller.link.submit(
            [
                Submission("i1", b"never", ack=5),
                Control("stop"),
                MarkRequest(["k1"]),
            ]
        )
        told = caller.next()
    assert told.held == "store.unavailable"
    assert told.lost == []
    ((ack, verdict),) = told.acks
    assert (ack, verdict.ok, verdict.code) == (5, False, "store.unavailable")
    assert "the disk is full" in verdict.message
    assert caller.next().lease_until_ms == 1  # another writer, which was told the handlers again
    assert caller.next().marked == [("k1", 7)]  # and asked for the mark again
    assert caller.ask("again", 6).result == ["again", ["h1"]]


@pytest.mark.req("CORE-REC-1")
def test_outcomes_go_to_the_next_writer_until_their_receipt_is_back(make, caplog):
    caller = Caller(make())
    caller.link.submit([Submission("i1", b"heard", ack=-1), Submission("i1", b"unheard", ack=-2)])
    told = caller.next()
    assert (told.moved, told.taken) == ([("outcome", "heard"), ("outcome", "unheard")], [-1])
    caller.link.submit([Control("stop")])
    while not (told := caller.next()).moved:
        assert not told.taken
    assert told.moved == [("outcome", "unheard")]


def test_a_writer_that_stops_again_at_once_is_not_started_a_third_time(make, caplog):
    caller = Caller(make())
    caller.link.submit([Control("crash")])
    assert caller.next().held == "store.unavailable"
    assert caller.next().lease_until_ms == 1
    caller.link.submit([Control("crash"), MarkRequest(["k9"])])
    while not (told := caller.next()).held:
        pass
    assert told.held == "store.unavailable"
    assert told.lost == ["k9"]  # nobody will ever answer it
    with pytest.raises(StoreError) as caught:
        caller.link.submit([Submission("i1", b"x", ack=9)])
    assert caught.value.code == "store.unavailable"
    assert "a fault of ours" in caught.value.message


def test_a_killed_process_is_replaced_by_another(caplog):
    caller = Caller(process_link("echo"))
    first = caller.link.pid
    os.kill(first, signal.SIGKILL)
    assert caller.next().held == "store.unavailable"
    assert caller.next().lease_until_ms == 1
    assert caller.link.pid not in (0, first)
    assert caller.ask("alive", 2).result[0] == "alive"
    caller.link.close()


def test_the_child_ends_when_its_parent_dies():
    parent = subprocess.Popen(
        [sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = parent.communicate(b'{"mode": "parent"}', timeout=PATIENCE_S)
    # The child has the same standard output: that it was closed means that both are gone.
    assert int(out) > 0
    assert parent.returncode == 0


def test_many_callers_are_all_answered(make):
    caller = Caller(make())
    for ack in range(1, 1_001):
        caller.link.submit([Submission("i1", str(ack).encode(), ack=ack)])
    answers = {}
    while len(answers) < 1_000:
        answers.update(caller.next().acks)
    assert all(answers[ack].result[0] == str(ack) for ack in range(1, 1_001))
