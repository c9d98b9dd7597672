"""The program itself: help, errors in one sentence, exit codes, definitions, `init`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from detent.cli.program import COMMANDS, program
from tests.unit.cli.commands import detent, process

GOOD = "name: good\nversion: 1\nblocks:\n  - {type: step, id: a, handler: noop}\n"
BAD = "name: bad\nversion: x\nblocks:\n  - {type: stpe, id: a}\n  - {type: step, id: b}\n"


@pytest.fixture
def good(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    return file


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    return file


def test_the_help_names_every_command_and_every_exit_code():
    text = CliRunner().invoke(program, ["--help"]).output
    assert all(name in text for name in COMMANDS)
    assert "Exit codes:" in text
    assert "70" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_loaded_and_explains_itself(name):
    shown = CliRunner().invoke(program, [name, "--help"])
    assert shown.exit_code == 0
    assert "Usage:" in shown.output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["definitoin"], "Did you mean 'definition'"),
        (["instance", "tre"], "Did you mean 'tree'"),
        (["instance", "list", "--stat", "failed"], "Did you mean"),
    ],
)
def test_a_word_that_is_nearly_right_gets_a_suggestion(arguments, hint):
    shown = detent(*arguments)
    assert shown.code == 2
    assert hint in shown.err


def test_an_error_is_one_line_with_its_code_and_never_a_traceback(tmp_path):
    shown = process("--db", tmp_path / "none.db", "instance", "list")
    assert shown.code == 5
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("error: ")
    assert shown.err.rstrip().endswith("[store.unavailable]")
    assert "Traceback" not in shown.err


def test_the_traceback_is_there_for_those_who_ask(tmp_path):
    shown = process("--db", tmp_path / "none.db", "instance", "list", DETENT_DEBUG="1")
    assert "Traceback" in shown.err


def test_an_unexpected_fault_is_told_as_ours_with_code_70(good, monkeypatch):
    def broken(_file, **_how):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("detent.cli.sources.load_definition", broken)
    shown = detent("definition", "show", good)
    assert shown.code == 70
    assert "ZeroDivisionError" in shown.err
    assert "Traceback" not in shown.err


def test_an_error_is_a_document_too_when_the_output_is_json(tmp_path):
    shown = detent("--db", tmp_path / "none.db", "-o", "json", "instance", "list")
    assert shown.json["error"]["code"] == "store.unavailable"


def test_a_file_that_is_no_store_is_named_as_such(tmp_path):
    file = tmp_path / "text.db"
    file.write_text("this is no database, only a text that is long enough to be looked at" * 20)
    shown = detent("--db", file, "instance", "list")
    assert shown.code == 5
    assert str(file) in shown.err


def test_a_valid_definition_passes_and_an_invalid_one_lists_every_fault(good, bad):
    assert detent("definition", "validate", good).code == 0
    shown = detent("definition", "validate", good, bad)
    assert shown.code == 1
    assert "blocks[0].type" in shown.out
    assert "definition.missing" in shown.out
    found = detent("definition", "validate", good, bad, "-o", "json").json
    assert [each["valid"] for each in found["definitions"]] == [True, False]
    assert len(found["definitions"][1]["faults"]) == 3
    assert set(found["definitions"][1]["faults"][0]) == {"path", "code", "message"}


def test_a_handler_nobody_has_is_a_warning_when_handlers_are_named(tmp_path):
    file = tmp_path / "d.yaml"
    file.write_text(GOOD.replace("noop", "sned"))
    handlers = tmp_path / "known_handlers_of_test.py"
    handlers.write_text("import detent\n@detent.handler\ndef send() -> None: ...\n")
    assert "warning" not in detent("definition", "validate", file).out
    shown = detent("definition", "validate", file, "--handlers", handlers)
    assert shown.code == 0
    assert 'did you mean "send"' in shown.out


def test_the_difference_of_two_definitions_is_named_by_block(good, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("noop", "log"))
    assert detent("definition", "diff", good, good).code == 0
    shown = detent("definition", "diff", good, other, "-o", "json")
    assert shown.code == 1
    assert [each["path"] for each in shown.json["changes"]] == ["blocks[a].handler"]


def test_a_project_is_written_once_and_runs_as_it_stands(tmp_path):
    place = tmp_path / "hello"
    assert detent("init", place).code == 0
    before = (place / "handlers.py").read_text()
    again = detent("init", place)
    assert again.code == 4
    assert "[file.exists]" in again.err
    assert (place / "handlers.py").read_text() == before
    data = '{"name": "Ada", "email": "ada@example.org"}'
    common = ("--handlers", "handlers.py", "--virtual", "--data", data)
    shown = process("run", "welcome.yaml", *common, "-o", "json", cwd=place)
    assert shown.code == 0, shown.err
    assert shown.json["states"] == {"completed": 1}
    assert "mail to" in shown.err  # what handlers print stays out of the document


def test_the_inner_option_counts_and_the_environment_is_the_last_resort(tmp_path):
    outer = detent("--db", tmp_path / "outer.db", "instance", "list", "--db", tmp_path / "inner.db")
    assert "inner.db" in outer.err
    shown = process("instance", "list", DETENT_DB=str(tmp_path / "from-environment.db"))
    assert "from-environment.db" in shown.err
