"""A failed instance goes on: from its failed nodes, or from a block that is chosen.

Both begin a new generation, so no call carries a key that was used before, and both are refused
while a call of what would be repeated is not settled: it might happen twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from detent.kernel import budget
from detent.kernel.blocks.result import disown
from detent.kernel.blocks.sub_sequence import cancel as cancel_child
from detent.kernel.ending import tell_of_retry
from detent.kernel.lifecycle_moves import go_on
from detent.kernel.program import Node, Program
from detent.kernel.run import Run
from detent.kernel.walk import renew_lanes
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.snapshot import Frame, KeptSignal, Lane

_FORK = "it never goes on; fork it before that block instead"
_NOT_FROM = {
    "completed": _FORK,
    "cancelled": _FORK,
    "scheduled": "pause it first",
    "running": "pause it first",
    "waiting": "pause it first, or cancel what it waits for",
}


def renew(run: Run) -> None:
    """Make the failed nodes ready to be entered again; nothing completed is repeated."""
    snapshot = run.snapshot
    root = snapshot.root
    if snapshot.state != "failed" or root is None:
        raise RequestError(
            "instance.transition",
            f"only a failed instance can be retried; this one is {snapshot.state}",
            source=snapshot.state,
            verb="retry",
        )
    at = root.lanes[0].at  # where a person stopped it, no failed node is kept
    repeated = list(_failed_blocks(root)) or [node.key for node in run.program.main[at : at + 1]]
    _refuse_unsettled(run, repeated, ("call",))
    run.move("scheduled", "retry", "run.retried")
    _new_generation(run)
    root.stop = False
    renew_lanes(run, root)
    tell_of_retry(run)


def resume_from(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """Repeat a block of the top level and all that follow it; their outputs are wiped."""
    index = _place(run, args.get("block"))
    later = run.program.main[index:]
    _refuse_unsettled(run, [node.key for node in later], ("call", "escalation", "breach"))
    data, signals = _brought(run, args)
    snapshot = run.snapshot
    root = snapshot.root
    if root is None:
        raise RequestError("instance.transition", _FORK)
    _abandon(run, root)
    wiped = [id for id in _ids(later) if id in snapshot.outputs]
    for id in wiped:
        del snapshot.outputs[id]
    budget.lift(run)
    snapshot.paused_reason = ""
    had_failed = snapshot.state == "failed"
    run.move("scheduled", "operator", "run.resumed")
    run.note("blocks.reset", "", {"block": later[0].id, "wiped": wiped})
    _new_generation(run)
    if had_failed:
        tell_of_retry(run)
    root.phase, root.stop, root.wait, root.lanes = "", False, None, [Lane(at=index)]
    run.merge(data)
    snapshot.signals += signals
    go_on(run, "operator", None)
    return {
        "resumed_from": later[0].id,
        "outputs_deleted": len(wiped),
        "signals_enqueued": len(signals),
    }


def _new_generation(run: Run) -> None:
    snapshot = run.snapshot
    snapshot.generation += 1
    snapshot.ended = None
    snapshot.error = None


def _place(run: Run, block: Any) -> int:
    """The number of a block of the top level; refused where the instance cannot be resumed."""
    snapshot = run.snapshot
    why = _NOT_FROM.get(snapshot.state, "")
    if snapshot.cancel_requested and not why:
        why = "it is being cancelled"
    if why:
        raise RequestError(
            "instance.transition",
            f"only a failed or paused instance is resumed from a block; this one is "
            f"{snapshot.state}: {why}",
            source=snapshot.state,
            verb="resume_from",
        )
    for index, node in enumerate(run.program.main):
        if node.id == block:
            return index
    raise RequestError(
        "request.invalid",
        f"an instance is resumed from a block of the top level; {block!r} is none",
    )


def _refuse_unsettled(run: Run, repeated: Sequence[str], kinds: tuple[str, ...]) -> None:
    for effect in run.snapshot.effects:
        if effect.kind in kinds and _stands_below(run.program, effect.block, repeated):
            raise RequestError(
                "effect.unsettled",
                f"the effect {effect.key} of {effect.node} is not settled yet; "
                "wait for its outcome or resolve it",
            )


def _failed_blocks(frame: Frame) -> Iterator[str]:
    """The blocks a retry enters again: the innermost failed ones."""
    for lane in frame.lanes:
        if lane.end == "failed" and lane.open is not None:
            within = list(_failed_blocks(lane.open))
            yield from within or [lane.open.b]


def _stands_below(program: Program, block: str, above: Sequence[str]) -> bool:
    key = block
    while key in program.nodes:
        if key in above:
            return True
        key = program.nodes[key].parent
    return False


def _brought(run: Run, args: dict[str, Any]) -> tuple[dict[str, Any], list[KeptSignal]]:
    """What is merged into the data and kept as signals for the blocks to come."""
    data = dict(args.get("data") or {})
    signals: list[KeptSignal] = []
    for each in args.get("signals") or ():
        name, payload = str(each["name"]), each.get("payload")
        if name == "update_context":
            inner = payload.get("data") if isinstance(payload, dict) else None
            data |= inner if isinstance(inner, dict) else payload
        else:
            signals.append(
                KeptSignal(name=name.removeprefix("custom:"), payload=payload, tick=run.tick)
            )
    size = run.merged_too_large(data)
    if size:
        raise RequestError(
            "payload.too_large", f"data would be {size} bytes; the limit is {limits.CONTEXT_BYTES}"
        )
    if len(run.snapshot.signals) + len(signals) > limits.SIGNALS_KEPT:
        raise RequestError("request.invalid", f"at most {limits.SIGNALS_KEPT} signals are kept")
    return data, signals


def _abandon(run: Run, frame: Frame) -> None:
    """Let go of what is open: calls are withdrawn or settled unwanted, children cancelled."""
    for lane in frame.lanes:
        below = lane.open
        if below is None:
            continue
        if below.wait is not None and below.wait.kind == "child":
            cancel_child(run, run.program.nodes[below.b], below, "")
        disown(run, below)
        _abandon(run, below)


def _ids(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        yield node.id
        for below in node.lists:
            yield from _ids(below)
