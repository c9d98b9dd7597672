"""Small definitions for the tests of this directory."""

from __future__ import annotations

from typing import Any

import pytest

from detent.definition import normalize, status_of
from detent.model.errors import DefinitionError


def a_step(name: str = "s", **options: Any) -> dict[str, Any]:
    return {"type": "step", "id": name, "handler": "noop", **options}


def a_sequence(*blocks: Any, **options: Any) -> dict[str, Any]:
    return {"name": "greet", "version": 1, "blocks": list(blocks) or [a_step()], **options}


def faults_of(raw: Any) -> list[tuple[str, str]]:
    """Give (path, code) of every fault, in the order reported."""
    with pytest.raises(DefinitionError) as caught:
        normalize(raw)
    return [(fault.path, fault.code) for fault in caught.value.faults]


def message_of(raw: Any) -> str:
    """Give the sentence of the only fault."""
    with pytest.raises(DefinitionError) as caught:
        normalize(raw)
    (fault,) = caught.value.faults
    return fault.message


def check_rule(rule: tuple[Any, ...]) -> None:
    """Show that the first block is allowed and that the second has this one fault."""
    legal, illegal, below, code, status = rule

    normalize(a_sequence(legal))
    with pytest.raises(DefinitionError) as caught:
        normalize(a_sequence(illegal))

    place = f"blocks[0].{below}" if below else "blocks[0]"
    assert [(f.path, f.code) for f in caught.value.faults] == [(place, f"definition.{code}")]
    assert status_of(caught.value) == status


EVERY_KIND: dict[str, Any] = {
    "name": "every kind",
    "version": 3,
    "mode": "lenient",
    "input_schema": {"type": "object", "required": ["email"]},
    "policies": [{"kind": "effect_budget", "params": {"max_effects": 9, "action": "fail"}}],
    "on_failure": [{"type": "step", "id": "first", "handler": "log"}],
    "on_cancel": [{"type": "step", "id": "first", "handler": "log"}],
    "blocks": [
        {
            "type": "step",
            "id": "first",
            "handler": "send",
            "params": {"to": "{{ data.email }}", "count": 1, "rate": 1.0, "none": None},
            "delay": {"duration": 1.5},
            "retry": {
                "max_attempts": 3,
                "initial_backoff": 100,
                "max_backoff": 5000,
                "backoff_multiplier": 3,
                "jitter": 10,
                "retry_if": "_error.message != 'x'",
                "non_retryable_codes": ["404"],
            },
            "timeout": 0.2,
            "context_access": {"data": {"fields": ["email"]}, "audit": True},
            "cancellable": False,
            "wait_for_input": {
                "prompt": "Send it?",
                "timeout": 60000,
                "escalation_handler": "log",
                "choices": [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}],
                "store_as": "answer",
                "allow_comment": True,
            },
            "deadline": 90000,
            "on_deadline_breach": {"handler": "log", "params": {"message": "late"}},
            "cache_key": "mail-{{ data.email }}",
            "output_schema": {"type": "object"},
            "when": "data.email != null",
        },
        {"type": "parallel", "id": "both", "branches": [[a_step("p1")], []]},
        {
            "type": "race",
            "id": "quick",
            "branches": [[a_step("r1")], [a_step("r2")]],
            "semantics": "first_to_succeed",
        },
        {
            "type": "loop",
            "id": "again",
            "condition": "data.more",
            "body": [a_step("l1")],
            "max_iterations": 5,
            "break_on": "data.stop",
            "continue_on_error": True,
            "poll_interval": 30,
            "retain_iterations": 2,
        },
        {
            "type": "for_each",
            "id": "each",
            "collection": "people",
            "body": [a_step("f1")],
            "item_var": "person",
            "max_iterations": 7,
            "retain_iterations": 0,
        },
        {
            "type": "router",
            "id": "choose",
            "routes": [{"condition": "data.vip", "blocks": [a_step("o1")]}],
            "default": [],
        },
        {
            "type": "try_catch",
            "id": "careful",
            "try_block": [a_step("t1")],
            "catch_block": [],
            "finally_block": [a_step("t2")],
        },
        {
            "type": "sub_sequence",
            "id": "child",
            "sequence_name": "other",
            "version": 2,
            "input": {"a": "{{ data.a }}"},
        },
        {
            "type": "a_b_split",
            "id": "split",
            "variants": [
                {"name": "a", "weight": 1, "blocks": [a_step("a1")]},
                {"name": "b", "weight": 3, "blocks": []},
            ],
        },
        {"type": "cancellation_scope", "id": "whole", "blocks": [a_step("c1")]},
        {
            "type": "saga",
            "id": "trip",
            "steps": [{"id": "fly", "action": a_step("book"), "compensation": a_step("unbook")}],
        },
        {"type": "wait", "id": "pause", "duration": 5000, "signal": "go", "store_as": "went"},
        {
            "type": "graph",
            "id": "map",
            "start": "in",
            "nodes": {
                "in": [a_step("g1")],
                "out": [a_step("g2")],
                "back": [{"type": "goto", "to": "in"}],
            },
            "transitions": [
                {"from": "in", "to": "back", "when": "data.again"},
                {"from": "in", "to": "out"},
            ],
        },
    ],
}
"""One definition that has every kind of block; its hash is golden, so it never changes."""
