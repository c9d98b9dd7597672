"""What parses, how tightly operators bind, and what the errors say."""

from __future__ import annotations

import pytest

from detent.expression import Scope, compile_expression
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_CHARS, EXPRESSION_DEPTH


def value(text, **scope):
    return compile_expression(text).evaluate(Scope(**scope))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("42", 42),
        ("4.25", 4.25),
        ("'it is \"so\"'", 'it is "so"'),
        ('"it\'s"', "it's"),
        (r"'no \n escapes'", r"no \n escapes"),
        ("[]", []),
        ("[1, 'two', true, null, [3]]", [1, "two", True, None, [3]]),
        ("-7", -7),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9.223372036854775808e18),
    ],
)
def test_a_literal_is_its_value(text, expected):
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("24 / 4 / 2", 3),
        ("2 * 3 / 4", 1.5),
        ("1 + 1 == 2", True),
        ("1 < 2 && 2 < 1 + 2", True),
        ("true || false && false", True),
        ("(true || false) && false", False),
        ("!false && true", True),
        ("!(true && false)", True),
        ("!!true", True),
        ("-2 + 3", 1),
        ("2 - -3", 5),
        ("- -3", 3),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("true ? false ? 1 : 2 : 3", 2),
        ("1 > 2 || true ? 'a' : 'b'", "a"),
        ("2 in [1, 1 + 1]", True),
        ("len('abc') + 1 == 4", True),
    ],
)
def test_operators_bind_as_the_contract_orders_them(text, expected):
    assert value(text) == expected


def test_braces_around_the_whole_are_dropped():
    assert value("{{ context.data.x == 'y' }}", data={"x": "y"}) is True
    assert value("  {{x}}  ", data={"x": 3}) == 3


@pytest.mark.parametrize("text", ["", "   ", "{{}}", "{{  }}"])
def test_a_blank_expression_is_null_when_lenient_and_refused_when_strict(text):
    assert value(text) is None
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, strict=True)
    assert caught.value.code == "expression.syntax"


@pytest.mark.parametrize(
    "text",
    [
        "data.x ==",
        "== 1",
        "5 5",
        "a b",
        "(1",
        "1)",
        "[1, 2",
        "[1,]",
        "f(1,)",
        "f(",
        "'open",
        '"open',
        "a = 1",
        "a & b",
        "a | b",
        "a ? b",
        "a ? b :",
        "a..b",
        "a.b.",
        ".a",
        "items[0]",
        "1.2.3",
        "1.",
        "a @ b",
        "a % b",
        "{{ a }} == {{ b }}",
        "{{ a",
        "a }}",
        "{ a }",
        "!",
        "-",
        "in",
        "1 in",
        "9" * 400,
        "a\u00a0== b",
    ],
)
def test_what_is_no_expression_is_a_syntax_error(text):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text)
    assert caught.value.code == "expression.syntax"


@pytest.mark.parametrize("text", ["1 < 2 < 3", "a == b == c", "1 in [1] in [2]", "1 < 2 == true"])
def test_comparisons_do_not_chain(text):
    with pytest.raises(ExpressionError, match="no second comparison"):
        compile_expression(text)


def test_a_parenthesis_joins_two_comparisons():
    assert value("(1 < 2) == true") is True


def test_a_syntax_error_says_what_came_where_and_what_to_do():
    with pytest.raises(ExpressionError) as caught:
        compile_expression("mode = 'fast'")
    assert str(caught.value) == (
        "Expected an operand or operator at character 6 of `mode = 'fast'`, "
        "found `= 'fast'`; write `==` to compare. [expression.syntax]"
    )
    assert caught.value.details == {"position": 5}


def test_text_is_allowed_up_to_its_limit_and_no_further():
    longest = "1" + " " * (EXPRESSION_CHARS - 2) + "1"
    with pytest.raises(ExpressionError) as caught:
        compile_expression(longest)
    assert caught.value.code == "expression.syntax"
    with pytest.raises(ExpressionError) as caught:
        compile_expression("1" + " " * (EXPRESSION_CHARS - 1) + "1")
    assert caught.value.code == "expression.limit"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("abs(", ")"), ("true ? 1 : ", "")],
)
def test_nesting_is_allowed_up_to_its_limit_and_no_further(opening, closing):
    compile_expression(opening * EXPRESSION_DEPTH + "1" + closing * EXPRESSION_DEPTH)
    deeper = EXPRESSION_DEPTH + 1
    with pytest.raises(ExpressionError) as caught:
        compile_expression(opening * deeper + "1" + closing * deeper)
    assert caught.value.code == "expression.limit"


def test_the_same_short_text_is_compiled_once():
    assert compile_expression("a + 1") is compile_expression("a + 1")
    assert compile_expression("data.a + 1") is not compile_expression("data.a + 1", strict=True)


def test_an_expression_keeps_its_text():
    assert compile_expression("a + 1").text == "a + 1"
