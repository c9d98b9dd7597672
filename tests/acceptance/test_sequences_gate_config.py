"""Limits and pools are configured live: journaled, proved by the chain, the same in a replay."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest

from detent import Engine, Failed, handler, retry, sequence, step
from detent.bootstrap.visitor import Visitor
from detent.service.gates import gate_id
from tests.acceptance.stage import HOUR_MS, actions, dump, refused, virtual

GATE = gate_id("default")


def caps(engine, pool, days):
    """What each resource of a pool may do today and on the days after."""
    found = []
    for _ in range(days):
        found.append([each.cap_today for each in engine.pools.show(pool).resources])
        engine.advance(dt.timedelta(days=1))
    return found


def proved(engine):
    """Prove that the chain is whole and that the gate's record gives the same again."""
    assert engine.inspect.verify().valid
    assert engine.replay(GATE).identical


@pytest.mark.req("CORE-AUD-2")
def test_every_change_of_a_limit_is_in_the_journal_of_the_gate():
    with virtual() as engine:
        engine.limits.set("mailbox", max=10, window="1h")
        engine.limits.close("mailbox", for_=dt.timedelta(minutes=5))
        engine.limits.open("mailbox")
        engine.limits.delete("mailbox")
        told = [e.input for e in engine.inspect.audit(GATE) if e.action == "config.changed"]
        assert [each["verb"] for each in told] == [
            "limit.set",
            "limit.close",
            "limit.open",
            "limit.delete",
        ]
        assert told[0]["args"] == {"key": "mailbox", "max": 10, "window_ms": HOUR_MS}
        assert engine.limits.list() == []
        proved(engine)


@pytest.mark.req("SEQ-LIM-2")
def test_resources_are_added_and_removed_while_the_engine_runs():
    with virtual() as engine:
        engine.pools.create("boxes")
        engine.pools.add("boxes", "anna@example.com", weight=3)
        engine.pools.add("boxes", "ben@example.com", id="b", name="Ben")
        engine.pools.update("boxes", "b", enabled=False)
        shown = engine.pools.show("boxes")
        assert [(each.id, each.weight, each.enabled) for each in shown.resources] == [
            ("anna@example.com", 3, True),
            ("b", 1, False),
        ]
        engine.pools.remove("boxes", "anna@example.com")
        assert [each.name for each in engine.pools.show("boxes").resources] == ["Ben"]
        proved(engine)


@pytest.mark.req("SEQ-LIM-2")
def test_adding_the_same_resource_again_changes_nothing_and_none_is_there_twice():
    with virtual() as engine:
        engine.pools.create("boxes")
        first = engine.pools.add("boxes", "anna@example.com", daily_cap=50, warmup_days=28)
        engine.advance(dt.timedelta(days=3))
        again = engine.pools.add("boxes", "anna@example.com", daily_cap=50, warmup_days=28)
        assert (again.warmup_start, first.warmup_start) == (dt.date(2026, 1, 1),) * 2
        assert len(engine.pools.show("boxes").resources) == 1


@pytest.mark.req("SEQ-LIM-3")
def test_the_cap_of_each_day_rises_by_the_day_of_the_resources_own_zone():
    with virtual() as engine:  # it is 2026-01-01T00:00Z
        engine.pools.create("boxes")
        ramp = {"daily_cap": 50, "warmup_days": 3, "warmup_start_cap": 5}
        engine.pools.add("boxes", "utc", **ramp)
        engine.pools.add("boxes", "york", timezone="America/New_York", **ramp)
        engine.pools.add("boxes", "list", warmup_schedule=[5, 8, 20], daily_cap=20)
        assert [str(each.warmup_start) for each in engine.pools.show("boxes").resources] == [
            "2026-01-01",
            "2025-12-31",
            "2026-01-01",
        ]
        engine.advance(dt.timedelta(hours=4))
        assert caps(engine, "boxes", 2) == [[5, 5, 5], [20, 20, 8]]
        engine.advance(dt.timedelta(hours=1))  # midnight in New York has passed
        assert caps(engine, "boxes", 2) == [[35, 50, 20], [50, 50, 20]]
        proved(engine)


def test_a_refused_change_says_why_and_the_configuration_stays():
    with virtual() as engine:
        engine.limits.set("mailbox", max=10, window="1h")
        engine.pools.create("boxes")
        engine.pools.add("boxes", "anna@example.com")
        before = engine.inspect.show(GATE).kv
        for code, wrong in (
            ("limit.invalid", lambda: engine.limits.set("mailbox", max=0, window="1h")),
            ("limit.invalid", lambda: engine.limits.set("mailbox", max=1, window="-1h")),
            ("limit.invalid", lambda: engine.limits.set("mailbox", max=1, window=0)),
            ("limit.invalid", lambda: engine.limits.set("mailbox", max=1, window=float("nan"))),
            ("limit.invalid", lambda: engine.limits.close("mailbox")),
            ("limit.invalid", lambda: engine.limits.close("mailbox", until=engine.now())),
            (
                "request.invalid",
                lambda: engine.limits.close("mailbox", until=dt.datetime(2030, 1, 1)),  # noqa: DTZ001
            ),
            ("limit.unknown", lambda: engine.limits.delete("mailbx")),
            ("limit.unknown", lambda: engine.limits.show("mailbx")),
            ("pool.invalid", lambda: engine.pools.create("boxes", "fastest")),
            ("pool.invalid", lambda: engine.pools.add("boxes", "b", weight=0)),
            ("pool.invalid", lambda: engine.pools.add("boxes", "b", wieght=2)),
            ("pool.invalid", lambda: engine.pools.add("boxes", "b", warmup_days=9)),
            ("calendar.zone", lambda: engine.pools.add("boxes", "b", timezone="Mars/Olympus")),
            ("pool.unknown", lambda: engine.pools.add("boxs", "b")),
            ("pool.unknown", lambda: engine.pools.delete("boxs")),
            ("resource.unknown", lambda: engine.pools.update("boxes", "b", weight=2)),
            ("resource.unknown", lambda: engine.pools.remove("boxes", "b")),
            (
                "request.invalid",
                lambda: engine.pools.update("boxes", "anna@example.com", resource_key="eve"),
            ),
            ("request.invalid", lambda: engine.limits.set("m", max=1, window="1h", tenant="")),
        ):
            with refused(code):
                wrong()
        assert engine.inspect.show(GATE).kv == before
        proved(engine)


def test_a_refused_first_change_leaves_not_even_a_gate(tmp_path):
    path = tmp_path / "s.db"
    with virtual(path) as engine:
        before = dump(path)
        for code, wrong in (
            ("limit.invalid", lambda: engine.limits.set("mailbox", max=0, window="1h")),
            ("limit.unknown", lambda: engine.limits.delete("mailbox")),
            ("limit.unknown", lambda: engine.limits.close("mailbox", for_="1h")),
            ("pool.unknown", lambda: engine.pools.add("boxes", "anna@example.com")),
        ):
            with refused(code):
                wrong()
        assert engine.limits.list() == []
        assert engine.pools.list() == []
        assert dump(path) == before
        engine.limits.set("mailbox", max=1, window="1h")
        assert dump(path) != before


def test_tenants_have_gates_of_their_own():
    with virtual() as engine:
        engine.limits.set("mailbox", max=1, window="1h", tenant="acme")
        engine.limits.set("mailbox", max=2, window="1h")
        assert engine.limits.show("mailbox", tenant="acme").max == 1
        assert engine.limits.show("mailbox").max == 2
        with refused("limit.unknown"):
            engine.limits.show("mailbox", tenant="other")


def test_the_configuration_survives_a_restart(tmp_path):
    path = tmp_path / "s.db"
    with virtual(path) as engine:
        engine.limits.set("mailbox", max=10, window="1h")
        engine.pools.create("boxes", "round_robin")
        engine.pools.add("boxes", "anna@example.com", daily_cap=9)
        before = (engine.limits.list(), engine.pools.list())
    with virtual(path) as engine:
        assert (engine.limits.list(), engine.pools.list()) == before
        engine.limits.set("mailbox", max=11, window="1h")
        assert actions(engine, GATE).count("run.created") == 1
        proved(engine)


def test_a_visitor_changes_limits_through_the_owner(tmp_path):
    path = tmp_path / "s.db"
    with Engine(path) as engine, Visitor(path) as visitor:
        assert visitor.limits.list() == []
        visitor.limits.set("mailbox", max=3, window="1m")
        visitor.pools.create("boxes")
        visitor.pools.add("boxes", "anna@example.com", weight=2)
        assert engine.limits.show("mailbox").max == 3
        assert visitor.pools.show("boxes") == engine.pools.show("boxes")
        with refused("limit.unknown"):
            visitor.limits.delete("mailbx")
        assert engine.inspect.verify().valid


def test_the_verbs_can_be_awaited():
    async def story(engine):
        await engine.aio.limits.set("mailbox", max=3, window="1m")
        await engine.aio.pools.create("boxes")
        await engine.aio.pools.add("boxes", "anna@example.com")
        with refused("limit.unknown"):
            await engine.aio.limits.delete("mailbx")
        return await engine.aio.limits.list()

    with virtual() as engine:
        assert [each.key for each in asyncio.run(story(engine))] == ["mailbox"]


@pytest.mark.parametrize(
    ("window", "ms"),
    [("1h", HOUR_MS), (1_500, 1_500), ("1s500ms", 1_500), (dt.timedelta(seconds=90), 90_000)],
)
def test_a_window_is_written_as_every_other_duration(window, ms):
    with virtual() as engine:
        assert engine.limits.set("mailbox", max=1, window=window).window_ms == ms


# how it stands ------------------------------------------------------------------------------------


@handler("send_through_a_gate")
def send() -> dict[str, str]:
    return {}


LETTER = sequence("letter", step("send", send, rate_limit_key="mailbox", pool="boxes"))


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-2")
def test_a_limit_and_a_pool_tell_what_is_used_who_waits_and_when_there_is_room():
    with virtual(handlers=[send]) as engine:
        engine.limits.set("mailbox", max=2, window="1h")
        engine.pools.create("boxes")
        engine.pools.add("boxes", "anna@example.com", daily_cap=3)
        began = engine.now()
        for _ in range(5):
            engine.start(LETTER)
        engine.advance(dt.timedelta(minutes=1))
        mailbox, boxes = engine.limits.show("mailbox"), engine.pools.show("boxes")
        assert (mailbox.used, mailbox.waiting, boxes.waiting) == (2, 3, 3)
        assert (boxes.resources[0].used_today, boxes.resources[0].free_ms) == (2, None)
        room = instant(mailbox.free_ms)
        assert dt.timedelta(hours=1) <= room - began <= dt.timedelta(hours=1, seconds=1)

        engine.advance(dt.timedelta(hours=2))  # one more, and then the cap of the day holds
        mailbox, boxes = engine.limits.show("mailbox"), engine.pools.show("boxes")
        assert (mailbox.used, mailbox.waiting, mailbox.free_ms) == (0, 2, None)
        assert boxes.resources[0].used_today == 3
        assert instant(boxes.resources[0].free_ms) == began + dt.timedelta(days=1)

        engine.run_until_idle()
        assert (engine.limits.show("mailbox").waiting, engine.pools.show("boxes").waiting) == (0, 0)
        proved(engine)


def test_a_limit_that_a_handler_closed_says_until_when():
    calls = []

    @handler("send_too_fast")
    def send_too_fast() -> dict[str, str]:
        calls.append(1)
        if len(calls) == 1:
            raise Failed("slow down", retry_after=60)
        return {}

    again = retry(3, initial_backoff=1)
    letter = sequence("l", step("send", send_too_fast, rate_limit_key="mailbox", retry=again))
    with virtual(handlers=[send_too_fast]) as engine:
        engine.limits.set("mailbox", max=9, window="1h")
        began = engine.now()
        engine.start(letter)
        engine.advance(dt.timedelta(seconds=1))
        assert instant(engine.limits.show("mailbox").closed_until_ms) == began + dt.timedelta(
            minutes=1
        )
        engine.run_until_idle()
        assert engine.limits.show("mailbox").closed_until_ms is None
        assert engine.limits.show("mailbox").used == 2


def instant(ms):
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
