"""The written pages of the reference name everything the program has."""

from __future__ import annotations

import inspect
import re

import pytest

import detent
from detent.bootstrap.inspector import Inspector
from detent.definition import UNSUPPORTED_HANDLERS
from detent.definition.shapes import BLOCKS
from detent.expression import FILTER_NAMES, FUNCTION_NAMES, ROOTS
from detent.kernel.builtin import MOVES
from detent.model.definition import Body, Delay, HumanInput, Retry, SendWindow, Step
from detent.model.definition import Wait as WaitBlock
from detent.model.inputs import Input
from detent.service.starting import StartOptions
from detent.store.sqlite.schema import migrations

HOUSE_NAMES = """
Definition Block Instance Node Snapshot Context Input Inbox Signal Wait Token Turn Tick Clock
Effect Outcome Ledger Handler Gate Policy Fact Journal Chain Arrival Lease Fence Task WorkItem
Topic Producer Consumer HandlerRun Tenant Seal Visit Generation Frame Lane Frontier Margin
"""


@pytest.fixture(scope="module")
def page(root):
    return lambda name: (root / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")


def unnamed(text, names):
    """Return the names that a page does not hold as words of their own."""
    return [name for name in names if not re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)]


def public(kind):
    return [name for name, value in vars(kind).items() if name[0] != "_" and callable(value)]


def test_every_block_kind_has_a_section(page):
    headings = " ".join(re.findall(r"^## (.*)$", page("definitions"), re.MULTILINE))
    assert unnamed(headings, list(BLOCKS)) == []


def test_every_option_of_a_step_is_told(page):
    assert unnamed(page("step-options"), [f for f in Step.__struct_fields__ if f != "id"]) == []


def test_every_field_of_a_definition_and_of_what_is_in_a_step_is_told(page):
    text = page("step-options") + page("definitions")
    for kind in (Body, Delay, SendWindow, Retry, HumanInput, WaitBlock):
        assert unnamed(text, kind.__struct_fields__) == []


def test_every_function_filter_and_root_is_told(page):
    assert unnamed(page("expressions"), [*FUNCTION_NAMES, *FILTER_NAMES, *ROOTS]) == []


def test_every_built_in_handler_is_told(page):
    assert unnamed(page("handlers"), [*MOVES, *UNSUPPORTED_HANDLERS]) == []


def test_every_verb_of_the_engine_and_every_view_is_told(page):
    verbs = [name for name in public(detent.Engine) if name != "over"]
    views = [name for name in public(Inspector) if name not in ("look", "close")]
    text = page("engine").replace("engine.", " ")
    assert unnamed(text, [*verbs, *views]) == []


def test_every_option_of_a_start_is_told(page):
    named = [*inspect.signature(detent.Engine.start).parameters][1:-1]
    assert unnamed(page("engine"), [*named, *StartOptions.__optional_keys__]) == []


def test_every_public_name_stands_somewhere_in_the_reference(page):
    pages = ("definitions", "step-options", "handlers", "engine", "client", "errors")
    text = "\n".join(map(page, pages)).replace("detent.", " ")
    assert unnamed(text, [name for name in detent.__all__ if name[0] != "_"]) == []


def test_every_table_of_the_store_and_every_kind_of_input_is_told(page):
    tables = re.findall(r"CREATE TABLE (\w+)", "".join(migrations()))
    kinds = [kind.__struct_config__.tag for kind in Input.__args__]
    assert unnamed(page("store-layout"), [*tables, *kinds]) == []


def test_every_action_of_the_journal_is_told(page, engine):
    text = page("store-layout")
    groups = re.findall(r"^\| ((?:`\w+\.`(?:, )?)+) \|", text, re.MULTILINE)
    known = re.findall(r"`(\w+)\.`", " ".join(groups))
    pattern = re.compile(rf'\("((?:{"|".join(known)})\.[a-z_]+)"')
    noted = [
        action
        for source in engine
        if source.path.startswith("src/detent/kernel/")
        for action in pattern.findall(source.text)
    ]
    missing = [action for action in noted if f"`{action.partition('.')[2]}`" not in text]
    assert noted
    assert [action for action in missing if not is_code(action)] == []


def is_code(text):
    return text in detent.model.errors.CODES


def test_the_glossary_defines_every_name_of_the_house(page):
    text = page("glossary")
    assert [name for name in HOUSE_NAMES.split() if f"**{name}**" not in text] == []


def test_a_name_inside_another_word_does_not_count():
    assert unnamed("`waiting` and `await`", ["wait"]) == ["wait"]
    assert unnamed("a `wait`.", ["wait"]) == []
