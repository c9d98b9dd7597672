"""What a command line names: definitions, handlers, JSON values."""

from __future__ import annotations

import pytest

from detent.cli.sources import json_value, load_definition, load_module
from detent.cli.values import WrongValue
from detent.model.errors import RequestError

TWO = """
from detent import sequence, step
one = sequence("one", step("a", "noop"))
two = sequence("two", step("a", "noop"))
"""


def test_a_python_file_with_several_definitions_needs_the_name_of_one(tmp_path):
    file = tmp_path / "two_definitions.py"
    file.write_text(TWO)
    assert load_definition(f"{file}:two").definition.name == "two"
    with pytest.raises(RequestError) as caught:
        load_definition(str(file))
    assert "one, two" in caught.value.message


def test_a_python_file_brings_its_module_along(tmp_path):
    file = tmp_path / "one_definition.py"
    file.write_text("from detent import sequence, step\nd = sequence('d', step('a', 'noop'))\n")
    source = load_definition(str(file))
    assert source.module is not None
    assert source.definition is source.module.d


def test_a_module_that_cannot_be_imported_is_told_in_a_sentence_with_its_line(tmp_path):
    file = tmp_path / "broken_handlers.py"
    file.write_text("x = 1\ny = undefined_name\n")
    with pytest.raises(RequestError) as caught:
        load_module(str(file))
    assert caught.value.code == "handler.import"
    assert "line 2" in caught.value.message
    assert "undefined_name" in caught.value.message


def test_json_comes_from_the_command_line_or_from_a_file(tmp_path):
    file = tmp_path / "data.json"
    file.write_text('{"a": [1]}')
    assert json_value('{"a": 1}', "--data") == {"a": 1}
    assert json_value(f"@{file}", "--data") == {"a": [1]}


def test_what_is_not_json_names_the_option(tmp_path):
    with pytest.raises(WrongValue) as caught:
        json_value("{a: 1}", "--data")
    assert "'--data': expected JSON" in caught.value.format_message()
    assert caught.value.code == "payload.invalid"
    with pytest.raises(RequestError) as missing:
        json_value(f"@{tmp_path}/none.json", "--data")
    assert missing.value.code == "file.missing"
