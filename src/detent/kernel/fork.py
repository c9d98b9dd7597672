"""Forks: an instance as it was at one of its rows becomes the first input of a new one.

Nothing is called again. What was under way at that row (effects, children) belongs to the origin:
how each of them ended is read from the origin's later rows and handed to the fork with its first
input. Where the record does not tell how one ended, there is no fork. Calls the fork makes later
carry keys of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from detent.kernel.observe import observe
from detent.kernel.rebase import rebase
from detent.kernel.recording import (
    Body,
    Recording,
    Row,
    body_of,
    detail_of,
    facts_of,
    inputs_of,
    program_of,
)
from detent.kernel.replay import Player, definition_of
from detent.kernel.run import NeedFact
from detent.kernel.spill import unpack
from detent.kernel.survey import waits_of
from detent.model.errors import RequestError
from detent.model.inputs import (
    NO_BLOCKS,
    ChildEnded,
    Commanded,
    EffectApplied,
    EffectFailed,
    EffectReconciled,
    Forked,
    Input,
    SignalReceived,
    decode_input,
    encode_input,
)
from detent.model.snapshot import Snapshot, decode_snapshot, encode_snapshot

_SETTLED = ("effect.applied", "effect.failed", "effect.skipped", "effect.withdrawn")
_ENDED = ("completed", "cancelled")


class ForkRequest(Struct, frozen=True, kw_only=True):
    """What a fork is to be: the new id, the row it begins after, and what differs.

    With `before`, a node path, the fork stops short of that node: of row `seq` only what led up to
    it is kept. `signals` are (name, payload), taken in before the fork goes on.
    """

    instance: str
    seq: int
    before: str = ""
    data: Any = None
    dry_run: bool = False
    signals: tuple[tuple[str, Any], ...] = ()
    seed: str = ""
    id: str = ""


def fork(recording: Recording, request: ForkRequest) -> Forked:
    """The first input of a fork; `fork.refused` or `effect.unsettled` where there can be none."""
    player = Player(recording)
    later = list(recording.rows)
    while later and later[0].seq < request.seq:
        player.play(later.pop(0))
    if not later or later[0].seq != request.seq:
        raise RequestError(
            "fork.refused",
            f"the instance has no journal row {request.seq}; its rows are "
            f"1 to {recording.rows[-1].seq if recording.rows else 0}",
            seq=request.seq,
        )
    row = later[0]
    snapshot = _before(player, row, request.before) if request.before else _after(player, row)
    if not request.before:
        later.pop(0)
    if snapshot.state in _ENDED:
        raise RequestError(
            "fork.refused",
            f"at row {row.seq} the instance is {snapshot.state}; fork an earlier row",
        )
    origin = snapshot.id
    outcomes = _outcomes(recording, snapshot, later)
    rebase(snapshot, -row.tick)
    return Forked(
        instance=request.instance,
        origin=origin,
        seq=row.seq,
        snapshot=Raw(encode_snapshot(snapshot)),
        outcomes=outcomes + _signals(request),
        data=request.data,
        dry_run=request.dry_run,
        injected=Raw(player.blob(snapshot.injected)) if snapshot.injected else NO_BLOCKS,
        seed=request.seed,
        id=request.id,
    )


def _signals(request: ForkRequest) -> tuple[Raw, ...]:
    told = (SignalReceived(name=name, payload=payload) for name, payload in request.signals)
    return tuple(Raw(encode_input(each)) for each in told)


def entered_at(recording: Recording, node: str) -> int:
    """The seq of the row in which a node was first entered, for a fork that begins before it."""
    for row in recording.rows:
        for entry in body_of(row).entries:
            if entry[0] in ("step.entered", "block.entered") and entry[1] == node:
                return row.seq
    raise RequestError("fork.refused", f"the instance has not entered {node!r} yet", node=node)


def _after(player: Player, row: Row) -> Snapshot:
    return _whole(player, player.play(row).decision.snapshot)


def _before(player: Player, row: Row, node: str) -> Snapshot:
    """The frontier with everything of the row done that came before a node was entered.

    A step that runs out of moves leaves a frontier to go on from, so the row is run with ever fewer
    moves until the node is not entered any more.
    """
    body = body_of(row)
    inputs = inputs_of(body, player.recording.blobs)
    program = program_of(player.recording.programs, definition_of(player.snapshot, inputs))
    facts = facts_of(body, player.recording.timing)
    low, high = 0, sum(1 for entry in body.entries if entry[0].endswith((".entered", ".evaluated")))
    high = max(high * 2, 2) + 2
    found: Snapshot | None = None
    while low < high:
        moves = (low + high) // 2
        run = _observed(player, (program, inputs, row.tick, facts), moves)
        entered = any(e[0].endswith(".entered") and e[1] == node for e in run.entries)
        if entered:
            high = moves
        else:
            low = moves + 1
            found = run.snapshot
    if found is None or low != high:
        raise RequestError("fork.refused", f"row {row.seq} cannot be stopped before {node!r}")
    found.version = row.seq
    return _whole(player, encode_snapshot(found))


def _observed(player: Player, turn: tuple[Any, list[bytes], int, Any], moves: int) -> Any:
    program, inputs, tick, facts = turn
    while True:
        try:
            return observe(program, player.snapshot, inputs, (tick, moves), facts)
        except NeedFact as asked:
            need = asked.need
            if need.kind != "blob":
                raise RequestError(
                    "fork.refused", f"the record lacks {need.kind} {need.name}"
                ) from None
            facts.given[f"blob:{need.name}"] = player.blob(need.name)


def _whole(player: Player, body: bytes) -> Snapshot:
    """The snapshot with its blobs put back: they are kept under the origin's id."""
    snapshot = decode_snapshot(body)
    if snapshot.blobs:
        unpack(snapshot, {digest: player.blob(digest) for digest in snapshot.blobs})
    return snapshot


def _outcomes(recording: Recording, snapshot: Snapshot, later: list[Row]) -> tuple[Raw, ...]:
    """How everything under way ended, in the order in which it did."""
    effects = {effect.key: effect for effect in snapshot.effects}
    children = {wait.name: None for wait in waits_of(snapshot.root) if wait.kind == "child"}
    found: list[Raw] = []
    for row in later:
        if not effects and not children:
            break
        body = body_of(row)
        inputs = [decode_input(each) for each in _readable(body, recording)]
        for entry in body.entries:
            detail = detail_of(entry)
            key = detail.get("key") if isinstance(detail, dict) else None
            if entry[0] in _SETTLED and key in effects:
                effect = effects.pop(key)
                if entry[0] == "effect.withdrawn":
                    raise _unsettled(effect.node, "it was withdrawn before it was called")
                found.append(Raw(encode_input(_outcome(entry, inputs))))
        for told in inputs:
            if isinstance(told, ChildEnded) and told.child in children:
                del children[told.child]
                found.append(Raw(encode_input(msgspec.structs.replace(told, id=""))))
    for effect in effects.values():
        raise _unsettled(effect.node, "the record does not tell how its call ended")
    for child in children:
        raise RequestError(
            "fork.refused", f"child {child} had not ended; fork once it has, or at an earlier row"
        )
    return tuple(found)


def _readable(body: Body, recording: Recording) -> list[bytes]:
    texts = inputs_of(body, recording.blobs)
    return [text for text in texts if not text.startswith(b'{"t":"unreadable"')]


def _unsettled(node: str, why: str) -> RequestError:
    return RequestError(
        "effect.unsettled",
        f"the effect of {node} is open at that row and {why}; "
        "fork at an earlier row, or once it is settled",
        node=node,
    )


def _outcome(entry: list[Any], inputs: list[Input]) -> Input:
    """One input that settles an effect as its entry says it was settled."""
    action, _, detail = entry
    key = detail["key"]
    if action == "effect.skipped":
        return Commanded(verb="resolve", id="", args={"key": key, "action": "skip"})
    if action == "effect.applied":
        if "in" in detail:
            return EffectApplied(key=key, result=applied_result(inputs[detail["in"]], key))
        return EffectApplied(key=key, result=detail.get("output"))
    for told in inputs:
        if isinstance(told, EffectFailed) and told.key == key:
            return told
    kind = detail.get("kind", "transport")
    return EffectFailed(
        key=key, message=detail.get("message", ""), kind=kind, retryable=kind != "consistency"
    )


def applied_result(told: Input, key: str) -> Any:
    """The result that an applied effect's input brought; a fork brings several."""
    if isinstance(told, EffectApplied | EffectReconciled):
        return told.result
    if isinstance(told, Forked):
        for raw in told.outcomes:
            inner = decode_input(raw)
            if isinstance(inner, EffectApplied) and inner.key == key:
                return inner.result
    return None
