"""The documents name functions that exist and show Python that compiles."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

REFERENCE = re.compile(r"([\w./-]+\.py)::([\w.]*\w)")
BLOCK = re.compile(r"^([ \t]*)```(?:python|py)\b[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
STATIONS_OF_THE_WALK = 10


def references(text):
    """Return the (path, name) pairs that a page names as `path::name`."""
    return REFERENCE.findall(text)


def missing(root, pairs):
    """Return the references that lead nowhere; paths start at the root or at the package."""
    faults = []
    for path, name in pairs:
        files = [place / path for place in (root, root / "src", root / "src" / "detent")]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            faults.append(f"{path}::{name}: no such file")
        elif name not in defined(ast.parse(file.read_text(encoding="utf-8"))):
            faults.append(f"{path}::{name}: no such name in the file")
    return faults


def defined(tree, prefix=""):
    """Return every name that a module or class defines, those inside classes with their owner."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(prefix + node.name)
        if isinstance(node, ast.ClassDef):
            names.extend(defined(node, f"{prefix}{node.name}."))
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names.extend(prefix + target.id for target in targets if isinstance(target, ast.Name))
    return names


def blocks(text):
    """Return (line, code) for each block of Python in a page."""
    return [
        (text.count("\n", 0, match.start()) + 1, textwrap.dedent(match.group(2)))
        for match in BLOCK.finditer(text)
    ]


def broken_blocks(name, text):
    faults = []
    for line, code in blocks(text):
        try:
            compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError as error:
            faults.append(f"{name}:{line + (error.lineno or 0)} {error.msg}")
    return faults


def test_every_station_of_the_walk_exists(root):
    explanation = root / "docs" / "explanation"
    page = explanation / "the-walk.md"
    pairs = references(page.read_text(encoding="utf-8")) if page.is_file() else []
    assert missing(root, pairs) == []
    assert len(pairs) >= STATIONS_OF_THE_WALK or not explanation.exists(), (
        f"the walk must name its {STATIONS_OF_THE_WALK} functions, it names {len(pairs)}"
    )


def test_every_block_of_python_in_the_documents_compiles(root):
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    faults = [
        fault
        for page in sorted(pages)
        for fault in broken_blocks(
            page.relative_to(root).as_posix(), page.read_text(encoding="utf-8")
        )
    ]
    assert faults == []


def test_a_reference_leads_to_a_function_a_method_or_a_constant(tmp_path):
    (tmp_path / "a.py").write_text("LEGAL = {}\nclass A:\n    def f(self): ...\ndef g(): ...\n")
    page = "See `a.py::LEGAL`, `a.py::A.f`, and a.py::g. Not `a.py::h` nor `b.py::g`."
    assert missing(tmp_path, references(page)) == [
        "a.py::h: no such name in the file",
        "b.py::g: no such file",
    ]


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_block_that_does_not_compile_is_named_with_its_line(indent):
    page = "Text\n```python\nawait f()\n```\n\n```python title=x\na = 1\nb = = 2\n```\n"
    assert broken_blocks("p.md", textwrap.indent(page, indent)) == ["p.md:8 invalid syntax"]


def test_blocks_of_other_languages_are_left_alone():
    assert broken_blocks("p.md", "```console\n$ not python\n```\n```pycon\n>>> 1\n```\n") == []
