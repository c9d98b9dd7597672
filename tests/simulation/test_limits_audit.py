"""Worlds with limits: they use what there is, and their auditor is able to fail."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from detent.testing.auditing_limits import GateAudit
from detent.testing.driving import Drive, Progress
from detent.testing.faulty import FaultyStore
from detent.testing.gate_books import Books, Clock, Use, in_window
from detent.testing.outside import Outside, Wrong
from detent.testing.simulation import new_database, simulate
from detent.testing.standing_limits import Standing, overtaken
from detent.testing.workload import LIMITED, world_of

EPOCH_MS = 1_767_225_600_000  # 1 January 2026, a Thursday
CLOCK = Clock(EPOCH_MS, 100)
HOUR = 36_000  # ticks
USE = Use("i", "a", 0, 1, ("mail",), "", "", "", "", waited=False)


def limited(seed):
    """A world with limits after a run without a crash: its store and the ticks it ended at."""
    world, connection = world_of(seed), new_database(seed)
    Drive(world, FaultyStore(connection), Outside(), Progress()).run()
    (tick,) = connection.execute("SELECT max(tick) FROM journal").fetchone()
    return world, connection, tick


def audit_of(world, connection):
    audit = GateAudit(world, connection, CLOCK)
    audit.read()
    return audit


def test_worlds_with_limits_meet_everything_that_can_hold_them_back():
    met = {}
    for seed in range(LIMITED, 60 * LIMITED, LIMITED):
        _, connection, _ = limited(seed)
        for tick, body in connection.execute("SELECT tick, body FROM journal"):
            read = json.loads(body)
            for action, _, *detail in read["entries"]:
                if action == "wait.started":
                    rule = detail[0].get("for", "").partition(":")[0]
                    met[detail[0]["kind"], rule if detail[0]["kind"] == "gate" else ""] = None
                met[action, ""] = None
            for key, fact in read["facts"].items():
                if key.startswith("gate:"):
                    met["answer", fact["state"]] = None
            wanted = [int(k.rpartition(":")[2]) for k in read["facts"] if "calendar:window:" in k]
            if "granted" in str(read["facts"]) and any(tick - each > 24 * HOUR for each in wanted):
                met["in line while the window was shut", ""] = None
        connection.close()
    rules = [("gate", "limit"), ("gate", "pool"), ("gate", "resource"), ("slot", "")]
    waits = [("window", ""), ("delay", ""), ("retry", "")]
    said = [("answer", state) for state in ("granted", "deferred")]
    said.append(("in line while the window was shut", ""))
    noted = [("config.changed", ""), ("gate.closed", ""), ("run.paused", "")]
    assert [each for each in (*rules, *waits, *said, *noted) if each not in met] == []


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-2", "SEQ-LIM-3", "SEQ-LIM-4", "SEQ-LIM-6", "CORE-REC-1")
@pytest.mark.req("SEQ-TIM-1", "SEQ-TIM-2", "CORE-EXP-1")
@pytest.mark.parametrize("part", range(4))
def test_no_window_is_exceeded_or_left_unused_whenever_the_engine_dies(part):
    for seed in range(LIMITED * (20 + part), LIMITED * 36, LIMITED * 4):
        report = simulate(seed, sample=10)
        assert report.failures == [], f"python -m detent.testing.simulate --seed {seed}"


# The auditor must be able to fail ----------------------------------------------------------------


def test_a_window_that_holds_one_too_many_is_found():
    books = Books(CLOCK)
    books.change("limit.set", {"key": "mail", "max": 2, "window_ms": 3_600_000}, 0)
    assert [books.use(USE._replace(tick=tick)) for tick in (0, 10, HOUR + 1)] == ["", "", ""]
    assert not books.free("mail", HOUR + 1)
    assert books.frees_at("mail", HOUR + 1) == HOUR + 11
    assert books.use(USE._replace(tick=HOUR + 10)).startswith("over: mail allows 2")


def test_a_use_of_a_closed_key_is_found():
    books = Books(CLOCK)
    books.close(["mail"], 50)
    assert books.use(USE._replace(tick=50)) == ""
    assert books.use(USE._replace(tick=49)) == "mail is closed until 50, and was used at 49"


def test_a_cap_of_a_day_and_a_resource_that_is_out_are_kept():
    books = Books(CLOCK)
    books.change("pool.set", {"name": "boxes"}, 0)
    box = {"pool": "boxes", "id": "a", "resource_key": "a@x", "timezone": "Europe/Berlin"}
    books.change("resource.set", {**box, "daily_cap": 1}, 0)
    use = USE._replace(keys=(), pool="boxes", resource="a@x")
    assert books.use(use) == ""
    assert books.use(use._replace(tick=23 * HOUR)) == ""  # midnight in Berlin
    assert books.use(use._replace(tick=23 * HOUR + 1)).startswith("over: a@x has 2 of 1")
    books.change("resource.set", {"pool": "boxes", "id": "a", "enabled": False}, 0)
    assert books.use(use._replace(tick=60 * HOUR)) == "the disabled resource a@x is used"


def test_a_window_over_midnight_is_open_when_the_wall_says_so():
    window = {"start": "20:00", "end": "11:00", "holidays": ["2026-01-02"]}
    hours = [1, 11, 20, 26, 44, 68]  # after the first midnight of the year
    begin = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as the wall shows it
    shown = [in_window(window, begin + dt.timedelta(hours=hour)) for hour in hours]
    assert shown == [True, False, True, True, False, True]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM gate_row WHERE kind = 'use'", "gate counts 0 of"),
        ("DELETE FROM gate_row WHERE kind = 'day'", "gate counts 0 of"),
        ("INSERT INTO gate_row VALUES ('default', 'ask', 'x:1', 0, x'00')", "leaked: of ask"),
        ("INSERT INTO gate_row VALUES ('default', 'slot', 'x', 0, x'00')", "leaked: of slot"),
    ],
)
def test_rows_of_a_gate_that_tell_another_story_are_found(sql, said):
    found = {}
    for seed in range(LIMITED, 12 * LIMITED, LIMITED):
        world, connection, tick = limited(seed)
        audit_of(world, connection).stand(tick)
        connection.execute(sql)
        try:
            audit_of(world, connection).stand(tick)
        except Wrong as wrong:
            found[str(wrong)] = None
        connection.close()
    assert any(said in each for each in found)


def test_a_ticket_left_over_when_all_have_ended_is_found():
    world, connection, _ = limited(LIMITED)
    audit = audit_of(world, connection)
    audit.finish(Outside())
    connection.execute("INSERT INTO gate_row VALUES ('default', 'ask', 'x:1', 0, x'00')")
    with pytest.raises(Wrong, match="leaked: all have ended"):
        audit.finish(Outside())


def test_who_passes_somebody_that_came_before_is_found():
    early = Standing("first", "default", 1, 5, ("mail",), "", "", "", back=False)
    late = early._replace(instance="i", since=7)
    before = {("first", "1"): early, ("i", "1"): late}
    use = ("default", USE._replace(tick=9, waited=True))
    assert overtaken([use], {("first", "1"): early}, before).startswith("overtaken: first")
    assert overtaken([use], {}, before) == ""
    back = {**before, ("i", "1"): late._replace(back=True)}
    assert overtaken([use], {("first", "1"): early}, back) == ""
