"""Every function of the contract: what it gives, and null for what it cannot take."""

from __future__ import annotations

import uuid
from itertools import count

import pytest

from detent.expression import FUNCTION_NAMES, Scope, compile_expression
from detent.model.errors import ExpressionError

DATA = {
    "nums": [3, 1, 2],
    "mixed": [3, "a", None, True, 1.5, "B", [1], False],
    "words": ["a", "b", "a", "c", "a"],
    "obj": {"b": 1, "a": {"x": [1]}},
    "empty": [],
    "text": "hello world",
    "none": None,
}


def value(text, **scope):
    return compile_expression(text).evaluate(Scope(**({"data": DATA} | scope)))


CASES = [
    ("abs(-5)", 5),
    ("abs(5.5)", 5.5),
    ("abs('-5')", 5),
    ("abs(3 - 10)", 7),
    ("abs(null)", None),
    ("abs('x')", None),
    ("abs(-9223372036854775807 - 1)", 9.223372036854775808e18),
    ("len(nums)", 3),
    ("len(text)", 11),
    ("len('é😀')", 2),
    ("len(obj)", 2),
    ("len(empty)", 0),
    ("len(null)", None),
    ("len(5)", None),
    ("json(obj)", '{"b":1,"a":{"x":[1]}}'),
    ("json('é')", '"é"'),
    ("json(null)", "null"),
    ("json(1.5)", "1.5"),
    ("keys(obj)", ["b", "a"]),
    ("keys(nums)", None),
    ("values(obj)", [1, {"x": [1]}]),
    ("values(null)", None),
    ("contains(words, 'c')", True),
    ("contains(words, 'z')", False),
    ("contains(nums, 1.0)", True),
    ("contains(text, 'world')", True),
    ("contains(text, 'World')", False),
    ("contains(text, 5)", None),
    ("contains(obj, 'a')", True),
    ("contains(obj, 'x')", False),
    ("contains(5, 'x')", None),
    ("starts_with(text, 'hello')", True),
    ("starts_with(text, 'world')", False),
    ("starts_with(text, 5)", None),
    ("ends_with(text, 'world')", True),
    ("ends_with(text, 'hello')", False),
    ("ends_with(null, 'x')", None),
    ("sum(nums)", 6),
    ("sum(empty)", 0),
    ("sum([1, 2.5])", 3.5),
    ("sum(['1', true])", 2),
    ("sum(mixed)", None),
    ("sum(5)", None),
    ("sum([9223372036854775807, 1])", 9.223372036854775808e18),
    ("avg([10, 20, 30])", 20),
    ("avg([1, 2])", 1.5),
    ("avg(empty)", None),
    ("avg(text)", None),
    ("min(nums)", 1),
    ("min(4, 2, 3)", 2),
    ("min(empty)", None),
    ("min(words)", None),
    ("max(nums)", 3),
    ("max(4, 2)", 4),
    ("max(null)", None),
    ("first(words)", "a"),
    ("first(empty)", None),
    ("first(text)", None),
    ("last(words)", "a"),
    ("last(nums)", 2),
    ("last(empty)", None),
    ("slice(nums, 1)", [1, 2]),
    ("slice(nums, 1, 2)", [1]),
    ("slice(nums, 0, 2.0)", [3, 1]),
    ("slice(nums, -2)", [1, 2]),
    ("slice(nums, 5)", []),
    ("slice(text, 0, 5)", "hello"),
    ("slice(nums, 'x')", None),
    ("slice(nums, 0, 1.5)", None),
    ("slice(obj, 0)", None),
    ("sort(nums)", [1, 2, 3]),
    ("sort(nums, 'desc')", [3, 2, 1]),
    ("sort(nums, 'sideways')", None),
    ("sort(words)", ["a", "a", "a", "b", "c"]),
    ("sort(mixed)", [None, False, True, 1.5, 3, "B", "a", [1]]),
    ("sort(obj)", None),
    ("unique(words)", ["a", "b", "c"]),
    ("unique([1, 1.0, true, '1', null, null])", [1, True, "1", None]),
    ("unique([[1], [1.0], [true], obj, obj])", [[1], [True], {"b": 1, "a": {"x": [1]}}]),
    ("unique(text)", None),
    ("count(words, 'a')", 3),
    ("count(words, 'z')", 0),
    ("count(words)", 5),
    ("count(text, 'o')", None),
    ("change_pct(100, 150)", 50),
    ("change_pct(200, 100)", -50),
    ("change_pct(0, 100)", None),
    ("change_pct('4', 5)", 25),
    ("change_pct(null, 5)", None),
    ("clamp(5, 0, 10)", 5),
    ("clamp(-5, 0, 10)", 0),
    ("clamp(15, 0, 10)", 10),
    ("clamp(15, 10, 0)", None),
    ("clamp('x', 0, 10)", None),
    ("format_date('2026-01-15T10:30:00+00:00', '%Y-%m-%d')", "2026-01-15"),
    ("format_date('not a date', '%Y')", None),
    ("format_date(5, '%Y')", None),
    ("format_date('2026-01-15', 5)", None),
    ("day_of_week('2026-01-15T10:00:00+00:00')", 3),
    ("day_of_week('2026-01-12')", 0),
    ("day_of_week('2026-01-12T01:00:00+02:00')", 6),
    ("day_of_week('x')", None),
    ("coalesce(null, none, 5)", 5),
    ("coalesce(null)", None),
    ("concat('a', 1, null, true)", "a1true"),
    ("add(1, 2, 3)", 6),
    ("add(1, 'x')", None),
    ("if(empty, 'full', 'none')", "none"),
    ("isNullOrWhiteSpace('  ')", True),
    ("isNullOrWhiteSpace(missing)", True),
    ("isNullOrWhiteSpace(text)", False),
    ("isNullOrWhiteSpace(5)", None),
    ("length(nums)", 3),
    ("upper(text)", "HELLO WORLD"),
    ("upper(5)", None),
    ("lower('ÀB')", "àb"),
    ("trim('  a ')", "a"),
    ("mergeObjects(obj, null)", {"b": 1, "a": {"x": [1]}}),
    ("mergeObjects(obj, obj.a)", {"b": 1, "a": {"x": [1]}, "x": [1]}),
    ("mergeObjects(obj, 5)", None),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_function_gives(text, expected):
    result = value(text)
    assert result == expected
    assert type(result) is type(expected)


def test_every_registered_function_has_a_case():
    elsewhere = {"now", "uuid", "random", "call.outcome"}
    cases = " ".join(text for text, _ in CASES)
    left_out = [name for name in FUNCTION_NAMES if f"{name}(" not in cases]
    assert [name for name in left_out if not name.startswith("events.")] == sorted(
        elsewhere, key=FUNCTION_NAMES.index
    )


@pytest.mark.parametrize("text", ["nosuch(1)", "nosuch()", "data.len(1)", "nosuch(nosuch(1)) == 1"])
def test_an_unknown_function_is_null(text):
    assert not value(text)


def test_missing_arguments_are_null_and_surplus_ones_are_left_out():
    assert value("abs()") is None
    assert value("contains(words)") is False
    assert value("len(nums, random(1, 2))") == 3


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("%Y", "2026"),
        ("%C", "20"),
        ("%y", "26"),
        ("%m", "03"),
        ("%b", "Mar"),
        ("%h", "Mar"),
        ("%B", "March"),
        ("%d", "08"),
        ("%e", " 8"),
        ("%j", "067"),
        ("%a", "Sun"),
        ("%A", "Sunday"),
        ("%u", "7"),
        ("%w", "0"),
        ("%U", "10"),
        ("%W", "09"),
        ("%G-%V", "2026-10"),
        ("%H:%M:%S", "00:05:09"),
        ("%I %p", "12 AM"),
        ("%f", "120000"),
        ("%z", "+0000"),
        ("%Z", "UTC"),
        ("%s", "1772928309"),
        ("%F", "2026-03-08"),
        ("%T", "00:05:09"),
        ("%R", "00:05"),
        ("%D", "03/08/26"),
        ("%%", "%"),
        ("%n%t", "\n\t"),
        ("%Q and %", "%Q and %"),
        ("plain", "plain"),
    ],
)
def test_format_date_knows_the_directive(directive, expected):
    # 2026-03-08 00:05:09.12 UTC, a Sunday, written with an offset
    assert value(f"format_date('2026-03-07T22:05:09.12-02:00', '{directive}')") == expected


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-03-07", "00:00:00"),
        ("2026-03-07T15:04", "15:04:00"),
        ("2026-03-07 15:04:05", "15:04:05"),
        ("2026-03-07t15:04:05z", "15:04:05"),
        ("2026-03-07T15:04:05.999999999Z", "15:04:05"),
        ("2026-03-07T15:04:05+0130", "13:34:05"),
    ],
)
def test_dates_are_read_in_the_forms_of_rfc_3339_and_shown_in_utc(text, hour):
    assert value(f"format_date('{text}', '%T')") == hour


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30",
        "2026-13-01",
        "2026-01-01T25:00",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "2026-1-1",
        "20260101",
        "2026-01-01T10:00:00 UTC",
        "٢٠٢٦-01-01",
    ],
)
def test_what_is_no_date_formats_as_null(text):
    assert value(f"format_date('{text}', '%F')") is None


def test_now_is_logical_time_in_utc_with_milliseconds():
    assert value("now()", now_ms=0) == "1970-01-01T00:00:00.000Z"
    assert value("now()", now_ms=1_768_473_000_123) == "2026-01-15T10:30:00.123Z"
    assert value("format_date(now(), '%F %f')", now_ms=1_768_473_000_123) == "2026-01-15 123000"
    assert value("day_of_week()", now_ms=1_768_473_000_123) == 3
    assert value("now()", now_ms=-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
    assert value("now()", now_ms=10**18) is None


def test_uuid_and_random_come_from_the_seed_alone():
    def draws():
        numbers = count(0x0123456789ABCDEF)
        return lambda: next(numbers)

    first = value("[uuid(), random(1, 6), uuid()]", draw=draws())
    assert first == value("[uuid(), random(1, 6), uuid()]", draw=draws())
    assert first[0] != first[2]
    assert [uuid.UUID(text).version for text in (first[0], first[2])] == [4, 4]
    assert uuid.UUID(first[0]).variant == uuid.RFC_4122


def test_random_gives_every_integer_of_the_closed_range():
    numbers = count()
    scope = {"draw": lambda: next(numbers)}
    assert [value("random(-1, 2)", **scope) for _ in range(4)] == [-1, 0, 1, 2]
    assert value("random(5, 5)", **scope) == 5
    whole = "random(-9223372036854775807, 9223372036854775807)"
    assert value(whole, draw=lambda: 2**64 - 1) == -9223372036854775807


@pytest.mark.parametrize("text", ["random(2, 1)", "random('a', 2)", "random(1.5, 2)", "random(1)"])
def test_random_of_no_range_is_null(text):
    assert value(text, draw=lambda: 7) is None


def test_chance_without_a_seed_is_refused():
    with pytest.raises(ExpressionError, match="seed"):
        value("uuid()")


@pytest.mark.req("PLAN-COND-1")
@pytest.mark.parametrize(
    ("name", "kind"),
    [("hasReply", "reply"), ("hasOpen", "open"), ("hasClick", "click"), ("hasBounce", "bounce")],
)
@pytest.mark.parametrize("strict", [True, False])
def test_event_functions_look_flags_up(name, kind, strict):
    def ask(text, flags):
        return compile_expression(text, strict=strict).evaluate(Scope(events=flags))

    flags = {f"{kind}:step_1": True, "other:step_2": True}
    assert ask(f'events.{name}("step_1")', flags) is True
    assert ask(f'events.{name}("step_2")', flags) is False
    for anything in ('("any")', "(any)", "()"):
        assert ask(f"events.{name}{anything}", flags) is True
        assert ask(f"events.{name}{anything}", {"other:step_2": True}) is False
        assert ask(f"events.{name}{anything}", {f"{kind}:step_1": False}) is False


@pytest.mark.req("PLAN-COND-1")
def test_call_outcome_is_compared_like_any_text():
    scope = {"events": {"outcome:ring": "answered"}, "roots": {"call": {}}}
    assert value('call.outcome("ring") == "answered"', **scope) is True
    assert value('call.outcome("other")', **scope) is None
    assert value("call.outcome(5)", **scope) is None
