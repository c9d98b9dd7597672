"""Strict mode, for plans and workflows: what lenient mode turns to null is refused."""

from __future__ import annotations

import pytest

from detent.expression import Scope, compile_expression, compile_template
from detent.model.errors import ExpressionError

ROOTS = frozenset({"start", "state", "payload", "result"})
SCOPE = Scope(data={"n": 1, "s": "x", "list": [1, "a"], "obj": {}, "zero": 0, "t": True})


def refusal(text, **options):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, strict=True, **options).evaluate(SCOPE)
    return caught.value.code


@pytest.mark.req("WF-EXP-1")
@pytest.mark.parametrize(
    "text",
    [
        "data.n + data.s",
        "data.n + data.missing",
        "data.n - data.list",
        "data.obj * 2",
        "-data.s",
        "-data.missing",
        "data.n / data.zero",
        "1 / 0",
        "data.big * data.big",
        "data.n < 'a'",
        "data.missing > 5",
        "data.t > 0",
        "data.s > 5",
        "data.n in data.s",
        "data.n in null",
        "abs(data.s)",
        "len(data.missing)",
        "sum(data.list)",
        "format_date('yesterday', '%Y')",
        "random(2, 1)",
        "contains(data.n, 1)",
        "change_pct(0, 1)",
    ],
)
def test_a_wrong_type_or_a_division_by_zero_is_refused_where_lenient_gives_null(text):
    scope = Scope(data=SCOPE.data | {"big": 1e300}, draw=lambda: 1)
    assert not compile_expression(text).evaluate(scope)
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, strict=True).evaluate(scope)
    assert caught.value.code == "expression.type"


@pytest.mark.req("WF-EXP-1")
@pytest.mark.parametrize("text", ["data.n + '1'", "data.t + 1", "abs('5')", "sum(['1'])"])
def test_numeric_strings_and_booleans_are_numbers_in_lenient_mode_only(text):
    assert compile_expression(text).evaluate(SCOPE) in (1, 2, 5)
    assert refusal(text) == "expression.type"


@pytest.mark.req("WF-EXP-1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data.missing", None),
        ("data.n.deeper", None),
        ("data.missing == null", True),
        ("data.missing == 5", False),
        ("!data.missing", True),
        ("data.missing && data.n", False),
        ("data.missing ? 1 : 2", 2),
        ("coalesce(data.missing, data.n)", 1),
        ("data.n + 1.5", 2.5),
        ("data.s + 'y'", "xy"),
        ("data.n in data.list", True),
        ("first(data.list)", 1),
        ("isNullOrWhiteSpace(data.missing)", True),
    ],
)
def test_a_missing_path_is_null_and_what_takes_null_works(text, expected):
    assert compile_expression(text, strict=True).evaluate(SCOPE) == expected


@pytest.mark.req("WF-EXP-1")
def test_an_unknown_function_is_refused_at_compile_time():
    with pytest.raises(ExpressionError, match=r"`nosuch\(\)` is an unknown function") as caught:
        compile_expression("nosuch(1)", strict=True)
    assert caught.value.code == "expression.unknown"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abs()", "1"), ("abs(1, 2)", "1"), ("slice(1)", "2 to 3"), ("now(1)", "0")],
)
def test_a_wrong_number_of_arguments_is_refused_at_compile_time(text, expected):
    with pytest.raises(ExpressionError, match=f"takes {expected} arguments") as caught:
        compile_expression(text, strict=True)
    assert caught.value.code == "expression.type"


@pytest.mark.req("WF-EXP-1")
def test_an_unknown_root_is_refused_at_compile_time_when_the_roots_are_known():
    compile_expression("start.amount > 5 && data.n == 1", strict=True, roots=ROOTS)
    with pytest.raises(ExpressionError, match="`mode` is an unknown root") as caught:
        compile_expression("mode == 'fast'", strict=True, roots=ROOTS)
    assert caught.value.code == "expression.unknown"


def test_an_unknown_root_is_refused_at_evaluation_when_they_are_not():
    expression = compile_expression("payload.ok", strict=True)
    assert expression.evaluate(Scope(roots={"payload": {"ok": True}})) is True
    assert refusal("payload.ok") == "expression.unknown"


def test_a_bare_name_is_not_read_in_data():
    assert compile_expression("n").evaluate(SCOPE) == 1
    assert refusal("n") == "expression.unknown"


def test_the_error_names_the_operator_and_the_kinds():
    with pytest.raises(ExpressionError, match="`<` cannot be applied to null, string"):
        compile_expression("data.missing < data.s", strict=True).evaluate(SCOPE)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ bogus.path }}", "expression.unknown"),
        ("{{ nope(data.x) }}", "expression.unknown"),
        ("{{ data.x | shout() }}", "expression.unknown"),
        ("{{ data.x | truncate(x) }}", "expression.type"),
        ("{{ data.x | replace('a') }}", "expression.type"),
        ("{{ context.wat }}", "expression.unknown"),
    ],
)
def test_a_broken_template_is_refused_at_compile_time_when_strict_and_at_rendering_when_not(
    text, code
):
    with pytest.raises(ExpressionError) as caught:
        compile_template({"a": [text]}, strict=True, roots=frozenset())
    assert caught.value.code == code
    if "shout" in text:
        assert compile_template(text).render(SCOPE) == "shout()"
        return
    lenient = compile_template({"a": [text]}, roots=frozenset())
    assert [problem.code for problem in lenient.problems] == [code]
    with pytest.raises(ExpressionError) as caught:
        lenient.render(SCOPE)
    assert caught.value.code == code


def test_a_strict_template_may_name_the_roots_it_was_promised():
    template = compile_template("{{ contact.email }}", strict=True, roots=frozenset({"contact"}))
    assert template.problems == ()
    assert template.render(Scope(roots={"contact": {"email": "a@b.c"}})) == "a@b.c"
