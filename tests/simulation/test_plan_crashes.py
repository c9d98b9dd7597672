"""A run of a plan whose engine dies at every write, in every way: its contact hears things once."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

import pytest

import detent
from detent.model.errors import RequestError
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database

CONTACTS = [{"id": name, "email": f"{name}@example.com"} for name in ("ann", "bob")]
PLAN = detent.plan(
    "p",
    detent.send_email("hello", "t"),
    detent.wait("w", hours=2),
    detent.branch("b", ('events.hasOpen("hello")', "again"), default="quiet"),
    detent.send_email("again", "t"),
    detent.end("done", "twice"),
    detent.end("quiet", "once"),
    exit_conditions=[detent.exit_when("contact.unsubscribed", "unsubscribed")],
)


def email(sent):
    @detent.handler("email", on_doubt="once")
    def email(ctx, template: str):
        sent.append((ctx.plan["contact"]["id"], ctx.block))
        return {"status": "delivered"}

    return [email]


def live(store, sent):
    """One life of an engine: enroll, start, and tell what is not told yet."""
    engine = engine_over(store, email(sent))
    try:
        ann, bob = (
            engine.plans.enroll(PLAN, each, {"n": 1}, if_enrolled="return") for each in CONTACTS
        )
        for each, run in zip(CONTACTS, (ann, bob), strict=True):
            engine.plans.execute(PLAN, each, if_enrolled="return")
            assert engine.plans.get_run(run.id).contact["id"] == each["id"]
        engine.advance(0)
        for run, kind in ((ann, "opened"), (bob, "unsubscribed")):
            with suppress(RequestError):  # it may have ended by this very event before
                engine.plans.ingest_event(run.id, kind, "hello", id=f"{kind}-1")
        for run in (ann, bob):
            for doubt in engine.inspect.doubts(run.id):
                engine.resolve(run.id, doubt.effect, "happened", {"status": "delivered"})
        engine.advance(dt.timedelta(hours=9))
        for run in (ann, bob):
            for doubt in engine.inspect.doubts(run.id):
                engine.resolve(run.id, doubt.effect, "happened", {"status": "delivered"})
        engine.advance(0)
    finally:
        with suppress(Crash):
            engine.close()


def ending(connection):
    """How every run ended, proved.

    Which steps it completed is left out: a send that nobody knew about when its run ended is none.
    """
    engine = engine_over(FaultyStore(connection), email([]))
    runs = engine.plans.list_runs().items
    assert engine.inspect.verify().valid
    for run in runs:
        assert engine.replay(run.id).identical
    engine.close()
    return sorted((run.contact["id"], run.status, run.outcome) for run in runs)


@pytest.mark.req("PLAN-5", "PLAN-RUN-4", "CORE-REC-1")
def test_nobody_hears_anything_twice_whenever_the_engine_dies():
    connection = new_database(1)
    clean, sent = FaultyStore(connection), []
    live(clean, sent)
    expected = ending(connection)
    assert expected == [("ann", "COMPLETED", "twice"), ("bob", "COMPLETED", "unsubscribed")]
    assert sorted(sent) == [("ann", "again"), ("ann", "hello"), ("bob", "hello")]
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection, sent = new_database(1), []
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)), sent)
            live(FaultyStore(connection), sent)
            assert ending(connection) == expected, f"{write}:{moment}"
            assert len(set(sent)) == len(sent), f"{write}:{moment} {sent}"
            connection.close()
