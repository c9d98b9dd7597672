"""The template inspector: one entry per pair of braces, with status, source and secrets hidden."""

from __future__ import annotations

import pytest

from detent.expression import Scope, trace_template


def body(template, **scope):
    return trace_template(template, Scope(**scope)).as_dict()


def entry(template, **scope):
    (only,) = body(template, **scope)["entries"]
    return only


def test_a_simple_reference():
    assert body("{{ context.data.name }}", data={"name": "Ada"}) == {
        "result": "Ada",
        "result_type": "string",
        "entries": [
            {
                "param_path": "_",
                "expression": "context.data.name",
                "status": "ok",
                "value": "Ada",
                "result_type": "string",
                "source": "context.data.name",
                "fallback_used": False,
                "coerced_to_string": False,
            }
        ],
    }


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (None, "null"),
        (False, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("s", "string"),
        ([1], "array"),
        ({"a": 1}, "object"),
    ],
)
def test_the_type_of_the_result_is_named(given, kind):
    answer = body("{{ data.v }}", data={"v": given})
    assert answer["result"] == given
    assert answer["result_type"] == kind
    assert answer["entries"][0]["result_type"] == kind


@pytest.mark.parametrize(
    ("template", "data", "status", "source", "fallback_used"),
    [
        ("{{ data.a }}", {"a": 1}, "ok", "data.a", False),
        ("{{ data.a }}", {"a": None}, "null", None, False),
        ("{{ data.a }}", {}, "missing", None, False),
        ("{{ data.a.b.c }}", {"a": 5}, "missing", None, False),
        ("{{ data.a | data.b }}", {"a": 1, "b": 2}, "ok", "data.a", False),
        ("{{ data.a | data.b }}", {"b": 2}, "ok", "data.b", True),
        ("{{ data.a | data.b }}", {"a": None, "b": 2}, "ok", "data.b", True),
        ("{{ data.a | data.b | data.c }}", {"b": None, "c": 0}, "ok", "data.c", True),
        ("{{ data.a | word }}", {}, "ok", "literal", True),
        ("{{ data.a | null }}", {}, "null", "literal", True),
        ("{{ data.a | data.b }}", {}, "missing", None, False),
        ("{{ data.a | data.b }}", {"a": None}, "null", None, False),
        ("{{ data.a | data.b }}", {"b": None}, "missing", None, False),
        ("{{ data.a | data.b | upper }}", {"b": "x"}, "ok", "data.b", True),
        ("{{ data.a | default('x') }}", {}, "ok", None, False),
        ("{{ data.a | default('x') }}", {"a": ""}, "ok", "data.a", False),
        ("{{ data.a | upper }}", {}, "ok", None, False),
        ("{{ len(data.a) }}", {"a": [1]}, "ok", "len(data.a)", False),
    ],
)
def test_status_source_and_fallback(template, data, status, source, fallback_used):
    found = entry(template, data=data)
    assert found["status"] == status
    assert found.get("source") == source
    assert found["fallback_used"] is fallback_used
    assert "error" not in found


def test_only_values_embedded_in_text_that_are_no_strings_are_coerced():
    assert entry("{{ data.n }}", data={"n": 7})["coerced_to_string"] is False
    assert entry("count={{ data.n }}", data={"n": 7})["coerced_to_string"] is True
    assert entry("hi {{ data.s }}", data={"s": "there"})["coerced_to_string"] is False
    both = body("{{ data.n }}{{ data.n }}", data={"n": 7})
    assert [found["coerced_to_string"] for found in both["entries"]] == [True, True]
    assert both["result"] == "77"


def test_every_expression_has_its_entry_in_order():
    answer = body("{{ data.a }}/{{ data.b }}/{{ data.c }}", data={"a": "x", "b": None})
    assert [found["status"] for found in answer["entries"]] == ["ok", "null", "missing"]
    assert [found["expression"] for found in answer["entries"]] == ["data.a", "data.b", "data.c"]
    assert answer["result"] == "x/null/null"


@pytest.mark.parametrize("text", ["plain text", "", "{{ data.name unbalanced", "x }} y"])
def test_text_without_expressions_has_no_entries(text):
    assert body(text, data={"name": "x"}) == {
        "result": text,
        "result_type": "string",
        "entries": [],
    }


@pytest.mark.parametrize(
    "template",
    ["{{ bogus.path }}", "{{ context.wat.x }}", "{{ nope(data.x) }}", "{{ data.s | hash(md5) }}"],
)
def test_an_error_leaves_no_result_but_the_other_entries(template):
    answer = body({"bad": template, "good": "{{ data.s }}"}, data={"s": "v"})
    assert "result" not in answer
    assert "result_type" not in answer
    bad, good = answer["entries"]
    assert bad["status"] == "error"
    assert bad["error"] == answer["error"]
    assert "value" not in bad
    assert "result_type" not in bad
    assert good["status"] == "ok"


def test_param_paths_are_dotted():
    answer = body(
        {"req": {"headers": [{"value": "{{ data.v }}"}], "n": 5}, "top": "{{ data.v }}"},
        data={"v": "x"},
    )
    assert [found["param_path"] for found in answer["entries"]] == ["req.headers.0.value", "top"]
    assert answer["result"] == {"req": {"headers": [{"value": "x"}], "n": 5}, "top": "x"}


@pytest.mark.parametrize(
    "secret",
    [
        "sk_live_abc123",
        "sk_test_xyz",
        "ghp_16charslong0000",
        "xoxb-1234-abcd",
        "AKIAIOSFODNN7EXAMPLE",
        "Bearer eyJhbGciOiJIUzI1NiJ9.payload.sig",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    ],
)
def test_a_value_that_looks_like_a_secret_is_hidden_in_entry_and_result(secret):
    whole = body("{{ data.note }}", data={"note": secret})
    assert whole["entries"][0]["status"] == "redacted"
    assert whole["entries"][0]["value"] == "[REDACTED]"
    assert whole["result"] == "[REDACTED]"
    embedded = body("see {{ data.note }}", data={"note": secret})
    assert embedded["result"] == "see [REDACTED]"
    nested = body("{{ data }}", data={"note": secret, "n": 1})
    assert nested["entries"][0]["status"] == "ok"
    assert nested["result"] == {"note": "[REDACTED]", "n": 1}


@pytest.mark.parametrize(
    "harmless", ["just a normal comment", "eyJ but no token", "sk_other", "Bearer", 12345, True]
)
def test_an_ordinary_value_is_shown(harmless):
    answer = body("{{ data.token_count }}", data={"token_count": harmless})
    assert answer["entries"][0]["status"] == "ok"
    assert answer["result"] == harmless


def test_a_value_under_a_secret_name_is_hidden_and_null_is_not():
    template = {"api_key": "{{ data.k }}", "apiKey": "{{ data.k }}", "author": "{{ data.k }}"}
    answer = body(template, data={"k": "plain"})
    assert [found["status"] for found in answer["entries"]] == ["redacted", "redacted", "ok"]
    assert answer["result"] == {"api_key": "[REDACTED]", "apiKey": "[REDACTED]", "author": "plain"}
    assert entry({"password": "{{ data.k }}"}, data={"k": None})["status"] == "null"


def test_a_trace_never_raises_at_a_limit():
    value = "{{ data.x }}"
    for _ in range(200):
        value = [value]
    assert "nested deeper" in trace_template(value, Scope()).as_dict()["error"]
    deep: list = []
    for _ in range(5_000):
        deep = [deep]
    assert trace_template("{{ data.x }}", Scope(data={"x": deep})).error is not None
