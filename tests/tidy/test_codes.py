"""Every error code that the engine raises is registered with a sentence."""

from __future__ import annotations

import ast
import re

from detent.model import errors


def error_names(sources):
    """Return the names of our error classes, in the model and derived from it elsewhere."""
    names = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DetentError)
    }
    classes = [n for s in sources for n in ast.walk(s.tree) if isinstance(n, ast.ClassDef)]
    grown = True
    while grown:
        more = {c.name for c in classes if any(last_name(b) in names for b in c.bases)} - names
        names |= more
        grown = bool(more)
    return names


def last_name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def literals(node):
    """Return the texts an argument can be, as far as they are written in place."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    return []


def raised_codes(sources):
    """Return (place, code) for each code passed to one of our errors as a literal."""
    names = error_names(sources)
    return [
        (f"{source.path}:{node.lineno}", code)
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and last_name(node.func) in names
        for code in codes_of(node)
    ]


def codes_of(call):
    # A violated invariant has one code and takes a sentence.
    if last_name(call.func) == "InvariantViolation":
        return []
    arguments = call.args[:1] + [k.value for k in call.keywords if k.arg == "code"]
    return [code for argument in arguments for code in literals(argument)]


def test_every_code_the_engine_raises_is_registered(engine):
    codes = raised_codes(engine)
    assert [(place, code) for place, code in codes if code not in errors.CODES] == []


def test_codes_are_found_in_plain_conditional_and_keyword_arguments(source):
    text = (
        "from detent.model.errors import RequestError\n"
        "class Late(RequestError): ...\n"
        "raise RequestError('a.b', 'Sentence.')\n"
        "raise errors.StoreError('c.d' if x else 'e.f', 'Sentence.')\n"
        "raise Late('g.h', 'Sentence.')\n"
        "raise DefinitionError(faults, code='i.j')\n"
        "raise ValueError('not ours')\n"
        "raise InvariantViolation('A sentence.')\n"
    )
    found = [code for _place, code in raised_codes([source(text)])]
    assert found == ["a.b", "c.d", "e.f", "g.h", "i.j"]


def test_every_registered_code_names_an_area_and_a_reason_and_has_a_sentence():
    shape = re.compile(r"[a-z_]+\.[a-z_]+")
    assert [code for code in errors.CODES if not shape.fullmatch(code)] == []
    assert [code for code, text in errors.CODES.items() if not text.endswith(".")] == []
