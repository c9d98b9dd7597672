"""Options of the whole run, and blocks for one instance: checked as everything else is."""

from __future__ import annotations

import pytest

from detent.definition import check_blocks, normalize, sequence, step, to_wire
from detent.model.errors import DefinitionError
from tests.unit.definition.samples import a_sequence, a_step, faults_of

INTERCEPTORS = {
    "before_step": {"handler": "log", "params": {"k": 1}},
    "on_complete": {"handler": "log"},
}


@pytest.mark.parametrize(
    ("options", "place", "code"),
    [
        ({"sla": {"max_runtime": "1s"}}, "sla.max_runtime", "definition.type"),
        ({"sla": {"max_step_runtime": -1}}, "sla.max_step_runtime", "definition.duration"),
        ({"sla": 5}, "sla", "definition.type"),
        (
            {"interceptors": {"before_step": {}}},
            "interceptors.before_step.handler",
            "definition.missing",
        ),
        ({"interceptors": []}, "interceptors", "definition.type"),
    ],
)
def test_a_wrong_option_of_the_run_is_named_with_its_place(options, place, code):
    assert faults_of(a_sequence(**options)) == [(place, code)]


def test_the_options_of_the_run_are_kept_and_shown():
    made = normalize(a_sequence(sla={"max_runtime": 1500}, interceptors=INTERCEPTORS))
    assert (made.body.sla.max_runtime, made.body.sla.max_step_runtime) == (1500, None)
    assert made.body.interceptors == INTERCEPTORS
    assert normalize(to_wire(made)).hash == made.hash


def test_the_builder_takes_durations_and_functions():
    made = sequence(
        "s",
        step("a", "noop"),
        sla={"max_runtime": "2m", "max_step_runtime": "1s"},
        interceptors=INTERCEPTORS,
    )
    assert (made.body.sla.max_runtime, made.body.sla.max_step_runtime) == (120_000, 1_000)


def test_blocks_for_an_instance_become_a_definition_of_their_own():
    given = normalize(a_sequence(mode="strict", version=3))
    made = check_blocks([a_step("x")], given)
    assert (made.name, made.version, made.body.mode) == (given.name, 3, "strict")
    assert [block.id for block in made.body.blocks] == ["x"]


def test_blocks_for_an_instance_keep_the_holidays_its_version_has_pinned():
    pinned = {"DE": ["2030-01-02"]}
    delay = {"duration": 1, "business_days_only": True, "country": "DE"}
    given = normalize(a_sequence(a_step("a", delay=delay), calendars=pinned))
    made = check_blocks([a_step("x", delay=delay)], given)
    assert made.body.calendars == {"DE": ("2030-01-02",)}
    assert check_blocks([a_step("x")], given).body.calendars == {}


@pytest.mark.parametrize("blocks", [[], None, "x", [5], [a_step("x"), a_step("x")]])
def test_what_is_no_list_of_blocks_is_refused(blocks):
    with pytest.raises(DefinitionError):
        check_blocks(blocks, normalize(a_sequence()))
