"""Holidays of countries are resolved where a definition is made, and pinned by its version."""

from __future__ import annotations

import pytest

from detent.calendar import country_dates
from detent.definition import diff, normalize, sequence, step, to_wire, unknown_fields
from tests.unit.definition.samples import a_sequence, a_step, faults_of

OURS = {"OURS": ["2026-10-03", "2026-05-01"]}


def waiting(name="s", **options):
    return a_step(name, delay={"duration": 1, "business_days_only": True, **options})


def test_holidays_that_come_along_are_pinned_in_order():
    made = normalize(a_sequence(waiting(country="OURS"), calendars=OURS))

    assert made.body.calendars == {"OURS": ("2026-05-01", "2026-10-03")}


def test_the_same_country_is_pinned_once_wherever_it_is_named():
    deep = {"type": "parallel", "id": "p", "branches": [[waiting("x", country="OURS")]]}
    raw = a_sequence(
        waiting("a", country="OURS"),
        a_step("b", send_window={"country": "OURS"}),
        deep,
        on_failure=[waiting("c", country="OURS")],
        calendars=OURS,
    )

    assert list(normalize(raw).body.calendars) == ["OURS"]


def test_a_calendar_that_no_block_names_is_left_out_and_told():
    raw = a_sequence(waiting(country="OURS"), calendars=OURS | {"OUR": ["2026-01-01"]})

    assert list(normalize(raw).body.calendars) == ["OURS"]
    (line,) = unknown_fields(raw)
    assert line.startswith("calendars.OUR: ")
    assert 'did you mean "OURS"?' in line
    assert normalize(a_sequence(calendars=OURS)).hash == normalize(a_sequence()).hash


def test_other_holidays_are_another_definition_and_each_day_is_a_change():
    one = normalize(a_sequence(waiting(country="OURS"), calendars=OURS))
    more = {"OURS": [*OURS["OURS"], "2026-01-06"]}
    other = normalize(a_sequence(waiting(country="OURS"), calendars=more))

    assert one.hash != other.hash
    (change,) = diff(one, other)
    assert (change.path, change.kind) == ("calendars.OURS[2026-01-06]", "added")


def test_wrong_calendars_are_refused_with_their_place():
    raw = a_sequence(waiting(country="OURS"), calendars={"OURS": ["2026-02-30"], "X": "2026-01-01"})

    assert faults_of(raw) == [
        ("calendars.OURS[0]", "definition.date"),
        ("calendars.X", "definition.type"),
    ]
    assert faults_of(a_sequence(calendars=[])) == [("calendars", "definition.type")]


def test_every_place_that_names_an_unknown_country_is_refused():
    raw = a_sequence(
        waiting("a", country="XX"), a_step("b", send_window={"country": "XX"}), calendars=OURS
    )

    assert faults_of(raw) == [
        ("blocks[0].delay.country", "definition.country"),
        ("blocks[1].send_window.country", "definition.country"),
    ]


def test_the_builder_takes_calendars():
    made = sequence(
        "s",
        step("a", "noop", delay={"duration": "1d", "business_days_only": True, "country": "OURS"}),
        calendars=OURS,
    )

    assert made.body.calendars["OURS"] == ("2026-05-01", "2026-10-03")


@pytest.mark.req("SEQ-TIM-2")
def test_holidays_of_a_country_are_resolved_from_2020_to_2040():
    pytest.importorskip("holidays")
    made = normalize(
        a_sequence(waiting(country="DE"), a_step("b", send_window={"country": "DE-BY"}))
    )
    dates = made.body.calendars

    assert dates["DE"] == tuple(sorted(country_dates("DE", 2020, 2040)))
    assert {"2020-01-01", "2026-10-03", "2040-12-25"} <= set(dates["DE"])
    assert min(dates["DE"])[:4] == "2020"
    assert max(dates["DE"])[:4] == "2040"
    assert "2026-01-06" in dates["DE-BY"]
    assert "2026-01-06" not in dates["DE"]


def test_pinned_holidays_are_not_resolved_again():
    """What a machine says about a country today changes nothing that was made before."""
    pinned = {"DE": ["2026-01-02"]}
    made = normalize(a_sequence(waiting(country="DE"), calendars=pinned))

    assert made.body.calendars == {"DE": ("2026-01-02",)}
    assert normalize(to_wire(made)).hash == made.hash


@pytest.mark.parametrize("code", ["DE-XX", "de", "Germany", "D", "-", "DE-"])
def test_what_is_no_country_code_is_refused(code):
    (fault,) = faults_of(a_sequence(waiting(country=code)))
    assert fault == ("blocks[0].delay.country", "definition.country")
