"""Limits on the size of modules, functions and signatures, with exceptions that may only shrink."""

from __future__ import annotations

import ast

MODULE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 6
DISPATCH_LINES = 199

# Everything passes through these two; they hand on and hold no cases of their own.
DISPATCHERS = ("src/detent/runtime/turn.py", "src/detent/kernel/step.py")

# "path" or "path::name" -> (the number it has today, the reason). A number may only fall.
EXCEPTIONS = {
    "module lines": {},
    "function lines": {},
    "parameters": {},
}


def functions(source):
    """Return every function with its qualified name, methods and nested ones included."""
    found = []

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((f"{source.path}::{prefix}{child.name}", child))
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(source.tree, "")
    return found


def function_lines(sources):
    return {
        name: node.end_lineno - node.lineno + 1
        for source in sources
        for name, node in functions(source)
    }


def parameters(sources):
    return {name: count(node) for source in sources for name, node in functions(source)}


def count(node):
    """Count what a caller may pass, but for the receiver and the open ends (*rest, **more)."""
    positional = [*node.args.posonlyargs, *node.args.args]
    receiver = bool(positional) and positional[0].arg in ("self", "cls")
    return len(positional) + len(node.args.kwonlyargs) - receiver


def verdicts(measured, limit, exceptions):
    """Say what is over its limit, and which exceptions are out of date."""
    faults = []
    for name, size in measured.items():
        if size > limit and name not in exceptions:
            faults.append(f"{name} has {size}, the limit is {limit}")
    for name, (size, _reason) in exceptions.items():
        now = measured.get(name, 0)
        if now <= limit:
            faults.append(f"{name} keeps the limit of {limit}: remove its exception")
        elif now > size:
            faults.append(f"{name} grew from {size} to {now}: an exception may only shrink")
        elif now < size:
            faults.append(f"{name} shrank from {size} to {now}: lower the number")
    return faults


def test_every_module_keeps_to_the_limit_of_lines(engine, tests, scripts):
    measured = {source.path: source.lines for source in [*engine, *tests, *scripts]}
    assert verdicts(measured, MODULE_LINES, EXCEPTIONS["module lines"]) == []


def test_every_function_keeps_to_the_limit_of_lines(engine, scripts):
    measured = function_lines([*engine, *scripts])
    assert verdicts(measured, FUNCTION_LINES, EXCEPTIONS["function lines"]) == []


def test_every_function_keeps_to_the_limit_of_parameters(engine, scripts):
    measured = parameters([*engine, *scripts])
    assert verdicts(measured, PARAMETERS, EXCEPTIONS["parameters"]) == []


def test_the_two_modules_everything_passes_through_stay_short(engine):
    measured = {source.path: source.lines for source in engine if source.path in DISPATCHERS}
    assert verdicts(measured, DISPATCH_LINES, {}) == []


def test_every_exception_gives_its_reason():
    reasons = [reason for table in EXCEPTIONS.values() for _size, reason in table.values()]
    assert all(len(reason.split()) >= 3 for reason in reasons)


def test_a_size_at_the_limit_passes_and_one_above_it_does_not():
    assert verdicts({"a": 6, "b": 7}, 6, {}) == ["b has 7, the limit is 6"]


def test_an_exception_must_name_exactly_the_present_size():
    assert verdicts({"a": 9}, 6, {"a": (9, "")}) == []
    assert verdicts({"a": 10}, 6, {"a": (9, "")}) == [
        "a grew from 9 to 10: an exception may only shrink"
    ]
    assert verdicts({"a": 8}, 6, {"a": (9, "")}) == ["a shrank from 9 to 8: lower the number"]


def test_an_exception_that_is_not_needed_must_go():
    assert verdicts({"a": 6}, 6, {"a": (9, "")}) == ["a keeps the limit of 6: remove its exception"]
    assert verdicts({}, 6, {"gone": (9, "")}) == ["gone keeps the limit of 6: remove its exception"]


def test_the_receiver_is_no_parameter_but_keyword_only_ones_are(source):
    text = "class A:\n    def f(self, a, /, b, *rest, c, **more): ...\n    def g(x, y): ...\n"
    assert parameters([source(text, "m.py")]) == {"m.py::A.f": 3, "m.py::A.g": 2}


def test_a_nested_function_is_measured_by_itself_and_within_its_owner(source):
    text = "def outer():\n    def inner():\n        return 1\n    return inner\n"
    assert function_lines([source(text, "m.py")]) == {"m.py::outer": 4, "m.py::outer.inner": 2}


def test_every_limit_has_one_value(engine):
    """A name that is written twice would silently mean the later one."""
    (source,) = [each for each in engine if each.path == "src/detent/model/limits.py"]
    names = [node.targets[0].id for node in source.tree.body if isinstance(node, ast.Assign)]
    assert sorted(names) == sorted(set(names))
