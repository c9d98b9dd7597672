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
