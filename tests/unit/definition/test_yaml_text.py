"""YAML text: version 1.2, bounded, and nothing decided in silence."""

from __future__ import annotations

import pytest

from detent.definition import parse
from detent.definition.yaml_text import plain_scalar
from detent.model.errors import DefinitionError

TEXT = """
name: greet
version: 1
blocks:
  - type: step
    id: s
    handler: noop
    params: {}
"""


def params_of(value):
    return parse(TEXT.format(value)).body.blocks[0].params


def refusal(text):
    with pytest.raises(DefinitionError) as caught:
        parse(text, format="yaml")
    (fault,) = caught.value.faults
    return fault.path, fault.code, fault.message


@pytest.mark.parametrize("word", ["no", "No", "NO", "on", "off", "yes", "y", "n", "Off"])
def test_words_of_yaml_1_1_are_text(word):
    assert params_of(word) == word


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("010", 10),
        ("0000000000000000000000000000010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("2026-01-31", "2026-01-31"),
        ("12:30:00", "12:30:00"),
        ("1:30", "1:30"),
        ("=", "="),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("", None),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(text, value):
    found = params_of(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1e999", "9" * 30, "0x" + "f" * 40])
def test_a_number_out_of_range_is_a_fault_with_its_place(text):
    path, code, _ = refusal(TEXT.format(text))
    assert (path, code) == ("blocks[0].params", "definition.number")


def test_a_scalar_of_ten_thousand_zeros_is_zero():
    assert plain_scalar("0" * 10_000) == 0


def test_a_key_given_twice_is_a_fault_with_its_place():
    path, code, _ = refusal(TEXT.format("{a: 1, b: 2, a: 3}"))
    assert (path, code) == ("blocks[0].params.a", "definition.duplicate_key")


def test_the_word_on_can_be_a_key():
    assert params_of("{on: 1, no: 2}") == {"on": 1, "no": 2}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{1: a}", "a key must be text"),
        ("{[a]: b}", "a key must be text"),
        ("{<<: {a: 1}}", "merge keys"),
        ("!!python/object/apply:os.system [ls]", "the tag"),
        ("!mine x", "the tag"),
        ("!!binary aGk=", "the tag"),
        ("*nowhere", "no anchor"),
        ("&a [*a]", "no anchor"),
        ("[1, 2", "line"),
        ("'open", "line"),
        ("\t- x", "line"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_line(value, reason):
    path, code, message = refusal(TEXT.format(value))
    assert (path, code) == ("$", "definition.syntax")
    assert reason in message
    assert "line " in message


def test_aliases_are_expanded():
    assert params_of("{a: &x [1, {b: 2}], c: *x}") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


def test_a_second_document_is_refused():
    _, code, message = refusal(TEXT.format("1") + "---\nname: other\n")
    assert code == "definition.syntax"
    assert "second document" in message


@pytest.mark.parametrize("text", ["", "# only a comment\n", "- a\n- b\n", "just text"])
def test_only_an_object_is_a_definition(text):
    path, code, _ = refusal(text)
    assert (path, code) == ("$", "definition.type")


def test_a_character_that_yaml_forbids_is_a_syntax_error():
    assert refusal("name: a\x01b")[1] == "definition.syntax"
