"""Truth, equality, order and arithmetic, as the contract's expression table has them."""

from __future__ import annotations

import pytest

from detent.expression import Scope, compile_expression


def value(text, **data):
    return compile_expression(text).evaluate(Scope(data=data))


@pytest.mark.parametrize(
    ("given", "truth"),
    [
        (None, False),
        (False, False),
        (0, False),
        (0.0, False),
        (-0.0, False),
        ("", False),
        ([], False),
        ({}, True),
        ({"a": 1}, True),
        (True, True),
        (-1, True),
        (0.5, True),
        (" ", True),
        ("0", True),
        ([None], True),
    ],
)
def test_truth_of_every_kind_of_value(given, truth):
    scope = Scope(data={"v": given})
    assert compile_expression("v").test(scope) is truth
    assert compile_expression("!v").evaluate(scope) is not truth
    assert compile_expression("v ? 1 : 0").evaluate(scope) == int(truth)
    assert compile_expression("v && true").evaluate(scope) is truth
    assert compile_expression("v || false").evaluate(scope) is truth


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a' && 'b'", True),
        ("'a' && ''", False),
        ("'' || 0", False),
        ("null || 'x'", True),
        ("1 && 1 && 1", True),
        ("1 && 0 && 1", False),
        ("0 || 0 || [1]", True),
    ],
)
def test_and_and_or_give_booleans(text, expected):
    assert value(text) is expected


@pytest.mark.parametrize("text", ["{0} && {1}", "{0} || {1}", "{0} && {1} && {1}"])
@pytest.mark.parametrize("first", ["true", "false"])
def test_both_sides_of_and_and_or_are_evaluated(text, first):
    drawn = []
    scope = Scope(draw=lambda: drawn.append(1) or 7)
    compile_expression(text.format(first, "random(0, 1) == 1")).evaluate(scope)
    assert len(drawn) == text.count("{1}")


def test_only_the_chosen_side_of_a_choice_is_evaluated():
    drawn = []
    scope = Scope(draw=lambda: drawn.append(1) or 7)
    assert compile_expression("true ? 'a' : random(0, 1)").evaluate(scope) == "a"
    assert drawn == []


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", "1", True),
        ("1", "1.0", True),
        ("0", "-0", True),
        ("'1'", "1", False),
        ("'a'", "'a'", True),
        ("'a'", "'A'", False),
        ("true", "true", True),
        ("true", "1", False),
        ("false", "0", False),
        ("false", "null", False),
        ("''", "null", False),
        ("0", "null", False),
        ("null", "null", True),
        ("null", "nonexistent", True),
        ("[1, 'a']", "[1.0, 'a']", True),
        ("[1]", "[true]", False),
        ("[1, 2]", "[2, 1]", False),
        ("[1]", "[1, 1]", False),
        ("[]", "null", False),
        ("one", "same", True),
        ("one", "other", False),
        ("one", "wider", False),
        ("one", "[1]", False),
        ("n", "1", True),
        ("n", "'1'", False),
        ("yes", "1", False),
        ("yes", "n", False),
        ("yes", "true", True),
    ],
)
def test_equality_is_numeric_for_numbers_and_by_type_and_value_for_the_rest(left, right, same):
    data = {
        "one": {"a": [1, {"b": 2}], "c": None},
        "same": {"c": None, "a": [1.0, {"b": 2}]},
        "other": {"c": None, "a": [1, {"b": True}]},
        "wider": {"c": None, "a": [1, {"b": 2}], "d": 1},
        "n": 1,
        "yes": True,
    }
    assert value(f"{left} == {right}", **data) is same
    assert value(f"{right} == {left}", **data) is same
    assert value(f"{left} != {right}", **data) is not same


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 < 2", True),
        ("2 < 1", False),
        ("2 <= 2", True),
        ("2 >= 2.0", True),
        ("2.5 > 2", True),
        ("2 > 2.5", False),
        ("'apple' < 'banana'", True),
        ("'B' < 'a'", True),
        ("'Z' > 'a'", False),
        ("'abc' >= 'abc'", True),
        ("'é' > 'z'", True),
        ("42 > 'hello'", False),
        ("42 < 'hello'", False),
        ("'10' > 9", False),
        ("null < 1", False),
        ("null >= null", False),
        ("true > false", False),
        ("true >= 1", False),
        ("[1] < [2]", False),
        ("missing > 5", False),
        ("n > 5", True),
        ("n > 5.5", True),
        ("f <= 6", True),
        ("yes > 0", False),
        ("5 < n", True),
    ],
)
def test_order_holds_between_numbers_or_strings_and_is_false_elsewhere(text, expected):
    assert value(text, n=7, f=5.5, yes=True) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'strong' in ['strong', 'moderate']", True),
        ("'weak' in ['strong', 'moderate']", False),
        ("1 in [1.0]", True),
        ("'1' in [1]", False),
        ("1 in [true]", False),
        ("null in [null]", True),
        ("[1] in [[1]]", True),
        ("'x' in []", False),
        ("tag in tags", True),
        ("'a' in 'abc'", False),
        ("'a' in obj", False),
        ("1 in null", False),
    ],
)
def test_in_looks_for_an_equal_element_of_an_array(text, expected):
    assert value(text, tag="vip", tags=["new", "vip"], obj={"a": 1}) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'foo' + 'bar'", "foobar"),
        ("'1' + '2'", "12"),
        ("'a' + 'b' + 'c'", "abc"),
        ("'3' + 2", 5),
        ("'3.5' + 2", 5.5),
        ("'-1e2' + 0", -100.0),
        ("'10' - '3'", 7),
        ("'6' * '7'", 42),
        ("true + 1", 2),
        ("false + 1", 1),
        ("'hello' + 5", None),
        ("'' + 5", None),
        ("' 5' + 5", None),
        ("'nan' + 5", None),
        ("'inf' + 5", None),
        ("'1_0' + 5", None),
        ("'٣' + 5", None),
        ("null + 1", None),
        ("null - 1", None),
        ("[1] * 2", None),
        ("obj - 1", None),
        ("'a' + obj", None),
        ("(null - 10) * 100", None),
        ("6 / 2", 3),
        ("7 / 2", 3.5),
        ("-7 / 2", -3.5),
        ("6.0 / 4", 1.5),
        ("10 / 0", None),
        ("10 / 0.0", None),
        ("0 / 0", None),
        ("10 / null", None),
        ("-'7.5'", -7.5),
        ("-'hello'", None),
        ("-null", None),
        ("-obj", None),
        ("-true", -1),
        ("9223372036854775807 + 1", 9.223372036854775808e18),
        ("9223372036854775807 * 9223372036854775807", float(9223372036854775807**2)),
        ("-9223372036854775807 - 1", -(2**63)),
        ("-9223372036854775807 - 2", -9.223372036854775808e18),
        ("big * big", None),
        ("-big * big", None),
        ("big * big - big * big", None),
        ("huge + 1", None),
        ("huge / 2", None),
        ("huge * huge", None),
        ("-huge", None),
    ],
)
def test_arithmetic_coerces_what_is_numeric_and_gives_null_for_the_rest(text, expected):
    result = value(text, obj={"a": 1}, big=1.7e308, huge=10**400)
    assert result == expected
    assert type(result) is type(expected)


def test_integers_stay_integers_within_64_bits():
    assert value("3037000499 * 3037000499") == 3037000499**2
    assert type(value("9223372036854775806 + 1")) is int


def test_a_long_product_ends_as_null_not_as_a_huge_integer():
    assert value(" * ".join(["9"] * 2_000)) is None
