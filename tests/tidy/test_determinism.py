"""Time and chance enter in few named places, and no decision depends on the order of a set."""

from __future__ import annotations

import ast

import pytest

PURE = ("calendar", "definition", "expression", "kernel", "model")

# Dotted names that bring in wall time or chance; "random." stands for everything below it.
# `random.Random(seed)` is allowed anywhere outside the pure packages: it repeats.
OUTSIDE = (
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.urandom",
    "random.",
    "secrets.",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
)

# Where they may be used, and why. An entry whose file uses none of them must go.
ALLOWED = {
    "src/detent/runtime/clock.py": "the one place that reads the wall clock",
    "src/detent/bootstrap/chance.py": "the one place that takes chance from the system",
    "src/detent/client/chance.py": "keys of requests, in a process that need not have a store",
    "src/detent/service/vault.py": "a nonce or secret out of a seed could be guessed or repeat",
}

# What reads its argument in the order it happens to come.
ORDERED_READERS = ("enumerate", "iter", "list", "map", "next", "tuple", "zip")


def origins(tree):
    """Map the names a module imports to the dotted names they stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name.partition(".")[0]
                names[alias.asname or name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node, names):
    """Return the full name an expression stands for, or None if no import leads to it."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, names)
        return owner and f"{owner}.{node.attr}"
    return None


def from_outside(source):
    """Return the places where a module takes in wall time or chance."""
    names = origins(source.tree)
    seeded = {
        id(node.func)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and node.args and dotted(node.func, names) == "random.Random"
    }
    found = []
    for node in ast.walk(source.tree):
        name = isinstance(node, ast.Name | ast.Attribute) and dotted(node, names)
        if name and id(node) not in seeded and is_outside(name):
            found.append(f"{source.path}:{node.lineno} uses {name}")
    return found


def is_outside(name):
    return any(name.startswith(o) if o.endswith(".") else name == o for o in OUTSIDE)


def unordered_reads(source):
    """Return the places that read the elements of a set one after the other."""
    return [
        f"{source.path}:{read.lineno} reads a set in no order; sort it"
        for scope, sets in scopes(source.tree)
        for node in scope
        for read in reads(node)
        if is_set(read, sets)
    ]


def scopes(tree):
    """Return the module's own nodes and each function's, with the names that hold sets there."""
    bodies = [tree]
    found = []
    of_module = set()
    while bodies:
        inside, pending = [], list(ast.iter_child_nodes(bodies.pop()))
        while pending:
            node = pending.pop(0)
            inside.append(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                bodies.append(node)
            else:
                pending.extend(ast.iter_child_nodes(node))
        of_module = of_module if found else set_names(inside)
        found.append((inside, of_module | set_names(inside)))
    return found


def set_names(nodes):
    """Return the names that are bound in these nodes, and to sets only."""
    bound = {}
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.AugAssign):
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                value = None if isinstance(node, ast.For) else node.value
                bound.setdefault(target.id, []).append(value)
    return {name for name, values in bound.items() if all(is_set(v, ()) for v in values)}


def reads(node):
    """Return what a node reads element by element."""
    if isinstance(node, ast.For | ast.comprehension):
        return [node.iter]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.args if node.func.id in ORDERED_READERS else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args if node.func.attr == "join" else []
    return []


def is_set(node, sets):
    """Tell whether an expression is plainly a set."""
    if isinstance(node, ast.Name):
        return node.id in sets
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    if isinstance(node, ast.BinOp):
        return is_set(node.left, sets) and isinstance(
            node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor
        )
    return isinstance(node, ast.Set | ast.SetComp)


def is_pure(source):
    return any(source.path.startswith(f"src/detent/{package}/") for package in PURE)


def test_time_and_chance_enter_only_where_they_are_allowed(engine):
    others = [source for source in engine if source.path not in ALLOWED]
    found = [place for source in others for place in from_outside(source)]
    assert [place for place in found if not seeded(place)] == []


def seeded(place):
    """Say whether a place of the test kit makes a generator; worlds are given their seed."""
    return place.startswith("src/detent/testing/") and place.endswith("uses random.Random")


def test_no_module_is_allowed_what_it_does_not_use(engine):
    allowed = [source for source in engine if source.path in ALLOWED]
    assert [source.path for source in allowed if not from_outside(source)] == []


def test_no_pure_package_reads_a_set_in_the_order_it_happens_to_have(engine):
    pure = [source for source in engine if is_pure(source)]
    assert [place for source in pure for place in unordered_reads(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\nx = time.time()",
        "import time as t\nx = t.time_ns()",
        "from time import time\nx = time()",
        "import datetime\nx = datetime.datetime.now()",
        "from datetime import datetime as d\nx = d.utcnow()",
        "from datetime import date\nx = date.today()",
        "import random\nx = random.random()",
        "import random\nx = random.Random()",
        "from uuid import uuid4\nclock = uuid4",
        "import secrets\nx = secrets.token_bytes(16)",
        "import os\nx = os.urandom(16)",
    ],
)
def test_wall_time_and_chance_are_found_under_any_name(source, text):
    assert len(from_outside(source(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import time\nx = time.perf_counter()",
        "import random\nx = random.Random(7)",
        "from datetime import datetime\nx = datetime.fromtimestamp(0)",
        "def f(clock, random):\n    return clock.time() + random.random()",
        "from uuid import UUID\nx = UUID(int=1)",
    ],
)
def test_what_repeats_is_not_taken_for_chance(source, text):
    assert from_outside(source(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "a = [x for x in {y for y in z}]",
        "a = list(frozenset(y))",
        "a = ', '.join({'a', 'b'})",
        "a = [*set(y)]",
        "for x in set(a) | b: pass",
        "def f(y):\n    seen = set(y)\n    return [x for x in seen]",
        "NAMES = frozenset(('a', 'b'))\ndef f():\n    for name in NAMES: pass",
    ],
)
def test_reading_a_set_in_its_own_order_is_found(source, text):
    assert len(unordered_reads(source(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "for x in sorted({1, 2}): pass",
        "found = 1 in {1, 2}",
        "size = len(set(y))",
        "a = ', '.join(names)",
        "for x in (1, 2): pass",
        "def f(y):\n    seen = set()\n    seen.add(y)\n    return y in seen",
        "def f(y):\n    seen = set(y)\n    seen = sorted(seen)\n    return [x for x in seen]",
    ],
)
def test_a_set_may_be_asked_counted_and_sorted(source, text):
    assert unordered_reads(source(text)) == []
