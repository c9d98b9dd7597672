"""Templates: what is filled in, what keeps its type, and what is left alone."""

from __future__ import annotations

import pytest

from detent.expression import Scope, compile_template
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_CHARS, PAYLOAD_DEPTH

SCOPE = Scope(
    data={
        "name": "Ada",
        "age": 30,
        "score": 85.5,
        "active": True,
        "none": None,
        "empty": "",
        "user": {"id": 1, "tags": ["a", "b"]},
        "items": ["x", "y"],
        "quote": "it's }} here",
    },
    config={"region": "eu"},
    outputs={"step-1": {"total": 7}},
    state={"counter": 2},
)


def render(value, scope=SCOPE):
    return compile_template(value).render(scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{context.data.name}}", "Ada"),
        ("{{ context.data.age }}", 30),
        ("{{data.score}}", 85.5),
        ("{{data.active}}", True),
        ("{{data.none}}", None),
        ("{{data.missing}}", None),
        ("{{data.user}}", {"id": 1, "tags": ["a", "b"]}),
        ("{{data.items}}", ["x", "y"]),
        ("{{data.items.1}}", "y"),
        ("{{outputs.step-1.total}}", 7),
        ("{{steps.step-1.total}}", 7),
        ("{{state.counter}}", 2),
        ("{{\n data.age \t}}", 30),
    ],
)
def test_a_template_that_is_the_whole_string_keeps_the_type(text, expected):
    assert render(text) == expected
    assert type(render(text)) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {{data.name}}!", "Hello Ada!"),
        ("{{data.name}}{{data.name}}", "AdaAda"),
        ("{{data.age}} ", "30 "),
        ("n={{data.age}} f={{data.score}} b={{data.active}}", "n=30 f=85.5 b=true"),
        ("o={{data.user}}", 'o={"id":1,"tags":["a","b"]}'),
        ("a={{data.items}}", 'a=["x","y"]'),
        ("missing: {{data.missing}}", "missing: null"),
        ("null: {{data.none}}", "null: null"),
        ("{{data.items.0}}/{{data.items.1}}", "x/y"),
    ],
)
def test_inside_a_text_values_become_text(text, expected):
    assert render(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{context.data.x|abc|def}}", "abc"),
        ("{{data.x|fallback-value}}", "fallback-value"),
        ("{{data.x | some words here }}", "some words here"),
        ("{{data.name|abc}}", "Ada"),
        ("{{data.none|abc}}", "abc"),
        ("{{data.empty|abc}}", ""),
        ("{{data.x|data.y|data.name}}", "Ada"),
        ("{{data.x|'quoted | text'}}", "quoted | text"),
        ('{{data.x|"it\'s"}}', "it's"),
        ("{{data.x|''}}", ""),
        ("{{data.x|}}", ""),
        ("{{data.x|42}}", 42),
        ("{{data.x|-1.5}}", -1.5),
        ("{{data.x|true}}", True),
        ("{{data.x|null|abc}}", None),
        ("{{data.x|'42'}}", "42"),
        ("{{data.x|stop|data.name}}", "stop"),
        ("{{data.x|bogus.path}}", "bogus.path"),
        ("{{data.x|config.region|abc}}", "eu"),
        ("{{data.x|len(data.items)}}", 2),
        ("{{ 'literal' }}", "literal"),
        ("{{ 5 }}", 5),
    ],
)
def test_alternatives_are_tried_until_one_is_not_null_or_a_literal(text, expected):
    assert render(text) == expected
    assert type(render(text)) is type(expected)


def test_a_word_is_a_path_only_where_the_scope_has_such_a_root():
    template = compile_template("{{ data.x | contact.email }}")
    assert template.render(Scope(roots={"contact": {"email": "a@b.c"}})) == "a@b.c"
    assert template.render(Scope()) == "contact.email"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{json(data.user)}}", '{"id":1,"tags":["a","b"]}'),
        ("{{ len(data.items) }}", 2),
        ("{{ len( data.name ) }}", 3),
        ("{{len(data.missing)}}", None),
        ("{{json(data.missing)}}", "null"),
        ("has {{len(data.items)}}", "has 2"),
    ],
)
def test_json_and_len_go_around_a_path(text, expected):
    assert render(text) == expected


@pytest.mark.parametrize(
    "text",
    ["{{data.items[0]}}", "{{context.data.age > 5}}", "{{context.data.age + context.data.age}}"],
)
def test_brackets_and_operators_are_not_evaluated(text):
    assert render(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "{single}",
        "closing }} alone",
        "{{ data.name",
        "{{ data.name }",
        "a {{ b {{ c",
        "{{ data.x | 'open }}",
    ],
)
def test_a_text_without_a_closed_pair_of_braces_stays_as_it_is(text):
    template = compile_template(text)
    assert template.constant
    assert template.render(SCOPE) == text


def test_a_closed_pair_before_an_open_one_is_still_filled():
    assert render("{{data.name}} and {{ tail") == "Ada and {{ tail"


def test_a_quote_protects_closing_braces():
    assert render("{{ data.x | '}}' }}") == "}}"
    assert render('<{{ data.x | "a }} b" }}>') == "<a }} b>"


def test_objects_and_arrays_are_walked_and_keys_are_not_templated():
    template = compile_template(
        {"{{data.name}}": "{{data.name}}", "list": [1, "{{data.age}}", {"deep": "{{data.items}}"}]}
    )
    assert not template.constant
    assert template.render(SCOPE) == {
        "{{data.name}}": "Ada",
        "list": [1, 30, {"deep": ["x", "y"]}],
    }


def test_keys_keep_their_order():
    assert list(render({"z": 1, "a": "{{data.name}}", "m": 2})) == ["z", "a", "m"]


@pytest.mark.parametrize("value", [None, 5, True, "x", [], {"a": [1, {"b": "{c}"}]}])
def test_what_needs_no_rendering_is_constant_and_shared(value):
    template = compile_template(value)
    assert template.constant
    assert template.render(SCOPE) is value


def test_rendering_changes_neither_the_template_nor_the_scope():
    value = {"a": "{{data.user}}", "b": ["{{data.name}}", {"c": 1}]}
    template = compile_template(value)
    first = template.render(SCOPE)
    first["b"].append("changed")
    assert template.render(SCOPE) == {"a": SCOPE.data["user"], "b": ["Ada", {"c": 1}]}
    assert value == {"a": "{{data.user}}", "b": ["{{data.name}}", {"c": 1}]}


@pytest.mark.parametrize(
    "text", ["{{foo.bar}}", "{{item}}", "{{ }}", "x {{bogus.path}} y", "{{ a > 5 }}"]
)
def test_an_unknown_root_is_an_error_when_rendered(text):
    with pytest.raises(ExpressionError, match="unknown root") as caught:
        render({"deep": [text]})
    assert caught.value.code == "expression.unknown"


def test_an_unknown_template_function_is_an_error_when_rendered():
    template = compile_template("{{ nope(data.x) }}")
    assert len(template.problems) == 1
    with pytest.raises(ExpressionError, match="unknown template function"):
        template.render(SCOPE)


def test_what_is_between_braces_is_limited_in_length():
    inner = "data.x|" + "a" * (EXPRESSION_CHARS - 7)
    assert len(render(f"{{{{{inner}}}}}")) == EXPRESSION_CHARS - 7
    with pytest.raises(ExpressionError) as caught:
        compile_template(f"{{{{{inner}a}}}}")
    assert caught.value.code == "expression.limit"


def test_a_template_is_limited_in_depth():
    def nested(depth):
        value = "{{data.name}}"
        for _ in range(depth):
            value = [value]
        return value

    assert not compile_template(nested(PAYLOAD_DEPTH)).constant
    with pytest.raises(ExpressionError) as caught:
        compile_template(nested(PAYLOAD_DEPTH + 1))
    assert caught.value.code == "expression.limit"
