"""Schedules as services read and submit them."""

from __future__ import annotations

import pytest

from detent import Engine, sequence, step
from detent.model.errors import RequestError
from detent.model.ids import partition_of
from detent.ports.store import NewArrival
from detent.service import crons

WORK = sequence("work", step("work", "noop"))


@pytest.fixture
def engine():
    with Engine(clock="virtual", seed="crons") as engine:
        yield engine


def code_of(call):
    with pytest.raises(RequestError) as refusal:
        call()
    return refusal.value.code


def test_of_two_who_make_the_same_schedule_at_once_one_is_told_so(engine):
    """Both looked before either was there; the second one's start found the first one's."""
    engine.crons.create(WORK, "0 * * * *", id="s")
    look = engine.inspect.look
    seed = look(lambda store: crons.read_snapshot(store, crons.find_cron(store, "s", None))).seed
    look(lambda store: crons.check_ours(store, "default", "s", seed))
    assert code_of(
        lambda: look(lambda store: crons.check_ours(store, "default", "s", "another"))
    ) == ("cron.exists")


def test_callers_words_become_settings_and_wrong_ones_are_refused():
    given = {"expr": "0 * * * *", "overlap": "skip", "missed": "all", "priority": "Low"}
    assert crons.settings_of(given) == {
        "cron_expr": "0 * * * *",
        "overlap_policy": "skip",
        "missed_policy": "all",
        "priority": 0,
    }
    for wrong in ({"priority": 0}, {"fires": 3}, {"running": []}, {"overlap": None}):
        assert code_of(lambda wrong=wrong: crons.settings_of(wrong)) == "request.invalid"


def test_an_expression_must_have_a_time_to_come():
    once = {"cron_expr": "0 0 0 1 1 ? 2030", "timezone": "Asia/Tokyo"}
    fire = 1_893_423_600_000
    crons.check_future(once, fire - 1)
    assert code_of(lambda: crons.check_future(once, fire)) == "calendar.cron"


def test_a_start_that_nobody_has_taken_in_is_not_shown_yet(tmp_path):
    path = tmp_path / "s.db"
    with Engine(path, clock="virtual", seed="crons") as engine:
        engine.crons.create(WORK, "0 * * * *", id="taken")
        parts = engine._parts
        settings = {"cron_expr": "0 * * * *", "sequence": "work"}
        made = crons.cron_start(settings, ("default", "default"), parts.moment(), "left")
        left = arrival_of(made, parts)
        parts.write(lambda store: store.enqueue([left], 0))
        assert [each.id for each in engine.crons.list()] == ["taken"]
        assert code_of(lambda: engine.crons.show("left")) == "cron.not_found"
    with Engine(path, clock="virtual", seed="crons") as engine:
        engine.advance(0)
        assert [each.id for each in engine.crons.list()] == ["taken", "left"]


def arrival_of(made, parts):
    p = partition_of(made.instance, parts.meta.partitions)
    return NewArrival(f"start:{made.instance}", p, made.instance, made.body, made.birth, b"0" * 16)
