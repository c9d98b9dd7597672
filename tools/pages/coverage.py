"""The page of requirements: which ids a test proves, read from the tests' own markers."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from pages.markdown import code, document, table

_OPENING = """\
Requirements have stable ids. A test names the ids it proves with `@pytest.mark.req("…")`; this page
lists them. An id with no test is either not built in this release or not proved, and the page does
not tell which: the [guarantees](../explanation/guarantees.md) say what is promised."""

_AREAS = {
    "CORE": "What every face stands on",
    "SEQ": "Sequences",
    "PLAN": "Plans",
    "WF": "Workflows",
    "AUTO": "Automations",
}


def page(root: Path) -> str:
    """Make the page."""
    text = (root / "docs/reference/requirements.json").read_text(encoding="utf-8")
    required: dict[str, str] = json.loads(text)
    proved = claims(root)
    unknown = sorted(id for id in proved if id not in required)
    summary, sections = [], []
    for area, title in _AREAS.items():
        ids = [id for id in required if id.split("-", 1)[0] == area]
        with_tests = [id for id in ids if id in proved]
        summary.append((area, title, f"{len(with_tests)} of {len(ids)}"))
        rows = [(code(id), required[id], _places(proved.get(id, []))) for id in ids]
        sections += [f"## {title}", table(("Id", "In short", "Tests in"), rows)]
    if unknown:
        listed = ", ".join(map(code, unknown))
        sections += ["## Unknown ids", f"Tests name ids that no requirement has: {listed}."]
    parts = [_OPENING, table(("Area", "What", "Ids with tests"), summary)]
    return document("Requirements coverage", *parts, *sections)


def claims(root: Path) -> dict[str, list[str]]:
    """Map each id to the test files that claim it, in the order of their paths."""
    proved: dict[str, list[str]] = {}
    tests = root / "tests"
    for file in sorted(tests.rglob("test_*.py")):
        place = file.relative_to(tests).as_posix()
        for id in named_ids(file.read_text(encoding="utf-8")):
            files = proved.setdefault(id, [])
            if place not in files:
                files.append(place)
    return proved


def named_ids(source: str) -> Iterator[str]:
    """Give the ids in every `pytest.mark.req(...)` of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def _places(files: list[str]) -> str:
    return ", ".join(map(code, files)) or "none"
