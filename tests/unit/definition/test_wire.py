"""The form in which the API shows a definition."""

from __future__ import annotations

from detent.definition import normalize, to_wire
from tests.unit.definition.samples import EVERY_KIND, a_sequence, a_step


def test_every_step_shows_what_clients_read_even_when_it_is_unset():
    shown = to_wire(normalize(a_sequence()))

    assert shown == {
        "name": "greet",
        "version": 1,
        "blocks": [
            {
                "type": "step",
                "id": "s",
                "handler": "noop",
                "params": None,
                "delay": None,
                "retry": None,
                "cancellable": True,
            }
        ],
    }


def test_durations_are_whole_milliseconds():
    (step,) = to_wire(normalize(a_sequence(a_step(timeout=0.2, delay={"duration": 1.5}))))["blocks"]

    assert step["timeout"] == 200
    assert step["delay"] == {"duration": 1500, "business_days_only": False, "holidays": []}


def test_options_that_were_set_are_shown_with_their_defaults():
    retry = {"max_attempts": 2, "initial_backoff": 1, "max_backoff": 2}
    (step,) = to_wire(normalize(a_sequence(a_step(retry=retry))))["blocks"]

    assert step["retry"] == retry | {"backoff_multiplier": 2.0}


def test_every_kind_can_be_shown_and_read_again():
    made = normalize(EVERY_KIND)

    assert normalize(to_wire(made)).canonical == made.canonical
    assert [block["type"] for block in to_wire(made)["blocks"]] == [
        block["type"] for block in EVERY_KIND["blocks"]
    ]


def test_what_is_shown_is_a_copy():
    made = normalize(a_sequence(a_step(params={"a": [1]})))
    to_wire(made)["blocks"][0]["params"]["a"].append(2)

    assert made.body.blocks[0].params == {"a": [1]}
