"""Foresight: what a step that waits for an instant will ask the gate for when that has come.

It works on a copy of the snapshot with the very functions that the step itself will use. What a
policy or a person says in between is not known; it is so if nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from detent.kernel.blocks import passage
from detent.kernel.gate.asks import Ask
from detent.kernel.places import frontier
from detent.kernel.program import Node, Program
from detent.kernel.recording import Timing
from detent.kernel.run import Facts, Run
from detent.model.snapshot import Frame, Snapshot, decode_snapshot, encode_snapshot

_KINDS = ("delay", "retry", "window")


class Coming(NamedTuple):
    """An ask to come: of which wait, at which tick."""

    token: int
    tick: int
    ask: Ask


def coming_asks(program: Program, snapshot: Snapshot, timing: Timing) -> Iterator[Coming]:
    """The asks that follow on waits whose end is known."""
    copy = decode_snapshot(encode_snapshot(snapshot))
    facts = Facts(
        handlers={}, given={}, epoch_ms=timing.epoch_ms, resolution_ms=timing.resolution_ms
    )
    for path, frame, node in list(frontier(copy, program)):
        wait = frame.wait
        if wait is None or wait.due is None or wait.kind not in _KINDS or _asks_first(node, frame):
            continue
        found = passage.foreseen(Run(program, copy, wait.due, facts), node, frame, path)
        if found is not None:
            yield Coming(wait.token, *found)


def _asks_first(node: Node, frame: Frame) -> bool:
    """Whether nobody can tell what it does then: it is no step, or a person is asked."""
    if node.kind != "step":
        return True
    return node.block.wait_for_input is not None and not frame.attempt and frame.phase == "delay"
