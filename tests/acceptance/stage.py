"""What acceptance tests share: engines in virtual time, refusals, and what a store holds."""

from __future__ import annotations

import hashlib
from contextlib import closing

import apsw
import pytest

import detent

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# Rows that say who works on a store and until when; everything else is what was decided.
VOLATILE = ("owner",)


def virtual(path=":memory:", handlers=(), *, seed="acceptance", **settings):
    """An engine whose time moves only when it is told to."""
    return detent.Engine(path, handlers=handlers, clock="virtual", seed=seed, **settings)


def refused(code):
    """Expect a refusal with this code."""
    return pytest.raises(detent.DetentError, check=lambda error: error.code == code)


def state(engine, instance):
    return engine.inspect.show(instance).summary.state


def actions(engine, instance, *wanted):
    """The actions of an instance's journal in order; only the wanted ones where some are named."""
    found = [entry.action for entry in engine.inspect.audit(instance)]
    return [action for action in found if action in wanted] if wanted else found


def moves(engine, instance):
    """The states an instance went through."""
    told = engine.inspect.timeline(instance).transitions
    return [(move.source, move.target) for move in told]


def finished(engine, definition, data=None, **options):
    """Start one instance, run until nothing is left to do, and show it."""
    instance = engine.start(definition, data, **options)
    engine.run_until_idle()
    return engine.inspect.show(instance)


def outputs(engine, instance):
    """Block and output of every row, in the order of creation."""
    return [(row.block, row.output) for row in engine.inspect.outputs(instance)]


def nodes(engine, instance):
    """The state of every node of the tree, by its path."""
    return {node.id: node.state for node in engine.inspect.tree(instance).nodes}


def proved(engine):
    """The chain verifies, and every instance replays to the same bytes."""
    for item in engine.inspect.instances().items:
        told = engine.replay(item.id)
        assert told.identical, told.first_difference
    assert engine.inspect.verify().valid


def opened(path, *, write=False):
    """A connection beside the engine's own.

    Never of another SQLite in this process: when that one closes the file, the system drops the
    locks of the engine's as well.
    """
    flags = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
    return closing(apsw.Connection(str(path), flags=flags))


def rows(path, table, columns="*", where="1"):
    """Rows of a store's table, read beside its owner."""
    with opened(path) as connection:
        return connection.execute(f"SELECT {columns} FROM {table} WHERE {where}").fetchall()


def dump(path, *, without=VOLATILE):
    """Every row of every table of a store, in a fixed order."""
    with opened(path) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
            )
            if name not in without
        ]
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for name in names
        }


def digest(path):
    """One digest over everything that was decided in a store."""
    return hashlib.sha256(repr(dump(path)).encode()).hexdigest()
