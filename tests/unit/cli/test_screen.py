"""What is printed: plain columns and trees, and nothing that steers a terminal."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import pytest

from detent.cli.screen import Branch, Cell, Screen, Table, clean

HOSTILE = "\x1b[2J\x1b]0;owned\x07"


def printed(show, *, terminal=False):
    out = StringIO()
    with redirect_stdout(out):
        show(Screen(terminal=terminal))
    return out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_control_characters_of_data_are_written_out_and_never_obeyed(terminal):
    def show(screen):
        screen.line(HOSTILE)
        screen.table(Table(columns=("a",), rows=[(HOSTILE,)]))
        screen.tree(Branch(pieces=[Cell(HOSTILE)], children=[Branch(pieces=[Cell(HOSTILE)])]))
        screen.facts([("label", HOSTILE)])

    text = printed(show, terminal=terminal)
    assert "\\x1b" in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_printable_text_of_any_language_stays_as_it_is():
    assert clean("Grüße, 世界") == "Grüße, 世界"
    assert clean("a\nb") == "a\\nb"


def test_a_table_is_columns_of_equal_width_without_trailing_spaces():
    table = Table(columns=("name", "n"), rows=[("long name", "1"), ("x", "22")], right=("n",))
    assert printed(lambda screen: screen.table(table)).splitlines() == [
        "name        n",
        "long name   1",
        "x          22",
    ]


def test_an_empty_table_says_so():
    table = Table(columns=("a",), rows=[], empty="no instances")
    assert printed(lambda screen: screen.table(table)) == "no instances\n"


def test_facts_without_a_value_are_left_out():
    text = printed(lambda screen: screen.facts([("a", "1"), ("b", ""), ("long", Cell("2"))]))
    assert text.splitlines() == ["a     1", "long  2"]


def test_a_tree_draws_its_last_child_differently():
    leaf = Branch(pieces=[Cell("leaf")])
    root = Branch(pieces=[Cell("root")], children=[leaf, leaf])
    screen = Screen(terminal=False)
    screen.wide = False

    out = StringIO()
    screen._out = out
    screen.tree(root)
    assert out.getvalue().splitlines() == ["root", "|- leaf", "`- leaf"]


@pytest.fixture
def narrow(monkeypatch):
    """A terminal of 40 columns, without colours."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")
    return lambda show: [line.rstrip() for line in printed(show, terminal=True).splitlines()]


def test_a_long_sentence_is_wrapped_at_words_on_a_terminal_and_not_elsewhere(narrow):
    sentence = "one sentence whose words are all kept whole by it"
    assert narrow(lambda screen: screen.line(sentence)) == [
        "one sentence whose words are all kept",
        "whole by it",
    ]
    assert printed(lambda screen: screen.line(sentence)) == f"{sentence}\n"


def test_what_belongs_to_a_label_is_wrapped_beside_it(narrow):
    facts = [("label", "words that need more than one line to be said")]
    assert narrow(lambda screen: screen.facts(facts)) == [
        "label  words that need more than one",
        "       line to be said",
    ]


def test_data_stays_one_line_so_that_it_can_be_copied(narrow):
    data = '{"text": "' + "long " * 12 + '"}'
    assert narrow(lambda screen: screen.verbatim(data)) == [data]


def test_an_id_in_a_table_is_never_broken(narrow):
    id = "01a1edfb-2ee2-7278-9574"
    table = Table(columns=("id", "about"), rows=[(id, "some words that are wrapped")])
    lines = narrow(lambda screen: screen.table(table))
    assert sum(id in line for line in lines) == 1
    assert max(map(len, lines)) <= 40


def test_a_table_that_is_too_wide_becomes_a_few_lines_for_each_row(narrow):
    id = "01a1edfb-2ee2-7278-9574-e1cb56ecffa8"
    table = Table(columns=("id", "key", "zone"), rows=[(id, "", "America/Argentina/Buenos_Aires")])
    assert narrow(lambda screen: screen.table(table)) == [
        id,
        "  zone America/Argentina/Buenos_Aires",
    ]
