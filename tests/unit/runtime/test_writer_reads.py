"""A store that does not answer once, at any call of a turn: nobody is forgotten, all ends the same.

A database on another machine fails in the middle of a turn as often as in its commit.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detent.definition import step, sub_sequence, wait
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.model.ids import partition_of
from detent.ports.store import NewArrival, Page
from detent.runtime.writer import Writer
from tests.unit.runtime.writer_rig import Rig

LAST_CALL = 2_000


class Stumbling:
    """The store, but its call of a number raises; `calls` are those made so far."""

    def __init__(self, store, fails_at):
        self._store = store
        self._fails_at = fails_at
        self.calls = []

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name in ("meta", "close"):
            return found

        def call(*args, **kwargs):
            self.calls.append(name)
            if len(self.calls) == self._fails_at:
                raise StoreError("store.unreachable", "the server is away")
            return found(*args, **kwargs)

        return call


class Caller:
    """Sends each thing until it is answered, as whoever waits for an answer does."""

    def __init__(self, rig):
        self.rig = rig
        self.unanswered = {}

    def tell(self, submission):
        self.unanswered[submission.ack] = submission
        self.rig.send(submission)

    def hear(self, decided):
        for ack, verdict in decided.acks:
            told = self.unanswered.pop(ack, None)
            assert told is not None, "answered twice"
            if verdict.code.startswith("store."):
                self.tell(told)  # under the same number and id: nothing of it was written


def lived(fails_at):
    """Run a small world to its end with one call failing; what is stored, and the calls."""
    rig = Rig(mode="wall")
    store = Stumbling(rig.store, fails_at)
    rig.writer = Writer(store, rig.clock, rig.settings, rig.owner, rig.chance)
    child = rig.define("child", [step("c", "work")])
    made = rig.define(
        "whole",
        [step("a", "pay"), wait("go", signal="go"), sub_sequence("kid", "child"), wait("nap", 300)],
    )
    try:
        rig.open()
    except StoreError:
        rig.open()  # whoever opens it tries again
    rig.register(HandlerSpec(name="work"), HandlerSpec(name="pay", doubt="once"))
    caller = Caller(rig)
    starts = [rig.start(made, key=f"k{n}", id=f"start-{n}") for n in range(2)]
    for told in starts:
        caller.tell(told)
    late = rig.start(child, key="left")
    home = partition_of(late.instance, 16)
    left = NewArrival("left-1", home, late.instance, late.body, late.birth, b"s" * 16)
    rig.store.enqueue([left], 1)
    signalled = set()
    for _ in range(60):
        rig.control("status")
        rig.unheard = rig.turn()
        if rig.unheard is not None:
            perform(rig, rig.unheard)
            caller.hear(without_controls(rig.unheard, caller))
        for told in starts:
            row = rig.row(told.instance)
            if row is not None and told.instance not in signalled:
                signalled.add(told.instance)
                caller.tell(rig.signal(told.instance, id=f"go-{told.instance}"))
        rig.hands.pass_ms(200)
    assert caller.unanswered == {}
    rig.check_chain()
    rows = rig.store.instances(Page(limit=100))
    states = {(row.definition == child.hash, row.parent is None): row.state for row in rows}
    return {row.id: row.state for row in rows}, states, store.calls


def without_controls(decided, caller):
    """What callers are told; the answers to controls are nobody's."""
    return replace(decided, acks=[each for each in decided.acks if each[0] in caller.unanswered])


def perform(rig, decided):
    """What a dispatcher does: ask for marks, then call, then report."""
    for order in decided.orders:
        if order.marked:
            rig.waiting = getattr(rig, "waiting", {})
            rig.waiting[order.key] = order
            rig.send(marks=[order.key])
        else:
            rig.send(rig.applied(order, {"n": 1}))
    for key, dispatch in decided.marked:
        order = rig.waiting.pop(key, None)
        if order is not None:
            rig.send(rig.applied(order, {"n": 1}, dispatch))


@pytest.fixture(scope="module")
def undisturbed():
    ends, states, calls = lived(fails_at=0)
    assert set(states.values()) == {"completed"}
    assert len(ends) == 5
    return ends, len(calls)


@pytest.mark.req("CORE-REC-1", "CORE-REC-3")
def test_whatever_call_fails_once_all_ends_as_if_none_had(undisturbed):
    ends, calls = undisturbed
    assert calls < LAST_CALL
    for number in range(1, calls + 1):
        found, _states, made = lived(fails_at=number)
        assert found == ends, f"call {number} was {made[number - 1]}"
