"""Every requirement id that a test claims to prove has the form of one."""

from __future__ import annotations

import ast
import re

ID = re.compile(r"(AUTO|CORE|PLAN|SEQ|WF)(-[A-Z]+)?-[1-9][0-9]*")


def claims(source):
    """Return (place, arguments) for each `pytest.mark.req(...)` in a module."""
    return [
        (f"{source.path}:{node.lineno}", node.args)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req"
    ]


def faults(source):
    found = []
    for place, arguments in claims(source):
        if not arguments:
            found.append(f"{place} names no id")
        for argument in arguments:
            name = argument.value if isinstance(argument, ast.Constant) else None
            if not isinstance(name, str) or not ID.fullmatch(name):
                found.append(f"{place} {ast.unparse(argument)} is not a requirement id")
    return found


def test_every_claim_names_requirement_ids(tests):
    assert [fault for source in tests for fault in faults(source)] == []


def test_an_id_is_an_area_perhaps_a_part_and_a_number(source):
    right = "@pytest.mark.req('SEQ-BLK-3', 'PLAN-12', 'WF-API-1')\ndef test(): ..."
    assert faults(source(right, "t.py")) == []


def test_a_claim_without_a_proper_id_is_found(source):
    wrong = "pytestmark = [pytest.mark.req('SEQ-BLK'), pytest.mark.req(x), pytest.mark.req()]"
    assert faults(source(wrong, "t.py")) == [
        "t.py:1 'SEQ-BLK' is not a requirement id",
        "t.py:1 x is not a requirement id",
        "t.py:1 names no id",
    ]
