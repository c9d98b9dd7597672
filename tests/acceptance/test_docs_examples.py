"""Every example in the README and the docs runs as it stands and prints what the page says.

A block of Python behind `<!-- run -->` is run; all such blocks of one page are one program, in
order, in a directory of its own. A block behind `<!-- prints -->` is what the program has printed
since the last one. Other blocks of Python must compile (tests/tidy/test_documents.py).
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"^<!-- (run|prints) -->\n```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"^<!-- (?:run|prints) -->$", re.MULTILINE)


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parts(text):
    """Give (mark, line, content) for each marked block of a page."""
    return [
        (match[1], text.count("\n", 0, match.start(2)) + 1, match[2])
        for match in MARKED.finditer(text)
    ]


def run(name, text):
    """Run a page's program; where it prints something else than the page says, fail with both."""
    space = {"__name__": "__page__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for mark, line, content in parts(text):
            if mark == "run":
                code = compile("\n" * (line - 1) + content, name, "exec", dont_inherit=True)
                exec(code, space)
            else:
                assert printed.getvalue() == content, f"{name}:{line} prints something else"
                printed.seek(0)
                printed.truncate()
    assert printed.getvalue() == "", f"{name} prints more than the page shows"


RUNNABLE = [page for page in pages() if parts(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_program_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # for a writer in its own process
    run(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))


def test_every_mark_stands_right_before_a_block():
    for page in pages():
        text = page.read_text(encoding="utf-8")
        assert len(MARKS.findall(text)) == len(parts(text)), page


def test_the_readme_and_every_page_of_the_tutorial_have_a_program():
    wanted = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorial").glob("*.md"))]
    assert [page for page in wanted if page not in RUNNABLE] == []


def test_a_page_that_prints_something_else_is_found():
    page = "<!-- run -->\n```python\nprint(1)\n```\n\n<!-- prints -->\n```text\n2\n```\n"
    with pytest.raises(AssertionError, match=r"p\.md:8 prints something else"):
        run("p.md", page)
    run("p.md", page.replace("2", "1"))


def test_a_page_that_prints_more_than_it_shows_is_found():
    with pytest.raises(AssertionError, match="prints more"):
        run("p.md", "<!-- run -->\n```python\nprint(1)\n```\n")
