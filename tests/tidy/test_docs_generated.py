"""Generated pages are what the program would write now; `make docs` brings them up to date."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest


@pytest.fixture
def tool(root, monkeypatch):
    """The module `name` of tools/, imported as the script imports it."""
    monkeypatch.syspath_prepend(str(root / "tools"))
    return import_module


def test_every_generated_page_is_current(root, tool):
    assert tool("generate_docs").outdated(root) == [], "run `make docs`"


def test_the_pages_are_the_same_each_time_they_are_made(root, tool):
    generate = tool("generate_docs").generated
    assert generate(root) == generate(root)


def test_every_requirement_has_an_id_of_the_right_form_and_a_sentence(root):
    required = json.loads((root / "docs/reference/requirements.json").read_text(encoding="utf-8"))
    form = re.compile(r"(AUTO|CORE|PLAN|SEQ|WF)(-[A-Z]+)?-[1-9][0-9]*")
    assert [id for id in required if not form.fullmatch(id)] == []
    assert [id for id, text in required.items() if not text.endswith(".")] == []


def test_no_test_claims_an_id_that_no_requirement_has(root, tool):
    required = json.loads((root / "docs/reference/requirements.json").read_text(encoding="utf-8"))
    assert [id for id in tool("pages.coverage").claims(root) if id not in required] == []


def test_ids_are_read_from_decorators_and_from_the_mark_of_a_module(tool):
    text = (
        "import pytest\npytestmark = pytest.mark.req('SEQ-1')\n"
        "@pytest.mark.req('SEQ-2', 'SEQ-3')\ndef test(): ...\n"
    )
    assert sorted(tool("pages.coverage").named_ids(text)) == ["SEQ-1", "SEQ-2", "SEQ-3"]


def test_figures_fill_the_space_between_their_marks_and_nothing_else(tmp_path, tool):
    figures = tool("pages.figures")
    readme = f"before\n{figures.START}\nold\n{figures.END}\nafter\n"
    (tmp_path / "README.md").write_text(readme)
    assert "No figures" in figures.page(tmp_path)
    results = tmp_path / "bench" / "results"
    results.mkdir(parents=True)
    line = {"figure": "w1", "value": 9000, "unit": "steps/s", "budget": 7000, "met": True}
    line |= {"floor_ratio": 0.61, "machine": "a machine"}
    (results / "a.jsonl").write_text(json.dumps(line) + "\n")
    page = figures.page(tmp_path)
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
    assert "| `w1` | 9,000 steps/s | 7,000, met | 61% of the floor |" in page


def test_a_missed_budget_is_shown_as_missed(tool):
    row = tool("pages.figures").row(
        {"figure": "w1", "value": 1.25, "unit": "ms", "budget": 1, "met": False}
    )
    assert row == ("`w1`", "1.25 ms", "1, **missed**", "")


def test_codes_stand_under_who_must_act(root, tool):
    source = (root / "src/detent/model/errors.py").read_text(encoding="utf-8")
    groups = tool("pages.errors").grouped(source)
    assert "We must act" in groups
    assert sum(map(len, groups.values())) == len(tool("detent.model.errors").CODES)


def test_a_graph_lists_every_move_once_and_doubles_the_ring_of_final_states(tool):
    moves = {"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()}
    text = tool("pages.lifecycles").dot("Thing with states", moves)
    assert text.splitlines() == [
        "digraph thing {",
        "  rankdir=LR;",
        "  c [peripheries=2];",
        "  a -> b;",
        "  a -> c;",
        "  b -> c;",
        "}",
    ]
