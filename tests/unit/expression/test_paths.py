"""Which roots there are, and how a dotted path is followed."""

from __future__ import annotations

import pytest

from detent.expression import ROOTS, Scope, compile_expression, compile_template
from detent.model.errors import ExpressionError

SCOPE = Scope(
    data={
        "name": "Ada",
        "user": {"roles": ["admin", "dev"], "0": "zero"},
        "input": {"q": "why"},
        "grid": [[1, 2], [3, 4]],
        "none": None,
        "number": 5,
        "config": "shadowed",
        "outputs": "shadowed",
    },
    config={"region": "eu"},
    outputs={"step_1": {"value": 42}},
    state={"counter": 7},
    runtime={"attempt": 3},
    audit=[{"event": "made"}],
    instance_id="inst-42",
    events={"reply:a": True},
    roots={"contact": {"email": "a@b.c", "unsubscribed": False}, "name": "root wins"},
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("context.data.user.roles.0", "admin"),
        ("context.config.region", "eu"),
        ("context.audit.0.event", "made"),
        ("context.runtime.attempt", 3),
        ("data.grid.1.0", 3),
        ("data.user.0", "zero"),
        ("config.region", "eu"),
        ("outputs.step_1.value", 42),
        ("steps.step_1.value", 42),
        ("steps.step_1", {"value": 42}),
        ("input.q", "why"),
        ("input", {"q": "why"}),
        ("instance_id", "inst-42"),
        ("runtime.attempt", 3),
        ("state.counter", 7),
        ("state", {"counter": 7}),
        ("contact.email", "a@b.c"),
        ("contact.unsubscribed", False),
        ("data.missing", None),
        ("data.missing.deeper", None),
        ("data.none", None),
        ("data.none.x", None),
        ("data.number.x", None),
        ("data.name.0", None),
        ("data.grid.2", None),
        ("data.grid.x", None),
        ("data.grid.99999999999999999999", None),
        ("outputs.ghost.value", None),
        ("instance_id.x", None),
    ],
)
def test_expressions_and_templates_read_the_same_paths(path, expected):
    assert compile_expression(path).evaluate(SCOPE) == expected
    assert compile_expression(path, strict=True).evaluate(SCOPE) == expected
    assert compile_template(f"{{{{ {path} }}}}").render(SCOPE) == expected


def test_context_alone_is_the_whole_context():
    whole = compile_expression("context").evaluate(SCOPE)
    assert list(whole) == ["data", "config", "audit", "runtime"]
    assert whole["data"] is SCOPE.data


def test_a_bare_name_is_read_in_data_unless_it_is_a_root():
    assert compile_expression("user.roles.1").evaluate(SCOPE) == "dev"
    assert compile_expression("number > 4").evaluate(SCOPE) is True
    assert compile_expression("config.region").evaluate(SCOPE) == "eu"
    assert compile_expression("name").evaluate(SCOPE) == "root wins"
    assert compile_expression("nonexistent").evaluate(SCOPE) is None
    assert compile_expression("nonexistent").evaluate(Scope(data=[1])) is None


@pytest.mark.parametrize("data", [None, "abc", 5, True, ["x"], {}])
def test_data_of_any_kind_can_be_looked_into(data):
    expected = "x" if data == ["x"] else None
    for path in ("data.0", "context.data.0", "data.0.0"):
        found = compile_expression(path).evaluate(Scope(data=data))
        assert found == (expected if path.count("0") == 1 else None)


def test_an_unquoted_word_is_a_path_so_the_comparison_is_with_null():
    assert compile_expression("number == nonexistent").evaluate(SCOPE) is False
    assert compile_expression("missing == nonexistent").evaluate(SCOPE) is True


def test_an_error_placed_in_data_or_given_as_a_root_is_found():
    condition = compile_expression("_error.message == 'down'")
    assert condition.test(Scope(data={"_error": {"message": "down"}}))
    assert condition.test(Scope(roots={"_error": {"message": "down"}}))
    assert not condition.test(Scope(data={}))


@pytest.mark.parametrize("root", ROOTS)
def test_every_root_can_be_read_in_an_empty_scope(root):
    compile_expression(root).evaluate(Scope())
    compile_expression(f"{root}.a.b == 1").evaluate(Scope())
    assert compile_template(f"{{{{ data.x | {root} }}}}").render(Scope()) != root


def test_an_unknown_section_of_the_context_is_null_in_a_lenient_expression_only():
    assert compile_expression("context.wat.x").evaluate(SCOPE) is None
    with pytest.raises(ExpressionError) as caught:
        compile_expression("context.wat.x", strict=True)
    assert caught.value.code == "expression.unknown"
    with pytest.raises(ExpressionError) as caught:
        compile_template("{{ context.wat.x }}").render(SCOPE)
    assert caught.value.code == "expression.unknown"


def test_a_container_is_given_by_reference_and_the_scope_stays_as_it_was():
    before = repr(SCOPE)
    assert compile_expression("data.user").evaluate(SCOPE) is SCOPE.data["user"]
    compile_expression("sort(unique(values(data.user)))").evaluate(SCOPE)
    compile_expression("mergeObjects(data.user, data.input)").evaluate(SCOPE)
    assert repr(SCOPE) == before
