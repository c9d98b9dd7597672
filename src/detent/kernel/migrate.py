"""Moving a live instance to another version: only at a wait, previewed, recorded, undoable.

Every open node must exist in the other version at the same place and of the same kind. The move can
be undone until a new effect was made.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.program import Node, Program
from detent.kernel.run import NeedFact, Run
from detent.model.decision import Need
from detent.model.errors import RequestError
from detent.model.snapshot import Frame, Lane, Snapshot


def migrate(run: Run, args: dict[str, Any]) -> None:
    """Carry a migration out; `to` is a definition hash, or `undo` goes back to the one before."""
    snapshot = run.snapshot
    target = _undo_target(snapshot) if args.get("undo") else str(args.get("to", ""))
    program = run.facts.given.get(f"program:{target}")
    if program is None:
        raise NeedFact(Need(kind="program", name=target))
    problems = preview(snapshot, run.program, program)
    if problems:
        raise RequestError("migration.refused", "; ".join(problems))
    if snapshot.root is not None:
        _move_frame(
            snapshot.root, _lists(run.program, None), _lists(program, None), program, run.program
        )
    before = snapshot.definition
    snapshot.definition = program.hash
    snapshot.migrated_from = "" if args.get("undo") else f"{before}:{snapshot.effects_made}"
    run.program = program
    run.note("migration.applied", "", {"from": before, "to": program.hash})


def preview(snapshot: Snapshot, old: Program, new: Program) -> list[str]:
    """Why a snapshot cannot be moved; empty when it can."""
    if snapshot.state in TERMINAL:
        return [f"the instance is {snapshot.state}"]
    problems = [
        f"the effect {effect.key} of {effect.node} is not settled"
        for effect in snapshot.effects
        if not effect.unwanted
    ]
    if snapshot.more:
        problems.append("the instance is in the middle of a turn")
    if snapshot.root is not None:
        if snapshot.root.phase:
            problems.append("the instance is cleaning up")
        _compare(snapshot.root, _lists(old, None), _lists(new, None), (old, new), problems)
    return problems


def _compare(
    frame: Frame,
    old: list[list[Node]],
    new: list[list[Node]],
    programs: tuple[Program, Program],
    problems: list[str],
) -> None:
    for lane in frame.lanes:
        if lane.end:
            continue
        if lane.i >= len(new):
            problems.append(f"block {frame.b!r} has no list {lane.i} in the other version")
            continue
        name = lane.open.b if lane.open is not None else _next_key(old[lane.i], lane.at)
        if name and name not in [node.key for node in new[lane.i]]:
            problems.append(f"block {name!r} is not at the same place in the other version")
            continue
        if lane.open is None:
            continue
        was, becomes = programs[0].nodes[name], programs[1].nodes[name]
        if was.kind != becomes.kind:
            problems.append(f"block {name!r} is a {was.kind} here and a {becomes.kind} there")
            continue
        _compare(lane.open, was.lists, becomes.lists, programs, problems)


def _move_frame(
    frame: Frame, old: list[list[Node]], new: list[list[Node]], program: Program, was: Program
) -> None:
    for lane in frame.lanes:
        if not lane.end:
            _move_lane(lane, old[lane.i], new[lane.i])
        if lane.open is not None and not lane.end:
            name = lane.open.b
            _move_frame(lane.open, was.nodes[name].lists, program.nodes[name].lists, program, was)


def _move_lane(lane: Lane, old: list[Node], new: list[Node]) -> None:
    name = lane.open.b if lane.open is not None else _next_key(old, lane.at)
    keys = [node.key for node in new]
    lane.at = keys.index(name) if name else len(new)


def _next_key(nodes: list[Node], at: int) -> str:
    return nodes[at].key if at < len(nodes) else ""


def _lists(program: Program, node: Node | None) -> list[list[Node]]:
    return [program.main] if node is None else node.lists


def _undo_target(snapshot: Snapshot) -> str:
    target, _, made = snapshot.migrated_from.partition(":")
    if not target:
        raise RequestError(
            "migration.refused", "the instance was not migrated; there is nothing to undo"
        )
    if int(made) != snapshot.effects_made:
        raise RequestError(
            "migration.refused", "a new effect was made since; the migration cannot be undone"
        )
    return target
