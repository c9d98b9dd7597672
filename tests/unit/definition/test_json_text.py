"""JSON text: what its readers usually let pass is a fault with a name."""

from __future__ import annotations

import json

import pytest

from detent.definition import parse, status_of
from detent.model.errors import DefinitionError
from tests.unit.definition.samples import a_sequence, a_step

STEP = '{"type": "step", "id": "s", "handler": "noop", "params": %s}'
TEXT = '{"name": "n", "version": 1, "blocks": [' + STEP + "]}"


def faults(text, **options):
    with pytest.raises(DefinitionError) as caught:
        parse(text, **options)
    return [(fault.path, fault.code) for fault in caught.value.faults]


@pytest.mark.parametrize("form", [str, str.encode, lambda text: "\ufeff" + text])
def test_text_and_bytes_are_read(form):
    assert parse(form(TEXT % "5")).body.blocks[0].params == 5


def test_bytes_with_a_mark_of_their_order_are_read():
    assert parse(b"\xef\xbb\xbf" + (TEXT % "5").encode()).name == "n"


def test_a_file_is_read_by_its_suffix(tmp_path):
    file = tmp_path / "greet.json"
    file.write_text(json.dumps(a_sequence()))
    assert parse(file).name == "greet"

    other = tmp_path / "greet.yaml"
    other.write_text("{name: greet, version: 1, blocks: [{type: step, id: s, handler: noop}]}")
    assert parse(other).hash == parse(file).hash


def test_a_syntax_error_names_line_and_column():
    with pytest.raises(DefinitionError) as caught:
        parse('{"name": "n",\n "version": }')

    assert caught.value.code == "definition.syntax"
    assert "line 2, column 13" in caught.value.message
    assert status_of(caught.value) == 400


@pytest.mark.parametrize("text", ["{", '{"a": 1} x', "{'a': 1}", '{"a": 01}', '{"a": 1,}', "[1"])
def test_what_is_not_json_is_a_syntax_error(text):
    assert faults(text) == [("$", "definition.syntax")]


def test_bytes_that_are_not_utf_8_are_a_syntax_error():
    assert faults(b'{"name": "\xff"}') == [("$", "definition.syntax")]


def test_a_key_given_twice_is_a_fault_with_its_place():
    text = TEXT % '{"a": {"b": 1, "c": 2, "b": 3}}'

    assert faults(text) == [("blocks[0].params.a.b", "definition.duplicate_key")]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("NaN", "definition.number"),
        ("Infinity", "definition.number"),
        ("-Infinity", "definition.number"),
        ("1e999", "definition.number"),
        ("9223372036854775808", "definition.number"),
        ("-9223372036854775809", "definition.number"),
        ("9" * 100_000, "definition.number"),
        ('"\\ud800"', "definition.text"),
        ('{"\\ud800": 1}', "definition.text"),
    ],
)
def test_a_value_without_a_faithful_form_is_a_fault(value, code):
    ((path, found),) = faults(TEXT % value)

    assert path == "blocks[0].params"
    assert found == code


@pytest.mark.parametrize("value", [9223372036854775807, -9223372036854775808, 1e308, "\U0001f600"])
def test_values_at_the_edge_are_kept(value):
    assert parse(TEXT % json.dumps(value)).body.blocks[0].params == value


@pytest.mark.parametrize(
    ("value", "place", "code"),
    [
        (print, "blocks[0].params", "definition.value"),
        ({"x": {1, 2}}, "blocks[0].params.x", "definition.value"),
        ([b"bytes"], "blocks[0].params[0]", "definition.value"),
        ({1: 2}, "blocks[0].params", "definition.key"),
        ({"a b": [2**63]}, 'blocks[0].params["a b"][0]', "definition.number"),
    ],
)
def test_a_python_value_that_is_no_data_is_a_fault(value, place, code):
    assert faults(a_sequence(a_step(params=value))) == [(place, code)]


def test_the_message_for_a_function_says_to_give_its_name():
    with pytest.raises(DefinitionError, match="a handler is given by its name"):
        parse(a_sequence(a_step(handler=print)))
