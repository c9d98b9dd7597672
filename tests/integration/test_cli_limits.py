"""Limits and pools from the command line, with nobody else there and beside an owner."""

from __future__ import annotations

import datetime as dt

import pytest

from detent import Engine, sequence, step
from detent.cli import exits
from tests.unit.cli.commands import detent, process


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "s.db"
    Engine(path, clock="virtual", seed="limits").close()  # it is 2026-01-01T00:00Z for ever
    return lambda *arguments: detent("--db", path, *arguments)


@pytest.fixture
def pool(run):
    run("pool", "create", "boxes")
    run("pool", "add", "boxes", "anna@example.com", "--daily-cap", "40", "--weight", "2")
    return run


# limits -------------------------------------------------------------------------------------------


def test_a_limit_is_set_listed_closed_opened_and_deleted(run):
    made = run("limit", "set", "mailbox", "--max", "10", "--window", "1h", "-o", "json")
    assert made.code == exits.OK
    assert made.json["window_ms"] == 3_600_000
    shown = run("limit", "list").out.splitlines()[1].split()
    assert shown == ["mailbox", "10", "in", "1", "h", "0", "..........", "open"]
    closed = run("limit", "close", "mailbox", "--for", "2h", "-o", "json").json
    assert closed["closed_until_ms"] == 1_767_232_800_000
    assert "(in 2 h)" in run("limit", "list").out
    assert run("limit", "open", "mailbox").code == exits.OK
    assert run("limit", "show", "mailbox", "-o", "json").json["closed_until_ms"] is None
    assert "delete mailbox" in run("limit", "delete", "mailbox").out
    assert run("limit", "list", "-o", "json").json == {"limits": []}


def test_an_empty_list_says_how_to_make_the_first(run):
    assert "detent limit set" in run("limit", "list").out
    assert "detent pool create" in run("pool", "list").out


def test_a_limit_is_closed_until_an_instant(run):
    run("limit", "set", "mailbox", "--max", "1", "--window", "1d")
    run("limit", "close", "mailbox", "--until", "2026-01-02T03:00:00+02:00")
    shown = run("limit", "show", "mailbox", "-o", "json").json
    until = dt.datetime(2026, 1, 2, 1, tzinfo=dt.UTC)
    assert shown["closed_until_ms"] == int(until.timestamp() * 1000)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("set", "m", "--max", "0", "--window", "1h"), exits.USAGE, "for '--max'"),
        (("set", "m", "--max", "1", "--window", "soon"), exits.USAGE, "such as 90s, 10m"),
        (("set", "m", "--max", "1", "--window", "60"), exits.USAGE, "write 60s or 60ms"),
        (("set", "m", "--max", "1", "--window", "0s"), exits.USAGE, "for '--window'"),
        (("set", "m", "--max", "1", "--window", "400d"), exits.USAGE, "at most 366 days"),
        (("close", "mailbox", "--for", "soon"), exits.USAGE, "for '--for': expected a length"),
        (("set", "m", "--max", "many", "--window", "1h"), exits.USAGE, "usage"),
        (("set", "m", "--window", "1h"), exits.USAGE, "usage"),
        (("close", "m", "--for", "1h", "--until", "2027-01-01"), exits.USAGE, "usage"),
        (("close", "m"), exits.USAGE, "usage"),
        (("close", "mailbox", "--until", "noon"), exits.USAGE, "for '--until': expected a time"),
        (("close", "mailbox", "--until", "2020-01-01T00:00Z"), exits.NO, "until must lie ahead"),
        (("close", "mailbx", "--for", "1h"), exits.NOT_FOUND, "did you mean 'mailbox'"),
        (("close", "other", "--for", "1h"), exits.NOT_FOUND, "`detent limit set` makes one"),
        (("open", "mailbx"), exits.NOT_FOUND, "limit.unknown"),
        (("delete", "mailbx"), exits.NOT_FOUND, "limit.unknown"),
        (("show", "mailbx"), exits.NOT_FOUND, "did you mean 'mailbox'"),
    ],
)
def test_a_wrong_limit_leaves_a_sentence_a_code_and_nothing_else(run, arguments, code, said):
    run("limit", "set", "mailbox", "--max", "10", "--window", "1h")
    before = run("limit", "list").out
    answer = run("limit", *arguments)
    assert answer.code == code
    assert said in answer.err
    assert run("limit", "list").out == before


def test_lists_show_every_tenant_unless_one_is_named(run):
    run("limit", "set", "mailbox", "--max", "10", "--window", "1h", "--tenant", "acme")
    run("limit", "set", "letters", "--max", "10", "--window", "1h")
    run("pool", "create", "boxes", "--tenant", "acme")
    listed = run("limit", "list").out.splitlines()
    assert [line.split()[:2] for line in listed] == [
        ["tenant", "key"],
        ["acme", "mailbox"],
        ["default", "letters"],
    ]
    found = run("limit", "list", "-o", "json").json["limits"]
    assert [(each["tenant"], each["key"]) for each in found] == [
        ("acme", "mailbox"),
        ("default", "letters"),
    ]
    assert run("pool", "list").out.splitlines()[1].split()[:2] == ["acme", "boxes"]
    assert "tenant" not in run("limit", "list", "--tenant", "default").out


def test_tenants_do_not_see_each_others_limits(run):
    run("limit", "set", "mailbox", "--max", "10", "--window", "1h", "--tenant", "acme")
    assert run("limit", "list", "--tenant", "default", "-o", "json").json == {"limits": []}
    found = run("limit", "list", "--tenant", "acme", "-o", "json").json["limits"]
    assert [each["key"] for each in found] == ["mailbox"]
    assert run("limit", "delete", "mailbox").code == exits.NOT_FOUND


def test_the_gate_is_not_among_the_instances_of_the_tenant(pool):
    assert pool("instance", "list", "-o", "json").json["instances"] == []


def test_a_full_limit_shows_who_waits_and_until_when(tmp_path):
    path = tmp_path / "full.db"
    letter = sequence("letter", step("send", "noop", rate_limit_key="mailbox", pool="boxes"))
    with Engine(path, clock="virtual", seed="limits") as engine:
        engine.limits.set("mailbox", max=2, window="1h")
        engine.pools.create("boxes")
        engine.pools.add("boxes", "anna@example.com", daily_cap=8)
        for _ in range(5):
            engine.start(letter)
        engine.advance(60_000)
    shown = detent("--db", path, "limit", "list").out
    assert "##########" in shown
    assert "(in 59 min)" in shown
    found = detent("--db", path, "limit", "show", "mailbox", "-o", "json").json
    assert (found["used"], found["waiting"]) == (2, 3)
    assert "3 waiting" in detent("--db", path, "pool", "show", "boxes").out
    assert detent("--db", path, "pool", "list").out.split()[-4:] == ["resource", "2", "8", "3"]


def test_a_change_reaches_the_engine_that_owns_the_store(tmp_path):
    path = tmp_path / "owned.db"
    with Engine(path) as engine:
        made = process("--db", path, "limit", "set", "mailbox", "--max", "7", "--window", "1m")
        assert made.code == exits.OK, made.err
        assert engine.limits.show("mailbox").max == 7
        refused = process("--db", path, "pool", "add", "boxes", "anna@example.com")
        assert (refused.code, "pool.unknown" in refused.err) == (exits.NOT_FOUND, True)
        assert engine.pools.list() == []


# pools --------------------------------------------------------------------------------------------


def test_a_pool_shows_what_each_resource_may_do_today(pool):
    pool(
        *("pool", "add", "boxes", "ben@example.com", "--daily-cap", "50", "--warmup-days", "10"),
        *("--warmup-start-cap", "5", "--warmup-start", "2025-12-28", "--timezone", "Asia/Tokyo"),
    )
    shown = pool("pool", "show", "boxes").out
    assert "weighted, 2 resources" in shown
    assert "#####..... day 5 of 10, then 50" in shown
    found = pool("pool", "show", "boxes", "-o", "json").json["resources"]
    assert [each["cap_today"] for each in found] == [40, 23]
    assert [each["id"] for each in found] == ["anna@example.com", "ben@example.com"]
    listed = pool("pool", "list").out
    assert "2 resources" in listed
    assert "63" in listed


def test_the_bar_of_a_warm_up_is_in_proportion_and_never_empty(pool):
    pool("pool", "add", "boxes", "a", "--warmup-schedule", "5,10,20", "--daily-cap", "40")
    ramp = ("--daily-cap", "50", "--warmup-days", "28", "--warmup-start-cap", "5")
    pool("pool", "add", "boxes", "b", *ramp)
    shown = pool("pool", "show", "boxes").out
    assert "###....... day 1 of 3, then 40" in shown
    assert "#......... day 1 of 28, then 50" in shown
    assert "key" not in shown.splitlines()[1].split()  # every id is the key
    pool("pool", "add", "boxes", "b", "--id", "second")
    assert "key" in pool("pool", "show", "boxes").out.splitlines()[1].split()


def test_a_warm_up_is_drawn_before_and_after_it_too(pool):
    schedule = ("--warmup-schedule", "5,10,20", "--daily-cap", "20")
    pool("pool", "add", "boxes", "a", *schedule, "--warmup-start", "2026-01-05")
    pool("pool", "add", "boxes", "b", *schedule, "--warmup-start", "2025-12-01")
    shown = pool("pool", "show", "boxes").out
    assert "from 2026-01-05" in shown
    assert "done" in shown


def test_a_resource_is_changed_disabled_enabled_and_removed(pool):
    changed = pool("pool", "update", "boxes", "anna@example.com", "--weight", "5", "-o", "json")
    assert (changed.json["weight"], changed.json["daily_cap"]) == (5, 40)
    assert "disabled" in pool("pool", "disable", "boxes", "anna@example.com").out
    assert "1 resource, 1 disabled" in pool("pool", "list").out
    pool("pool", "enable", "boxes", "anna@example.com")
    assert "disabled" not in pool("pool", "show", "boxes").out
    assert pool("pool", "remove", "boxes", "anna@example.com").code == exits.OK
    assert "detent pool add boxes" in pool("pool", "show", "boxes").out
    assert pool("pool", "delete", "boxes").code == exits.OK
    assert pool("pool", "list", "-o", "json").json == {"pools": []}


def test_a_schedule_is_taken_away_by_an_empty_one(pool):
    pool("pool", "update", "boxes", "anna@example.com", "--warmup-schedule", "1,2,3")
    shown = pool("pool", "show", "boxes", "-o", "json").json["resources"][0]
    assert (shown["warmup_schedule"], shown["cap_today"]) == ([1, 2, 3], 1)
    pool("pool", "update", "boxes", "anna@example.com", "--warmup-schedule", "")
    shown = pool("pool", "show", "boxes", "-o", "json").json["resources"][0]
    assert (shown["warmup_schedule"], shown["cap_today"]) == (None, 40)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "boxes", "b", "--weight", "0"), exits.USAGE, "for '--weight'"),
        (("add", "boxes", "b", "--daily-cap", "-1"), exits.USAGE, "for '--daily-cap'"),
        (("add", "boxes", "b", "--timezone", "Mars/Olympus"), exits.USAGE, "calendar.zone"),
        (("add", "boxes", "b", "--warmup-start", "tomorrow"), exits.USAGE, "YYYY-MM-DD"),
        (("add", "boxes", "b", "--warmup-start", "2026-02-30"), exits.USAGE, "no day 2026-02-30"),
        (("add", "boxes", "b", "--warmup-schedule", "5;10"), exits.USAGE, "5,10,20"),
        (("add", "boxes", "b", "--warmup-start-cap", "5"), exits.NO, "needs warmup_days"),
        (("add", "boxes", "b", "--warmup-start", "2026-02-02"), exits.NO, "warmup_schedule"),
        (("add", "boxs", "b"), exits.NOT_FOUND, "did you mean 'boxes'"),
        (("update", "boxes", "b", "--weight", "2"), exits.NOT_FOUND, "resource.unknown"),
        (("update", "boxes", "anna@example.com"), exits.USAGE, "usage"),
        (("create", "boxes", "--strategy", "fastest"), exits.USAGE, "usage"),
        (("show", "boxs"), exits.NOT_FOUND, "did you mean 'boxes'"),
        (("remove", "boxes", "b"), exits.NOT_FOUND, "no resource 'b' in pool 'boxes'"),
        (("delete", "boxs"), exits.NOT_FOUND, "pool.unknown"),
    ],
)
def test_a_wrong_pool_leaves_a_sentence_a_code_and_nothing_else(pool, arguments, code, said):
    before = pool("pool", "list", "-o", "json").out
    answer = pool("pool", *arguments)
    assert answer.code == code
    assert said in answer.err
    assert pool("pool", "list", "-o", "json").out == before
