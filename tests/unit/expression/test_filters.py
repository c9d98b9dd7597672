"""Every filter of the contract, chained left to right, and the arguments it refuses."""

from __future__ import annotations

import pytest

from detent.expression import FILTER_NAMES, Scope, compile_template
from detent.model.errors import ExpressionError

SCOPE = Scope(
    data={
        "s": "hello",
        "pad": "  pad  ",
        "n": -5,
        "f": 12.3456,
        "half": 2.5,
        "neg": -2.5,
        "num": "7.25",
        "list": ["a", 1, True, None, {"k": 1}],
        "obj": {"a": 1},
        "empty": "",
        "zero": 0,
        "csv": "a,b,c",
        "msg": "hi NAME!",
        "name": "ada",
        "url": "a b/c&d é~-_.",
        "uni": "é😀",
    }
)

CASES = [
    ("data.s | upper", "HELLO"),
    ("data.n | upper", "-5"),
    ("data.missing | upper", ""),
    ("data.s | upper | lower", "hello"),
    ("data.pad | trim", "pad"),
    ("data.pad | trim | upper", "PAD"),
    ("data.n | abs", 5),
    ("data.num | abs", 7.25),
    ("data.missing | abs", None),
    ("data.url | url_encode", "a%20b%2Fc%26d%20%C3%A9~-_."),
    ("data.s | base64", "aGVsbG8="),
    ("data.uni | base64 | base64_decode", "é😀"),
    ("data.missing | default(fallback)", "fallback"),
    ("data.missing | default('a | b')", "a | b"),
    ("data.empty | default(x)", "x"),
    ("data.zero | default(x)", 0),
    ("data.s | default(x)", "hello"),
    ("data.missing | default(42)", 42),
    ("data.missing | default(true)", True),
    ("data.missing | default(null)", None),
    ("data.missing | default(data.name)", "ada"),
    ("data.missing | default(data)", "data"),
    ("data.s | replace('l', 'L')", "heLLo"),
    ("data.s | replace(l, r)", "herro"),
    ("data.s | replace(l, '')", "heo"),
    ("data.s | replace('', '-')", "-h-e-l-l-o-"),
    ("data.s | replace('l', 0)", "he00o"),
    ("data.msg | replace('NAME', data.name)", "hi ada!"),
    ("data.msg | replace('NAME', data.missing)", "hi !"),
    ("data.csv | replace(',', '|')", "a|b|c"),
    ("data.s | replace('(', ')')", "hello"),
    ("data.s | truncate(3)", "hel"),
    ("data.s | truncate(3, '...')", "hel..."),
    ("data.s | truncate(5, '...')", "hello"),
    ("data.s | truncate(0)", ""),
    ("data.uni | truncate(1)", "é"),
    ("data.list | join(', ')", 'a, 1, true, , {"k":1}'),
    ("data.s | join(',')", "hello"),
    ("data.missing | join(',')", ""),
    ("data.csv | split(',')", ["a", "b", "c"]),
    ("data.csv | split(;)", ["a,b,c"]),
    ("data.missing | split(',')", []),
    ("data.csv | split(',') | join(';')", "a;b;c"),
    (
        "data.s | hash('sha256')",
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    ),
    (
        "data.s | hash(sha256)",
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    ),
    ("data.f | round(2)", 12.35),
    ("data.f | round(0)", 12),
    ("data.half | round(0)", 3),
    ("data.neg | round(0)", -3),
    ("data.num | round(1)", 7.3),
    ("data.n | round(2)", -5),
    ("data.missing | round(2)", None),
    ("data.missing | data.s | upper", "HELLO"),
    ("data.missing | upper | data.s", "HELLO"),
    ("data.missing | word | upper", "WORD"),
    ("data.s | shout", "hello"),
    ("data.missing | shout", "shout"),
    ("data.missing | round", "round"),
    ("data.missing | nosuch(1)", "nosuch(1)"),
]


@pytest.mark.parametrize(("inner", "expected"), CASES)
def test_a_filter_gives(inner, expected):
    result = compile_template(f"{{{{ {inner} }}}}").render(SCOPE)
    assert result == expected
    assert type(result) is type(expected)


def test_an_argument_may_be_a_path_of_a_root_that_only_the_scope_has():
    scope = Scope(roots={"contact": {"name": "Ada"}})
    for roots in (None, frozenset({"contact"})):
        template = compile_template("{{ data.x | default(contact.name) }}", roots=roots)
        assert template.render(scope) == "Ada"
        assert template.render(Scope()) == "contact.name"
    unpromised = compile_template("{{ data.x | default(contact.name) }}", roots=frozenset())
    assert unpromised.render(Scope()) == "contact.name"


def test_every_filter_has_a_case():
    cases = " ".join(inner for inner, _ in CASES)
    assert [name for name in FILTER_NAMES if f"| {name}" not in cases] == []


@pytest.mark.parametrize(
    "inner",
    [
        "data.s | base64_decode",
        "data.n | base64_decode",
        "data.s | abs",
        "data.obj | abs",
        "data.s | round(2)",
        "data.s | round(two)",
        "data.s | round(-1)",
        "data.s | round(16)",
        "data.s | round()",
        "data.s | replace('x')",
        "data.s | replace('x', 'y', 'z')",
        "data.s | truncate(x)",
        "data.s | truncate()",
        "data.s | truncate(-1)",
        "data.s | truncate('3')",
        "data.s | split('')",
        "data.s | split(data.empty)",
        "data.s | join()",
        "data.s | hash('md5')",
        "data.s | default()",
        "data.s | upper(1)",
    ],
)
def test_a_filter_that_cannot_work_is_an_error(inner):
    with pytest.raises(ExpressionError) as caught:
        compile_template(f"{{{{ {inner} }}}}").render(SCOPE)
    assert caught.value.code == "expression.type"


def test_base64_of_bytes_that_are_no_text_is_an_error():
    with pytest.raises(ExpressionError, match="base64_decode"):
        compile_template("{{ data.b | base64_decode }}").render(Scope(data={"b": "/w=="}))


def test_half_a_surrogate_pair_passes_the_filters():
    scope = Scope(data={"s": "a\ud800"})
    for name in ("upper", "url_encode", "base64", "hash(sha256)", "truncate(5)"):
        assert compile_template(f"{{{{ data.s | {name} }}}}").render(scope)
