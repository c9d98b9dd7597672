"""Assertions about an engine: its proofs hold, its records run again, its waits are explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detent.bootstrap.engine import Engine
    from detent.kernel.anchor import Anchor
    from detent.kernel.explain import Explanation


def assert_identical_replay(engine: Engine, instance: str) -> int:
    """Fail unless the instance's record runs again to the same bytes; the rows compared."""
    __tracebackhide__ = True
    replay = engine.inspect.replay(instance)
    found = replay.first_difference
    if found is not None:
        message = (
            f"instance {instance} does not run again as recorded: row {found.seq}, {found.field}: "
            f"recorded {found.expected!r}, now {found.actual!r} ({found.cause})"
        )
        raise AssertionError(message)
    return replay.rows


def assert_chain_valid(engine: Engine, anchor: Anchor | None = None) -> int:
    """Fail unless every byte the chain covers is as it was written; the journal rows verified."""
    __tracebackhide__ = True
    found = engine.inspect.verify(anchor)
    broken = found.broken
    if broken is not None:
        message = (
            f"the chain is broken at {broken.where}: {broken.what} should be {broken.expected}, "
            f"and is {broken.found}"
        )
        raise AssertionError(message)
    return found.rows


def assert_stands_explained(engine: Engine, instance: str) -> Explanation:
    """Fail unless the instance has ended, or stands for a reason that something can end."""
    __tracebackhide__ = True
    told = engine.inspect.explain(instance)
    ended = told.state in ("completed", "failed", "cancelled")
    released = told.earliest is not None or any(wait.released_by for wait in told.waits)
    if not (ended or released or told.state == "paused"):
        message = f"instance {instance} is {told.state} and nothing can release it: {told.summary}"
        raise AssertionError(message)
    return told
