"""The sources under inspection, parsed once per run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def lines(self):
        return len(self.text.splitlines())


def parse(path, text):
    """Parse a text; one that does not parse gets an empty tree, and a test of its own names it."""
    try:
        tree = ast.parse(text, path)
    except SyntaxError:
        tree = ast.Module(body=[], type_ignores=[])
    return Source(path, text, tree)


def below(*names):
    """Return the Python files below these directories of the repository, in the order of paths."""
    files = [file for name in names for file in (ROOT / name).rglob("*.py")]
    return [
        parse(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
        for file in sorted(files)
    ]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def engine():
    """The sources that users install."""
    return below("src")


@pytest.fixture(scope="session")
def tests():
    """The sources of the tests."""
    return below("tests")


@pytest.fixture(scope="session")
def scripts():
    """The sources of measurements and tools."""
    return below("bench", "tools")


@pytest.fixture(scope="session")
def source():
    """A maker of sources, to show that a check finds what it looks for."""
    return lambda text, path="src/detent/kernel/example.py": parse(path, text)
