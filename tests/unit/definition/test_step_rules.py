"""Every rule for steps and their options: what is just allowed, and what is just not."""

from __future__ import annotations

import pytest

from tests.unit.definition.samples import a_step, check_rule

RETRY = {"max_attempts": 1, "initial_backoff": 5, "max_backoff": 5}


def asking(**options):
    return a_step(wait_for_input=options)


# a block that is allowed, one that is not, the fault's place below it, its code, its HTTP status
RULES = {
    "a block is an object": (a_step(), 5, "", "type", 422),
    "a block says its kind": (a_step(), {"id": "s"}, "type", "missing", 422),
    "the kind is text": (a_step(), {"type": 1, "id": "s"}, "type", "type", 422),
    "the kind is known": (a_step(), a_step() | {"type": "stap"}, "type", "unknown_type", 422),
    "a block has an id": (a_step(), {"type": "step", "handler": "noop"}, "id", "missing", 422),
    "the id is text": (a_step(), a_step() | {"id": 7}, "id", "type", 422),
    "the id is not blank": (a_step(), a_step(" "), "id", "blank", 400),
    "the id has at most 255 characters": (a_step("i" * 255), a_step("i" * 256), "id", "range", 400),
    "a step has a handler": (a_step(), {"type": "step", "id": "s"}, "handler", "missing", 422),
    "the handler is not null": (a_step(), a_step(handler=None), "handler", "missing", 422),
    "the handler is not blank": (a_step(), a_step(handler=""), "handler", "blank", 400),
    "max_attempts is > 0": (
        a_step(retry=RETRY),
        a_step(retry=RETRY | {"max_attempts": 0}),
        "retry.max_attempts",
        "range",
        400,
    ),
    "backoff_multiplier is > 0": (
        a_step(retry=RETRY | {"backoff_multiplier": 0.1}),
        a_step(retry=RETRY | {"backoff_multiplier": 0}),
        "retry.backoff_multiplier",
        "range",
        400,
    ),
    "initial_backoff is <= max_backoff": (
        a_step(retry=RETRY),
        a_step(retry=RETRY | {"initial_backoff": 6}),
        "retry.initial_backoff",
        "range",
        400,
    ),
    "retry needs its backoffs": (
        a_step(retry=RETRY),
        a_step(retry={"max_attempts": 1, "initial_backoff": 5}),
        "retry.max_backoff",
        "missing",
        422,
    ),
    "retry_if is not blank": (
        a_step(retry=RETRY | {"retry_if": "true"}),
        a_step(retry=RETRY | {"retry_if": " "}),
        "retry.retry_if",
        "blank",
        400,
    ),
    "no code is blank": (
        a_step(retry=RETRY | {"non_retryable_codes": ["404"]}),
        a_step(retry=RETRY | {"non_retryable_codes": ["404", ""]}),
        "retry.non_retryable_codes[1]",
        "blank",
        400,
    ),
    "a timeout is not negative": (
        a_step(timeout=0),
        a_step(timeout=-1),
        "timeout",
        "duration",
        422,
    ),
    "a timeout in seconds is not negative": (
        a_step(timeout=0.0),
        a_step(timeout=-0.5),
        "timeout",
        "duration",
        422,
    ),
    "a duration is bounded": (
        a_step(deadline=100 * 366 * 86_400_000),
        a_step(deadline=100 * 366 * 86_400_000 + 1),
        "deadline",
        "duration",
        422,
    ),
    "a duration is no text": (a_step(timeout=1), a_step(timeout="1s"), "timeout", "type", 422),
    "a duration is no truth": (a_step(timeout=1), a_step(timeout=True), "timeout", "type", 422),
    "a delay has a duration": (
        a_step(delay={"duration": 1}),
        a_step(delay={}),
        "delay.duration",
        "missing",
        422,
    ),
    "a choice is given if choices are": (
        asking(choices=[{"label": "Go", "value": "go"}]),
        asking(choices=[]),
        "wait_for_input.choices",
        "empty",
        400,
    ),
    "values of choices differ": (
        asking(choices=[{"label": "A", "value": "a"}, {"label": "A", "value": "b"}]),
        asking(choices=[{"label": "A", "value": "a"}, {"label": "B", "value": "a"}]),
        "wait_for_input.choices[1].value",
        "duplicate_name",
        400,
    ),
    "a choice has a value": (
        asking(choices=[{"label": "A", "value": ""}]),
        asking(choices=[{"label": "A"}]),
        "wait_for_input.choices[0].value",
        "missing",
        422,
    ),
    "store_as is not blank": (
        asking(store_as="x"),
        asking(store_as=""),
        "wait_for_input.store_as",
        "blank",
        400,
    ),
    "visible data is named by a known word": (
        a_step(context_access={"data": "none"}),
        a_step(context_access={"data": "some"}),
        "context_access.data",
        "type",
        422,
    ),
    "visible data is a list of fields": (
        a_step(context_access={"data": {"fields": []}}),
        a_step(context_access={"data": {"fields": [1]}}),
        "context_access.data.fields[0]",
        "type",
        422,
    ),
    "cancellable is true or false": (
        a_step(cancellable=False),
        a_step(cancellable="no"),
        "cancellable",
        "type",
        422,
    ),
    "an output schema is an object": (
        a_step(output_schema={"type": "object"}),
        a_step(output_schema=True),
        "output_schema",
        "schema",
        400,
    ),
    "an output schema compiles": (
        a_step(output_schema={}),
        a_step(output_schema={"type": "objec"}),
        "output_schema",
        "schema",
        400,
    ),
    "a schema refers only to itself": (
        a_step(output_schema={"$ref": "#/$defs/a", "$defs": {"a": {}}}),
        a_step(output_schema={"$ref": "https://example.com/schema.json"}),
        "output_schema",
        "schema",
        400,
    ),
    "a guard may be empty but is text": (a_step(when=""), a_step(when=True), "when", "type", 422),
    "what follows a deadline has a handler": (
        a_step(on_deadline_breach={"handler": "log"}),
        a_step(on_deadline_breach={"params": {}}),
        "on_deadline_breach.handler",
        "missing",
        422,
    ),
}


@pytest.mark.req("SEQ-BLK-1", "WF-DEF-2")
@pytest.mark.parametrize("rule", RULES)
def test_for_steps_the_rule_holds_that(rule):
    check_rule(RULES[rule])
