"""A schedule whose engine dies at every write, in every way: each fire starts one instance."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

import pytest

from detent import sequence, wait
from detent.model.errors import RequestError
from detent.ports.store import Page
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database

LONG = sequence("long", wait("w", duration=90 * 60_000))
LAST = dt.timedelta(hours=5, minutes=30)


def live(store, overlap):
    """One life of an engine: make the schedule unless it is there, and go on to the end."""
    engine = engine_over(store)
    try:
        try:
            cron = engine.crons.create(LONG, "0 * * * *", id="s", overlap=overlap)
        except RequestError as error:
            if error.code != "cron.exists":
                raise
            engine.advance(0)
            cron = engine.crons.show("s")
        created = dt.datetime.fromtimestamp(cron.created_ms / 1000, dt.UTC)
        engine.advance(to=created + LAST)
    finally:
        with suppress(Crash):
            engine.close()


def ending(connection):
    """What the store holds in the end, without the numbers that only the order of births gives."""
    engine = engine_over(FaultyStore(connection))
    cron = engine.crons.show("s")
    found = engine.inspect.instances(Page(parent=cron.instance)).items
    assert engine.inspect.verify().valid
    assert engine.replay(cron.instance).identical
    engine.close()
    return cron, sorted((each.id, each.state, each.created_ms) for each in found)


@pytest.mark.req("SEQ-TIM-3", "CORE-REC-1")
@pytest.mark.parametrize("overlap", ["allow", "buffer_one", "cancel_previous"])
def test_a_fire_starts_one_instance_whenever_the_engine_dies(overlap):
    connection = new_database(1)
    clean = FaultyStore(connection)
    live(clean, overlap)
    expected = ending(connection)
    assert expected[0].fires >= 3
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection = new_database(1)
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)), overlap)
            live(FaultyStore(connection), overlap)
            assert ending(connection) == expected, f"{overlap} {write}:{moment}"
            connection.close()
