"""Schedules that cannot be: refused at the call, with a sentence and a code, and nothing stored."""

from __future__ import annotations

import pytest

from detent import sequence, step
from tests.acceptance.stage import digest, refused, virtual

NIGHTLY = sequence("nightly", step("work", "noop"))


@pytest.fixture
def engine():
    with virtual() as engine:
        engine.deploy(NIGHTLY)
        yield engine


BAD = {
    "impossible": (("nightly", "0 0 30 2 *"), {}, "calendar.cron"),
    "no expression": (("nightly", "often"), {}, "calendar.cron"),
    "over": (("nightly", "0 0 0 1 1 ? 2020"), {}, "calendar.cron"),
    "number": (("nightly", 5), {}, "request.invalid"),
    "zone": (("nightly", "0 * * * *"), {"timezone": "Europe/Atlantis"}, "calendar.zone"),
    "sequence": (("nobody", "0 * * * *"), {}, "definition.unknown"),
    "version": (("nightly@9", "0 * * * *"), {}, "definition.unknown"),
    "definition": ((7, "0 * * * *"), {}, "request.invalid"),
    "overlap": (("nightly", "0 * * * *"), {"overlap": "queue"}, "request.invalid"),
    "missed": (("nightly", "0 * * * *"), {"missed": "some"}, "request.invalid"),
    "limit": (("nightly", "0 * * * *"), {"missed_limit": 101}, "request.invalid"),
    "priority": (("nightly", "0 * * * *"), {"priority": "Urgent"}, "request.invalid"),
    "metadata": (("nightly", "0 * * * *"), {"metadata": "x"}, "request.invalid"),
    "data": (("nightly", "0 * * * *"), {"data": {"a": object()}}, "payload.invalid"),
    "large": (("nightly", "0 * * * *"), {"data": "x" * 262_145}, "payload.too_large"),
    "enabled": (("nightly", "0 * * * *"), {"enabled": "yes"}, "request.invalid"),
    "option": (("nightly", "0 * * * *"), {"when": "now"}, "request.invalid"),
    "id": (("nightly", "0 * * * *"), {"id": ""}, "request.invalid"),
    "tenant": (("nightly", "0 * * * *"), {"tenant": ""}, "request.invalid"),
}


@pytest.mark.req("SEQ-TIM-3")
@pytest.mark.parametrize(("args", "options", "code"), BAD.values(), ids=BAD)
def test_a_bad_schedule_is_refused_and_nothing_is_stored(tmp_path, args, options, code):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        engine.deploy(NIGHTLY)
        before = digest(path)
        with refused(code):
            engine.crons.create(*args, **options)
        assert digest(path) == before


@pytest.mark.req("SEQ-TIM-3")
def test_a_bad_change_is_refused_and_the_schedule_stays_as_it_is(engine):
    cron = engine.crons.create("nightly", "0 * * * *")
    for changes, code in (
        ({"expr": "0 0 31 4 *"}, "calendar.cron"),
        ({"expr": "0 0 0 1 1 ? 2020"}, "calendar.cron"),
        ({"timezone": "Nowhere"}, "calendar.zone"),
        ({"overlap": "x"}, "request.invalid"),
        ({"definition": "nobody"}, "definition.unknown"),
    ):
        with refused(code):
            engine.crons.update(cron.id, **changes)
    for changes, words in (
        ({"sequence": "no-such", "version": 9}, "has no setting 'sequence'"),
        ({"definition": "nightly", "version": 9}, "has no setting 'version'"),
        ({"overlab": "skip"}, "did you mean 'overlap'?"),
        ({"overlap_policy": "skip"}, "'overlap_policy' is called 'overlap' here"),
        ({"overlap": "queue"}, "overlap must be one of allow, skip"),
        ({"missed": "some"}, "missed must be one of one, all, none"),
        ({"expr": 5}, "expr must be text"),
    ):
        with refused("request.invalid") as told:
            engine.crons.update(cron.id, **changes)
        assert words in told.value.message
    with refused("cron.not_found"):
        engine.crons.update("nobody", expr="0 * * * *")
    assert engine.crons.show(cron.id) == cron


@pytest.mark.req("SEQ-TIM-3")
def test_data_must_fit_what_a_schedule_starts(engine):
    schema = {"type": "object", "required": ["n"]}
    strict = sequence("strict", step("work", "noop"), input_schema=schema)
    with refused("payload.schema"):
        engine.crons.create(strict, "0 * * * *")
    assert engine.crons.create(strict, "0 * * * *", data={"n": 1}).data == {"n": 1}


@pytest.mark.req("SEQ-TIM-1", "SEQ-TIM-3")
@pytest.mark.parametrize("holidays", ["2026-01-01", [20260101], ["2026-13-01"], {"a": 1}])
def test_holidays_that_are_no_dates_are_refused_at_the_start(tmp_path, holidays):
    delay = {"duration": 0, "business_days_only": True}
    counting = sequence("counting", step("work", "noop", delay=delay))
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        engine.deploy(counting)
        before = digest(path)
        for call in (
            lambda: engine.start(counting, config={"holidays": holidays}),
            lambda: engine.crons.create(counting, "0 * * * *", config={"holidays": holidays}),
        ):
            with refused("calendar.date"):
                call()
        assert digest(path) == before
        assert engine.start(counting, config={"holidays": ["2026-01-01"]})
        assert engine.start(NIGHTLY, config={"holidays": holidays})
