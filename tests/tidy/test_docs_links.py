"""Links in the documents lead somewhere, commands in them exist, and decisions stay short."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from detent.cli.program import program

LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^\$ (detent .*)$|`(detent [a-z][^`]*)`", re.MULTILINE)
ADR_LINES = 60


def pages(root):
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def anchors(text):
    """Return what a link to a heading of a page may name."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found]


def dead_links(root, page):
    faults = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.is_relative_to(root) or not file.is_file():
            faults.append(f"{page.relative_to(root)}: {target} is not there")
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            faults.append(f"{page.relative_to(root)}: {target} has no such heading")
    return faults


def commands(text):
    return [shlex.split(shown or inline) for shown, inline in COMMAND.findall(text)]


def wrong_words(words):
    """Return what is wrong with a command line: an unknown command or an unknown option."""
    command, context = program, click.Context(program, info_name="detent")
    for word in words[1:]:
        if word.startswith("-"):
            options = [name for each in command.params for name in each.opts]
            if word.partition("=")[0] not in (*options, "-h", "--help"):
                return f"{' '.join(words)}: {command.name} has no option {word}"
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return f"{' '.join(words)}: there is no command {word}"
            command = found
    return None


def test_every_link_leads_to_a_page_and_a_heading(root):
    assert [fault for page in pages(root) for fault in dead_links(root, page)] == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "b.md").write_text("# A heading, really\n")
    page = tmp_path / "a.md"
    page.write_text(
        "[x](b.md) [x](b.md#a-heading-really) [x](b.md#other) [x](c.md) [x](https://x.y)"
    )
    assert dead_links(tmp_path, page) == [
        "a.md: b.md#other has no such heading",
        "a.md: c.md is not there",
    ]


def test_every_page_can_be_reached_from_the_readme(root):
    seen, pending = {}, [root / "README.md"]
    while pending:
        page = pending.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen[page] = True
        targets = LINK.findall(page.read_text(encoding="utf-8"))
        inside = [t.partition("#")[0] for t in targets if "://" not in t]
        pending += [(page.parent / target).resolve() for target in inside if target]
    lost = [page.relative_to(root).as_posix() for page in pages(root) if page not in seen]
    assert lost == []


def test_every_command_in_the_documents_exists_with_its_options(root):
    shown = [
        words
        for page in pages(root)
        if page.name != "cli.md"
        for words in commands(page.read_text(encoding="utf-8"))
    ]
    assert len(shown) > 10
    assert [fault for words in shown if (fault := wrong_words(words))] == []


@pytest.mark.parametrize("line", ["detent nothing", "detent audit verify --nothing"])
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong_words(line.split()) is not None


def test_every_decision_is_short_numbered_and_listed(root):
    files = sorted((root / "docs" / "adr").glob("0*.md"))
    listed = (root / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    long = [file.name for file in files if len(file.read_text().splitlines()) >= ADR_LINES]
    assert long == []
    assert [file.name[:4] for file in files] == [f"{n:04}" for n in range(1, len(files) + 1)]
    assert [file.name for file in files if f"({file.name})" not in listed] == []
