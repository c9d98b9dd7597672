"""Events and webhooks whose engine dies at every write: nothing is lost, nothing counts twice."""

from __future__ import annotations

from contextlib import suppress

import pytest

import detent
from detent.bootstrap.assemble import Parts
from detent.bootstrap.engine import Engine
from detent.bootstrap.settings import Settings, check
from detent.model.webhook import Delivery, Webhook
from detent.ports.store import Page
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database
from tests.acceptance.own_lists import agree

URL = "https://hooks.example/one"
PARAMS = {"events": ["a", "b"], "correlation_key": "k"}
LISTENER = detent.sequence("listener", detent.step("w", "wait_for_event", params=PARAMS))
EVENTS = [("a", "p1"), ("a", "p2"), ("b", "p3"), ("b", "p4")]


class Receiver:
    """The outside, which outlives every engine: the first message is refused once."""

    def __init__(self):
        self.sent = []

    async def post(self, _url, headers, _body, _timeout_ms):
        self.sent.append(headers["webhook-id"])
        return (500 if len(self.sent) == 1 else 200), {}, ""


def opened(store, receiver):
    settings = Settings(
        path=":memory:",
        clock="virtual",
        seed="test",
        webhooks=(Webhook(url=URL),),
        webhook_delivery=Delivery(backoff_ms=100),
    )
    parts = Parts(check(settings), store)
    try:
        parts.open((), receiver.post)
    except BaseException:
        with suppress(BaseException):
            parts.close()
        raise
    return Engine.over(parts)


def live(store, receiver):
    """One life: two instances wait for two events each, and whoever ends is told."""
    engine = opened(store, receiver)
    try:
        for key in ("first", "second"):
            engine.start(LISTENER, key=key)
        engine.advance(0)
        for name, producer in EVENTS:
            engine.events.send(name, "k", producer)
            engine.advance(0)
        engine.advance(60_000)
    finally:
        with suppress(Crash):
            engine.close()


def ending(connection, receiver):
    """What the store holds in the end, whichever of the two came first."""
    engine = opened(FaultyStore(connection), receiver)
    rows = engine.inspect.instances(Page()).items
    taken = [engine.inspect.show(row.id).outputs["w"]["all"] for row in rows]
    names = [[event["event_name"] for event in each] for each in taken]
    events = sorted(event["producer_event_id"] for each in taken for event in each)
    deliveries = engine.webhooks.list()
    for page in (Page(), Page(namespace="detent")):
        for row in engine.inspect.instances(page).items:
            assert engine.replay(row.id).identical
    assert engine.inspect.verify().valid
    engine._parts.read(lambda store: agree(store, "default"))
    told = sorted(each.id for each in deliveries if each.delivered)
    engine.close()
    assert set(receiver.sent) == set(told)
    return names, events, len(told), [each.status for each in engine_events(connection, receiver)]


def engine_events(connection, receiver):
    engine = opened(FaultyStore(connection), receiver)
    found = engine.events.list()
    engine.close()
    return found


@pytest.mark.req("SEQ-WHK-1", "SEQ-WHK-2", "CORE-REC-1")
def test_every_event_goes_to_one_step_and_every_end_is_told_whenever_the_engine_dies():
    connection, receiver = new_database(1), Receiver()
    clean = FaultyStore(connection)
    live(clean, receiver)
    expected = ending(connection, receiver)
    assert expected == ([["a", "b"]] * 2, ["p1", "p2", "p3", "p4"], 2, ["consumed"] * 4)
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection, receiver = new_database(1), Receiver()
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)), receiver)
            live(FaultyStore(connection), receiver)
            assert ending(connection, receiver) == expected, f"{write}:{moment}"
            connection.close()
