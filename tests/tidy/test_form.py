"""The form of a module: its name, its opening, and words that do not belong in finished work."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

FORBIDDEN_NAMES = ("utils", "common", "helpers", "core", "base", "misc", "manager")

# Put together here, so that this file does not hold what it looks for.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")


def forbidden_names(sources):
    return [
        f"{source.path}: {part!r} says nothing about what is inside"
        for source in sources
        for part in PurePosixPath(source.path).with_suffix("").parts
        if part.strip("_") in FORBIDDEN_NAMES
    ]


def unparsable(sources):
    return [source.path for source in sources if source.text.strip() and not source.tree.body]


def without_docstring(sources):
    return [source.path for source in sources if not ast.get_docstring(source.tree)]


def without_postponed_annotations(sources):
    """Return the modules with code whose first statement is not the future import."""
    found = []
    for source in sources:
        code = source.tree.body[bool(ast.get_docstring(source.tree)) :]
        if code and ast.unparse(code[0]) != "from __future__ import annotations":
            found.append(source.path)
    return found


def asserts(sources):
    return [
        f"{source.path}:{node.lineno} asserts; use detent.model.errors.invariant"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assert)
    ]


def unfinished(sources):
    return [
        f"{source.path}:{number} {line.strip()}"
        for source in sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if UNFINISHED.search(line)
    ]


def test_every_file_is_python(engine, tests, scripts):
    assert unparsable([*engine, *tests, *scripts]) == []


def test_a_file_that_does_not_parse_is_named(source):
    assert unparsable([source("x = 1", "a.py"), source("x = = 1", "b.py")]) == ["b.py"]
    assert unparsable([source("", "empty.py")]) == []


def test_no_module_has_a_name_that_says_nothing(engine, tests, scripts):
    assert forbidden_names([*engine, *tests, *scripts]) == []


def test_a_name_that_says_nothing_is_found_in_files_and_packages(source):
    sources = [source("", "src/a/common/x.py"), source("", "b/_utils.py"), source("", "c/based.py")]
    assert forbidden_names(sources) == [
        "src/a/common/x.py: 'common' says nothing about what is inside",
        "b/_utils.py: '_utils' says nothing about what is inside",
    ]


def test_every_module_opens_by_saying_what_it_is(engine, scripts):
    assert without_docstring([*engine, *scripts]) == []


def test_a_module_without_an_opening_line_is_found(source):
    sources = [source('"""What it is."""', "a.py"), source("x = 1", "b.py")]
    assert without_docstring(sources) == ["b.py"]


def test_every_module_with_code_postpones_annotations(engine, tests, scripts):
    assert without_postponed_annotations([*engine, *tests, *scripts]) == []


def test_only_a_module_of_one_docstring_needs_no_future_import(source):
    right = source('"""A."""\nfrom __future__ import annotations\nx = 1', "right.py")
    bare = source('"""A."""', "bare.py")
    wrong = source('"""A."""\nimport json', "wrong.py")
    assert without_postponed_annotations([right, bare, wrong]) == ["wrong.py"]


def test_the_engine_never_relies_on_assert(engine):
    assert asserts(engine) == []


def test_an_assert_is_found(source):
    assert asserts([source("invariant(x, 'x')", "a.py")]) == []
    assert asserts([source("def f(x):\n    assert x", "a.py")]) == [
        "a.py:2 asserts; use detent.model.errors.invariant"
    ]


def test_nothing_is_marked_as_unfinished(engine, tests, scripts):
    assert unfinished([*engine, *tests, *scripts]) == []


def test_a_mark_of_unfinished_work_is_found(source):
    mark = "TO" + "DO"
    assert unfinished([source(f"x = 1  # {mark} later", "a.py")]) == [
        f"a.py:1 x = 1  # {mark} later"
    ]
    assert unfinished([source("autodoc = 'METHODOLOGY'", "a.py")]) == []
