"""A step run for its working copy: to look at it midway, or to stop it after so many moves.

The order of things is that of `step`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from detent.kernel import blocks
from detent.kernel.born import born
from detent.kernel.ending import advance
from detent.kernel.inbox import take
from detent.kernel.injecting import carried, program_with
from detent.kernel.program import Program
from detent.kernel.resume import fire_due
from detent.kernel.run import Facts, NeedFact, Run
from detent.kernel.spill import unpack
from detent.model.decision import Need
from detent.model.inputs import decode_input
from detent.model.snapshot import decode_snapshot

__all__ = ["blocks", "observe"]


class Watched(list[Any]):
    """Entries that tell somebody of each one before it is added."""

    def __init__(self, seen: Callable[[Any], None]) -> None:
        super().__init__()
        self._seen = seen

    def append(self, entry: Any) -> None:
        """Tell, then add."""
        self._seen(entry)
        super().append(entry)


def observe(
    program: Program,
    body: bytes | None,
    inputs: Sequence[bytes],
    at: tuple[int, int],
    facts: Facts,
    *,
    seen: Callable[[Run, Any], None] | None = None,
) -> Run:
    """Run one step at (tick, moves) and return its working copy; `seen` is told of each entry."""
    tick, moves = at
    told = [decode_input(each) for each in inputs]
    snapshot = born(program, told[0], tick)[0] if body is None else decode_snapshot(body)
    if snapshot.injected:
        given = carried(told[0], snapshot) if body is None else {}
        blobs = {f"blob:{digest}": each for digest, each in given.items()}
        program = program_with(program, snapshot.injected, blobs or facts.given)
    run = Run(program, snapshot, tick, facts)
    run.moves = moves
    run.bulk = sum(map(len, inputs)) + (len(body) if body else 0)
    if snapshot.blobs:
        _open(run)
    if seen is not None:
        run.entries = Watched(lambda entry: seen(run, entry))
    if snapshot.more:
        snapshot.more = False
        advance(run)
    fire_due(run, tick - 1)
    for index, each in enumerate(told):
        take(run, each, index)
    fire_due(run, tick)
    snapshot.more = run.more and not run.held
    return run


def _open(run: Run) -> None:
    blobs: dict[str, bytes] = {}
    for digest in run.snapshot.blobs:
        if f"blob:{digest}" not in run.facts.given:
            raise NeedFact(Need(kind="blob", name=digest))
        blobs[digest] = run.facts.given[f"blob:{digest}"]
        run.bulk += len(blobs[digest])
    unpack(run.snapshot, blobs)
