"""Options that this release knows but does not perform are refused by name, never ignored."""

from __future__ import annotations

import pytest

from detent.definition import UNSUPPORTED, UNSUPPORTED_HANDLERS, normalize
from tests.unit.definition.samples import a_sequence, a_step, faults_of

# shape -> option -> a value of the right form, one of the wrong form, its place and its code
FORMS = {
    "step": {
        "compensation": ({"x": 1}, float("nan"), "", "number"),
    },
}

PLACES = {
    "step": ("blocks[0]", lambda options: a_sequence(a_step(**options))),
}

OPTIONS = [(shape, name) for shape, names in UNSUPPORTED.items() for name in names]


@pytest.mark.parametrize(("shape", "name"), OPTIONS)
def test_an_option_that_is_not_built_is_refused_with_its_place(shape, name):
    right, wrong, below, code = FORMS[shape][name]
    place, make = PLACES[shape]
    path = f"{place}.{name}" if place else name

    assert faults_of(make({name: right})) == [(path, "definition.unsupported")]
    found = faults_of(make({name: wrong}))
    assert (f"{path}{below}", f"definition.{code}") in found


@pytest.mark.parametrize(("shape", "name"), OPTIONS)
def test_the_same_option_left_unset_is_no_fault(shape, name):
    _, make = PLACES[shape]

    assert normalize(make({name: None})).hash == normalize(make({})).hash


@pytest.mark.parametrize("name", UNSUPPORTED_HANDLERS)
def test_a_handler_that_is_not_built_is_refused_wherever_it_is_named(name):
    raw = a_sequence(
        a_step("a", handler=name),
        a_step("b", wait_for_input={"escalation_handler": name}),
        a_step("c", on_deadline_breach={"handler": name}),
        a_step("d", fallback_handler=name),
        policies=[{"handler": name}],
    )

    assert faults_of(raw) == [
        ("blocks[0].handler", "definition.unsupported"),
        ("blocks[1].wait_for_input.escalation_handler", "definition.unsupported"),
        ("blocks[2].on_deadline_breach.handler", "definition.unsupported"),
        ("blocks[3].fallback_handler", "definition.unsupported"),
        ("policies[0].handler", "definition.unsupported"),
    ]


@pytest.mark.parametrize("name", ["noop", "log", "sleep", "transform", "human_review", "my.own"])
def test_other_handlers_are_taken(name):
    assert normalize(a_sequence(a_step(handler=name))).body.blocks[0].handler == name
