"""The page on the wire contract goes through every section, and names tests that are there."""

from __future__ import annotations

import re

import pytest

SECTIONS = range(32)
STATES = ("served", "differs", "out of reach")
ROW = re.compile(r"^\| (\d+) " + r"\|([^|]*)" * 4 + r"\|$", re.MULTILINE)
MARK = re.compile(r'pytest\.mark\.contract\("(\d+)"\)')
HOME = "tests/acceptance/contract"


def rows(text):
    """Return section, state, what differs and the named tests of each row."""
    return [
        (int(section), state.strip(), why.strip(), re.findall(r"`([\w/]+\.py)`", named))
        for section, _subject, state, why, named in ROW.findall(text)
    ]


def place(root, name):
    return root / name if "/" in name else root / HOME / name


@pytest.fixture(scope="module")
def page(root):
    return rows((root / "docs" / "reference" / "contract.md").read_text(encoding="utf-8"))


def test_every_section_has_its_row_in_order(page):
    assert [section for section, *_ in page] == list(SECTIONS)


def test_every_state_is_a_known_one_and_what_differs_is_said(page):
    for section, state, why, _named in page:
        assert state in STATES, section
        assert bool(why) is (state != "served"), section


def test_every_named_test_is_there(root, page):
    for section, _state, _why, named in page:
        assert named, section
        assert [name for name in named if not place(root, name).is_file()] == []


def test_every_section_is_walked_by_tests_marked_with_it(root, page):
    for section, _state, _why, named in page[1:]:
        marks = [MARK.findall(place(root, name).read_text(encoding="utf-8")) for name in named]
        assert any(str(section) in found for found in marks), section


def test_every_walk_is_named_on_the_page(root, page):
    named = {name for *_, names in page for name in names}
    files = {file.name for file in (root / HOME).glob("test_*.py")}
    assert sorted(files - named) == []


def test_a_row_is_read():
    text = "| 7 | Context | differs | It is. | `a.py`, `tests/b/c.py` |"
    assert rows(text) == [(7, "differs", "It is.", ["a.py", "tests/b/c.py"])]
