"""Any text and any data: a value or `ExpressionError`, the same every time, nothing changed."""

from __future__ import annotations

import copy
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.expression import (
    FILTER_NAMES,
    FUNCTION_NAMES,
    ROOTS,
    Scope,
    compile_expression,
    compile_template,
    trace_template,
)
from detent.model.errors import ExpressionError

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["", "5", "-1.5", "2026-01-15T10:00:00Z", "\ud800", "a,b", "%Y %", "desc"])
)
names = st.sampled_from(["a", "b", "0", "x_1"])
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(names, json_values, max_size=4)

paths = st.builds(
    lambda root, rest: ".".join([root, *rest]),
    st.sampled_from([*ROOTS, "a", "b", "contact", "unknown"]),
    st.lists(names, max_size=3),
)
literals = st.sampled_from(
    [
        "0",
        "1",
        "2.5",
        "10",
        "9223372036854775807",
        "''",
        "'a'",
        '"5"',
        "true",
        "false",
        "null",
        "[]",
    ]
)


def _compound(inner):
    signs = ["+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
    binary = st.builds(
        lambda left, sign, right: f"({left} {sign} {right})", inner, st.sampled_from(signs), inner
    )
    unary = st.builds(lambda sign, one: f"{sign}({one})", st.sampled_from(["!", "-"]), inner)
    choice = st.builds(lambda a, b, c: f"({a} ? {b} : {c})", inner, inner, inner)
    array = st.builds(lambda items: f"[{', '.join(items)}]", st.lists(inner, max_size=3))
    call = st.builds(
        lambda name, items: f"{name}({', '.join(items)})",
        st.sampled_from([*FUNCTION_NAMES, "nosuch"]),
        st.lists(inner, max_size=3),
    )
    return binary | unary | choice | array | call


expressions = st.recursive(paths | literals, _compound, max_leaves=8)
scopes = st.builds(
    lambda data, outputs, state, contact, now: {
        "data": data,
        "config": data,
        "outputs": outputs,
        "state": state,
        "now_ms": now,
        "events": {"reply:a": True, "outcome:a": "answered"},
        "roots": {"contact": contact},
    },
    objects | json_values,
    objects,
    objects,
    json_values,
    st.integers(-(10**15), 10**15),
)


def scope_of(fields):
    drawn = iter(range(1, 100_000))
    return Scope(**fields, draw=lambda: next(drawn) * 0x9E3779B97F4A7C15)


def outcome(act):
    """Give what an act gives, or the code of its error."""
    try:
        return ("value", act())
    except ExpressionError as error:
        return ("error", error.code)


def is_json(value):
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return value is None or isinstance(value, (str, bool, int))


@settings(max_examples=120)
@given(expressions, scopes, st.booleans())
def test_a_well_formed_expression_gives_a_json_value_or_an_expression_error(text, fields, strict):
    before = copy.deepcopy(fields)
    first = outcome(lambda: compile_expression(text, strict=strict).evaluate(scope_of(fields)))
    second = outcome(lambda: compile_expression(text, strict=strict).evaluate(scope_of(fields)))
    assert fields == before
    assert repr(first) == repr(second)
    kind, result = first
    assert is_json(result)
    if kind == "value":
        assert compile_expression(text, strict=strict).test(scope_of(fields)) in (True, False)
    elif not strict:
        # the only things a lenient expression refuses: limits, and values JSON cannot hold
        assert result in ("expression.limit", "expression.type")


@settings(max_examples=120)
@given(expressions, scopes)
def test_where_strict_gives_a_value_lenient_gives_the_same(text, fields):
    kind, result = outcome(lambda: compile_expression(text, strict=True).evaluate(scope_of(fields)))
    if kind == "value":
        assert repr(compile_expression(text).evaluate(scope_of(fields))) == repr(result)


@settings(max_examples=120)
@given(st.text(alphabet="ab01.'\"()[]{}!<>=&|+-*/?:, in", max_size=40), scopes)
def test_any_text_is_an_expression_or_an_expression_error(text, fields):
    outcome(lambda: compile_expression(text).evaluate(scope_of(fields)))
    outcome(lambda: compile_expression(text, strict=True).evaluate(scope_of(fields)))


@settings(max_examples=120)
@given(st.text(max_size=60))
def test_any_unicode_text_is_an_expression_or_an_expression_error(text):
    outcome(lambda: compile_expression(text).evaluate(Scope()))


segments = (
    paths
    | literals
    | st.sampled_from(["word", "it's", "'a | b'", "a.b", "", "json(data.a)", "len(data)"])
    | st.sampled_from(FILTER_NAMES)
    | st.builds(
        lambda name, args: f"{name}({', '.join(args)})",
        st.sampled_from([*FILTER_NAMES, "nosuch"]),
        st.lists(st.sampled_from(["1", "3", "'x'", "','", "sha256", "data.a", "a"]), max_size=2),
    )
)
slots = st.builds(
    lambda parts: "{{ " + " | ".join(parts) + " }}", st.lists(segments, min_size=1, max_size=4)
)
texts = st.builds("".join, st.lists(slots | st.text(max_size=5), max_size=3))
templates = st.recursive(
    texts | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=120)
@given(templates, scopes)
def test_any_template_renders_or_is_an_expression_error(value, fields):
    before = copy.deepcopy((value, fields))
    first = outcome(lambda: compile_template(value).render(scope_of(fields)))
    assert repr(first) == repr(outcome(lambda: compile_template(value).render(scope_of(fields))))
    assert (value, fields) == before
    assert is_json(first[1])


@settings(max_examples=120)
@given(templates, scopes)
def test_the_trace_tells_the_same_as_the_rendering(value, fields):
    kind, result = outcome(lambda: compile_template(value).render(scope_of(fields)))
    trace = trace_template(value, scope_of(fields))
    assert (trace.error is None) is (kind == "value")
    if kind == "value":
        assert repr(trace.result) == repr(result)
    for entry in trace.entries:
        assert entry["status"] in ("ok", "null", "missing", "error")
        assert ("error" in entry) is (entry["status"] == "error")


@settings(max_examples=120)
@given(st.text(alphabet="{}'\"|(). datax,", max_size=40), scopes)
def test_any_text_is_a_template_or_an_expression_error(text, fields):
    outcome(lambda: compile_template(text).render(scope_of(fields)))
    outcome(lambda: compile_template(text, strict=True).render(scope_of(fields)))
    trace_template(text, scope_of(fields)).as_dict()


@settings(max_examples=120)
@given(json_values, json_values)
def test_equality_agrees_with_json_apart_from_booleans(left, right):
    scope = Scope(data={"left": left, "right": right})

    def plain(value):
        if isinstance(value, bool):
            return ("boolean", value)
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return value

    same = compile_expression("data.left == data.right").evaluate(scope)
    assert same is (plain(left) == plain(right))
    assert compile_expression("data.left == data.left").evaluate(scope) is True


@settings(max_examples=120)
@given(objects)
def test_json_writes_what_can_be_read_again(value):
    kind, text = outcome(lambda: compile_expression("json(data)").evaluate(Scope(data=value)))
    if kind == "value":
        assert json.loads(text) == value


@pytest.mark.parametrize("text", ["data.a == 1", "len(data.b) > 0", "data.a + data.b"])
def test_a_compiled_expression_keeps_nothing_between_evaluations(text):
    expression = compile_expression(text)
    one, two = Scope(data={"a": 1, "b": 2}), Scope(data={"a": 5, "b": [1]})
    first = expression.evaluate(one)
    expression.evaluate(two)
    assert expression.evaluate(one) == first
