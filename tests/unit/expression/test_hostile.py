"""Hostile texts and data: refused by counting, never a hang and never a flood of memory."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from detent.expression import Scope, compile_expression, compile_template, trace_template
from detent.expression.meter import CHARS_PER_OPERATION
from detent.model.errors import ExpressionError
from detent.model.limits import (
    EXPRESSION_CHARS,
    EXPRESSION_OPERATIONS,
    TEMPLATE_RESULT_BYTES,
)

MEBIBYTE = 1024 * 1024


def refused(act):
    with pytest.raises(ExpressionError) as caught:
        act()
    return caught.value.code


def calls_made(act):
    """Count the Python and C calls an act makes: a clock that does not depend on the machine."""
    count = 0

    def tally(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        act()
    except ExpressionError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "!" * 100_000 + "1",
        "-" * 100_000 + "1",
        "[" * 100_000,
        "a." * 50_000 + "b",
        " + ".join(["1"] * 10_000),
        "'" + "a" * 100_000,
        "{{" * 100_000,
    ],
)
def test_an_endless_text_is_refused_before_it_is_read(text):
    assert refused(lambda: compile_expression(text)) == "expression.limit"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8_000,
        "!" * 8_000 + "1",
        "-" * 8_000 + "1",
        "[" * 8_000,
        "abs(" * 2_000 + "1" + ")" * 2_000,
        "true?" * 1_600,
        "true ? 1 : " * 700 + "2",
    ],
)
def test_deep_nesting_is_refused_by_depth(text):
    assert refused(lambda: compile_expression(text)) == "expression.limit"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+".join(["1"] * 4_096), 4_096),
        ("*".join(["1"] * 4_096), 1),
        ("&&".join(["1"] * 2_700), True),
        ("||".join(["0"] * 2_700), False),
        ("-".join(["1"] * 4_096), -4_094),
        ("x." * 4_000 + "y", None),
        ("[" + ",".join(["1"] * 4_000) + "]", [1] * 4_000),
        ("min(" + ",".join(["1"] * 4_000) + ")", 1),
    ],
)
def test_a_long_flat_expression_works(text, expected):
    assert len(text) <= EXPRESSION_CHARS
    assert compile_expression(text).evaluate(Scope(data={})) == expected


@pytest.mark.parametrize(
    ("start", "unit", "end"),
    [
        ("1", "+1", ""),
        ("1", "&& 1", ""),
        ("a", ".b", ""),
        ("[1", ",1", "]"),
        ("", "!", "1"),
        ("", "(", ""),
        ("1", "*(1)", ""),
        ("1", " ", ""),
    ],
)
def test_compiling_is_linear_in_the_text(start, unit, end):
    def cost(repeats):
        text = start + unit * repeats + end
        return calls_made(lambda: compile_expression(text))

    assert cost(1_600) <= 2.2 * cost(800) + 200


@pytest.mark.parametrize(
    "text",
    [
        "{{" * 100_000,
        "{{ '" * 100_000,
        "{{ \"'" * 100_000,
        "}}" * 100_000,
        "{ {" * 100_000,
        "{{{" * 100_000,
    ],
)
def test_an_endless_row_of_open_braces_is_plain_text(text):
    template = compile_template(text)
    assert template.constant
    assert trace_template(text, Scope()).result == text


def test_pairs_of_braces_are_limited_in_number():
    assert refused(lambda: compile_template("{{x}}" * (EXPRESSION_OPERATIONS + 1))) == (
        "expression.limit"
    )
    many = ["{{x}}", "{{x}}" * EXPRESSION_OPERATIONS]
    assert refused(lambda: compile_template(many)) == "expression.limit"
    assert "operations" in (trace_template(many, Scope(data={})).error or "")


def test_adding_a_string_to_itself_stops_at_the_limit():
    text = "+".join(["data.s"] * 1_000)
    scope = Scope(data={"s": "x" * 200_000})
    assert refused(lambda: compile_expression(text).evaluate(scope)) == "expression.limit"
    assert compile_expression("data.s + data.s").evaluate(scope) == "x" * 400_000


def test_a_joined_string_is_allowed_up_to_the_limit_of_a_result():
    half = TEMPLATE_RESULT_BYTES // 2
    scope = Scope(data={"a": "x" * half, "b": "x" * (half + 1)})
    assert len(compile_expression("data.a + data.a").evaluate(scope)) == TEMPLATE_RESULT_BYTES
    assert refused(lambda: compile_expression("data.a + data.b").evaluate(scope)) == (
        "expression.limit"
    )


def test_operations_are_allowed_up_to_their_limit():
    def total(size):
        return compile_expression("sum(data.x)").evaluate(Scope(data={"x": [1] * size}))

    assert total(EXPRESSION_OPERATIONS - 1) == EXPRESSION_OPERATIONS - 1
    assert refused(lambda: total(EXPRESSION_OPERATIONS)) == "expression.limit"


def test_characters_cost_less_than_elements():
    def upper(size):
        return compile_expression("upper(data.x)").evaluate(Scope(data={"x": "x" * size}))

    assert upper(TEMPLATE_RESULT_BYTES)
    most = EXPRESSION_OPERATIONS * CHARS_PER_OPERATION
    assert refused(lambda: upper(most)) == "expression.limit"


SIZE = 30_000
TEXT = MEBIBYTE // CHARS_PER_OPERATION


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("sum(data.ints)", SIZE),
        ("avg(data.ints)", SIZE),
        ("min(data.ints)", SIZE),
        ("max(data.ints)", SIZE),
        ("sort(data.ints)", 4 * SIZE),
        ("unique(data.ints)", SIZE),
        ("unique(data.lists)", 300 * 300),
        ("count(data.ints)", SIZE),
        ("count(data.ints, 'none')", SIZE),
        ("slice(data.ints, 0)", SIZE),
        ("slice(data.text, 0)", TEXT),
        ("keys(data.obj)", SIZE),
        ("values(data.obj)", SIZE),
        ("mergeObjects(data.obj, data.obj)", 2 * SIZE),
        ("contains(data.ints, 'none')", SIZE),
        ("contains(data.text, 'none')", TEXT),
        ("starts_with(data.text, data.text)", TEXT),
        ("ends_with(data.text, data.text)", TEXT),
        ("json(data.text)", TEXT),
        ("concat(data.text, data.text)", 3 * TEXT),
        ("upper(data.text)", TEXT),
        ("lower(data.text)", TEXT),
        ("trim(data.text)", TEXT),
        ("isNullOrWhiteSpace(data.text)", TEXT),
        ("format_date('2026-01-01', data.text)", MEBIBYTE),
        ("data.ints == data.same", SIZE),
        ("data.text == data.twin", TEXT),
        ("data.text < data.twin", TEXT),
        ("'none' in data.ints", SIZE),
        ("data.text + data.text", 2 * TEXT),
        ("events.hasReply()", SIZE),
    ],
)
def test_work_inside_functions_and_operators_is_counted(text, least):
    scope = Scope(
        data={
            "ints": list(range(SIZE)),
            "same": list(range(SIZE)),
            "lists": [[n] for n in range(300)],
            "obj": {f"key_{n}": n for n in range(SIZE)},
            "text": "x" * MEBIBYTE,
            "twin": "".join(["x"] * MEBIBYTE),
        },
        events={f"open:{n}": True for n in range(SIZE)},
    )
    plenty = 10**9
    meter = [plenty, plenty]
    compile_expression(text)._run(scope, meter)
    assert plenty - meter[0] >= least


def test_comparing_containers_costs_what_they_hold():
    one = {"a": [[n] for n in range(200)]}
    two = {"a": [[n] for n in range(200)]}
    text = " && ".join(["data.one == data.two"] * 300)
    scope = Scope(data={"one": one, "two": two})
    assert compile_expression("data.one == data.two").evaluate(scope) is True
    assert refused(lambda: compile_expression(text).evaluate(scope)) == "expression.limit"


def test_values_nested_without_end_are_refused_not_followed():
    def nest():
        value = []
        for _ in range(50_000):
            value = [value]
        return value

    one, two = nest(), nest()
    scope = Scope(data={"one": one, "two": two})
    for text in ("data.one == data.two", "json(data.one)", "[data.one, 1]"):
        assert refused(lambda text=text: compile_expression(text).evaluate(scope)) == (
            "expression.limit"
        )
    assert refused(lambda: compile_template("x{{data.one}}").render(scope)) == "expression.limit"
    while one:
        one, two = one[0], two[0]


@pytest.mark.parametrize("text", ["[{}]", "[[{}], 1]", "[1, [2, [{}]]]"])
def test_a_large_value_cannot_be_repeated_into_a_larger_one(text):
    big = {"rows": ["x" * 1_000] * 1_000}
    expression = compile_expression(text.format(", ".join(["data.big"] * 5)))
    assert refused(lambda: expression.evaluate(Scope(data={"big": big}))) == "expression.limit"
    once = compile_expression(text.format("data.big"))
    assert once.evaluate(Scope(data={"big": big}))


def test_a_template_cannot_repeat_a_large_value_either():
    big = {"rows": ["x" * 1_000] * 1_000}
    scope = Scope(data={"big": big, "text": "x" * MEBIBYTE})
    for value in ("{{data.big}}", "{{data.text}}", "a{{data.text}}"):
        many = compile_template([value] * 6)
        assert refused(lambda many=many: many.render(scope)) == "expression.limit"
        assert len(compile_template([value] * 3).render(scope)) == 3


def test_a_text_is_allowed_up_to_the_limit_of_a_result():
    template = compile_template("{{data.a}}{{data.b}}")
    half = "x" * (TEMPLATE_RESULT_BYTES // 2)
    assert len(template.render(Scope(data={"a": half, "b": half}))) == TEMPLATE_RESULT_BYTES
    assert refused(lambda: template.render(Scope(data={"a": half, "b": half + "x"}))) == (
        "expression.limit"
    )
    wide = "é" * (TEMPLATE_RESULT_BYTES // 4)
    assert refused(lambda: template.render(Scope(data={"a": half, "b": wide + "x"}))) == (
        "expression.limit"
    )


@pytest.mark.parametrize(
    "inner",
    [
        "data.s | replace('x', data.s)",
        "data.s | replace('', data.s)",
        "data.ten | join(data.s)",
        "data.s" + " | url_encode" * 9,
        "data.s | base64 | base64 | base64 | base64 | base64 | base64 | base64",
        "data.s | split('x')",
        "data.s" + " | upper" * 1_000,
        "data.s" + " | trim | lower" * 500,
        "data.s" + " | hash(sha256) | default(data.s)" * 200 + " | replace('a', data.s)" * 30,
    ],
)
def test_filters_stop_at_the_limit_without_a_flood_of_memory(inner):
    template = compile_template(f"{{{{{inner}}}}}")
    scope = Scope(data={"s": " x" * 300_000, "ten": [""] * 10})
    tracemalloc.start()
    try:
        assert refused(lambda: template.render(scope)) == "expression.limit"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * TEMPLATE_RESULT_BYTES


def test_a_filter_result_is_allowed_up_to_the_limit_of_a_result():
    template = compile_template("{{ data.s | replace('y', 'xx') }}")
    almost = "x" * (TEMPLATE_RESULT_BYTES - 2)
    assert len(template.render(Scope(data={"s": almost + "y"}))) == TEMPLATE_RESULT_BYTES
    assert refused(lambda: template.render(Scope(data={"s": almost + "xy"}))) == (
        "expression.limit"
    )


def test_a_long_product_makes_no_huge_integer():
    big = 9_223_372_036_854_775_807
    scope = Scope(data={"n": big})
    text = "*".join(["data.n"] * 1_000)
    assert compile_expression(text).evaluate(scope) is None
    assert compile_expression("data.n * data.n").evaluate(scope) == float(big * big)


def test_many_different_texts_do_not_fill_the_memory():
    tracemalloc.start()
    try:
        for number in range(20_000):
            compile_expression(f"data.x == {number}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 8 * MEBIBYTE
