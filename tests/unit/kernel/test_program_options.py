"""What a program compiles of a step's limits, pool and delay."""

from __future__ import annotations

import pytest

from detent.definition import normalize
from detent.expression import Scope
from detent.kernel.program import compile_program
from detent.model.errors import ExpressionError


def compiled(step=None, **body):
    block = {"type": "step", "id": "s", "handler": "work", **(step or {})}
    program = compile_program(normalize({"name": "n", "version": 1, "blocks": [block], **body}))
    return program, program.nodes["s"]


def scope(data):
    return Scope(data=data, now_ms=0, instance_id="i1")


def test_a_step_without_limits_or_pool_has_none():
    program, node = compiled()

    assert (node.limits, node.pool, node.sticky) == ([], None, True)
    assert program.pool is None
    assert (node.holidays, node.windows) == (frozenset(), {})


@pytest.mark.req("SEQ-LIM-1")
def test_each_rate_limit_key_is_a_template_in_the_order_given():
    _, node = compiled({"rate_limit_key": ["all", "box:{{ data.box }}"]})
    plain, filled = node.limits

    assert plain.constant
    assert plain.value == "all"
    assert filled.render(scope({"box": "a@b"})) == "box:a@b"
    _, single = compiled({"rate_limit_key": "mail"})
    assert [template.value for template in single.limits] == ["mail"]


@pytest.mark.req("SEQ-LIM-2")
def test_the_pool_of_a_step_and_that_of_the_sequence_are_templates():
    program, node = compiled({"pool": "{{ data.team }}"}, pool="everybody")

    assert node.pool.render(scope({"team": "north"})) == "north"
    assert program.pool.constant
    assert program.pool.value == "everybody"


@pytest.mark.parametrize(
    ("step", "body", "sticky"),
    [({}, {}, True), ({"sticky": False}, {}, False), ({}, {"sticky": False}, False)],
)
def test_a_step_is_sticky_unless_it_or_its_sequence_says_otherwise(step, body, sticky):
    _, node = compiled({"pool": "p", **step}, **body)

    assert node.sticky is sticky


def test_a_key_that_cannot_be_compiled_is_kept_as_its_error_for_the_step_to_fail_with():
    _, node = compiled({"rate_limit_key": "{{ nothing.x }}", "pool": "{{ nothing.y }}"})

    for template in (*node.limits, node.pool):
        with pytest.raises(ExpressionError):
            template.render(scope({}))


def test_holidays_of_the_delay_and_its_country_are_put_together_once():
    calendars = {"OURS": ["2026-05-01"]}
    delay = {"duration": 1, "holidays": ["2026-12-24"], "country": "OURS"}
    _, free = compiled({"delay": delay | {"business_days_only": True}}, calendars=calendars)
    _, other = compiled({"delay": delay}, calendars=calendars)

    assert free.holidays == {"2026-05-01", "2026-12-24"}
    assert other.holidays == frozenset()
