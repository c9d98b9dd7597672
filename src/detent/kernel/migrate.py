"""Moving a live instance to another version: only at a wait, previewed, recorded, undoable.

Every open node must exist in the other version at the same place and of the same kind; so must a
failed one that a retry would enter again. The move can be undone until a new effect was made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from detent.kernel.born import policies_of
from detent.kernel.injecting import ids_of
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.program import Node, Program
from detent.kernel.run import NeedFact, Run
from detent.model.decision import Need
from detent.model.errors import RequestError
from detent.model.snapshot import Frame, Lane, Snapshot

# kinds whose lanes stand for all of their lists at once
_BY_NUMBER = ("parallel", "race", "saga")
_ASKED = ("human", "answered", "unanswered", "escalated")


class _Pair(NamedTuple):
    """One block in both versions; None is the whole definition."""

    was: Node | None
    becomes: Node | None


def migrate(run: Run, args: dict[str, Any]) -> None:
    """Carry a migration out; `to` is a definition hash, or `undo` goes back to the one before."""
    snapshot = run.snapshot
    target = _undo_target(snapshot) if args.get("undo") else str(args.get("to", ""))
    if f"program:{target}" not in run.facts.given:
        raise NeedFact(Need(kind="program", name=target))
    program = run.facts.given[f"program:{target}"]
    if program is None:
        raise RequestError("definition.unknown", f"there is no definition of hash {target!r}")
    program = with_injected(run.program, program, snapshot.injected)
    snapshot.more = run.more  # as it stands now, not as the turn began
    problems = preview(snapshot, run.program, program)
    if problems:
        raise RequestError("migration.refused", "; ".join(problems))
    if snapshot.root is not None:
        _move(snapshot.root, _Pair(None, None), (run.program, program))
    before = snapshot.definition
    own = snapshot.policies[len(run.program.definition.body.policies) :]
    snapshot.policies = [*policies_of(program), *own]
    snapshot.definition = program.hash
    snapshot.migrated_from = "" if args.get("undo") else f"{before}:{snapshot.effects_made}"
    run.program = program
    run.note("migration.applied", "", {"from": before, "to": program.hash})


def with_injected(old: Program, new: Program, digest: str) -> Program:
    """The other version with the blocks that were injected into the instance."""
    if not digest:
        return new
    return new.extensions.get(digest) or new.extended(digest, old.injected)


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
    problems += [
        f"block {id!r} was injected, and the other version has one of that id"
        for id in ids_of(new.injected.blocks)
        if id in new.own.nodes
    ]
    if snapshot.root is not None:
        if snapshot.root.phase:
            problems.append("the instance is cleaning up")
        _compare(snapshot.root, _Pair(None, None), (old, new), problems)
    return problems


def _compare(
    frame: Frame, pair: _Pair, programs: tuple[Program, Program], problems: list[str]
) -> None:
    for lane in frame.lanes:
        if lane.end and lane.open is None:
            continue
        old = _blocks(frame, lane, pair.was, programs[0]) or []
        new = _blocks(frame, lane, pair.becomes, programs[1])
        name = _name(lane, old)
        if new is None or _landing(lane, old, new) is None:
            problems.append(f"block {name!r} is not at the same place in the other version")
        elif lane.open is not None:
            was, becomes = programs[0].nodes[name], programs[1].nodes[name]
            found = _difference(lane.open, was, becomes)
            if found:
                problems.append(found)
            else:
                _compare(lane.open, _Pair(was, becomes), programs, problems)


def _difference(frame: Frame, was: Node, becomes: Node) -> str:
    """Why a frame of one version cannot go on as the same block of the other."""
    if was.kind != becomes.kind:
        return f"block {was.key!r} is a {was.kind} here and a {becomes.kind} there"
    if was.kind in _BY_NUMBER and len(was.lists) != len(becomes.lists):
        return f"block {was.key!r} has {len(was.lists)} lists here, {len(becomes.lists)} there"
    if was.kind == "step" and frame.phase in _ASKED and becomes.block.wait_for_input is None:
        return f"step {was.key!r} waits for an answer, which the other version does not ask for"
    return ""


def _move(frame: Frame, pair: _Pair, programs: tuple[Program, Program]) -> None:
    for lane in frame.lanes:
        if lane.end and lane.open is None:
            continue
        old = _blocks(frame, lane, pair.was, programs[0]) or []
        new = _blocks(frame, lane, pair.becomes, programs[1]) or []
        name = _name(lane, old)
        lane.at = _landing(lane, old, new) or 0
        if pair.becomes is not None and pair.becomes.kind == "graph":
            lane.i = pair.becomes.names[frame.phase]
        if lane.open is not None:
            below = _Pair(programs[0].nodes[name], programs[1].nodes[name])
            _move(lane.open, below, programs)


def _blocks(frame: Frame, lane: Lane, node: Node | None, program: Program) -> list[Node] | None:
    """The list a lane runs over, in one version; a graph's node is found by its name."""
    if node is None:
        return program.main
    index = node.names.get(frame.phase, -1) if node.kind == "graph" else lane.i
    return node.lists[index] if 0 <= index < len(node.lists) else None


def _landing(lane: Lane, old: list[Node], new: list[Node]) -> int | None:
    """Where a lane goes on in the other version; None where that has no such place.

    Between two blocks it is before the one that was next, else after the one that was last; where
    nothing was done yet, at the beginning.
    """
    keys, name = [node.key for node in new], _name(lane, old)
    if not name:
        return len(new)
    if name in keys:
        return keys.index(name)
    if lane.open is not None:
        return None
    if lane.at == 0:
        return 0
    last = old[lane.at - 1].key
    return keys.index(last) + 1 if last in keys else None


def _name(lane: Lane, nodes: list[Node]) -> str:
    if lane.open is not None:
        return lane.open.b
    return nodes[lane.at].key if lane.at < len(nodes) else ""


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
