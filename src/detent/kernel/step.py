"""`step`: the one pure function everything stands on.

    step(program, snapshot, inputs, tick, facts) -> Decision, or the needs it must be told first

Order within a turn: waits due before this tick, then the inputs as numbered, then waits due at this
tick; each runs the instance to its next wait before the next is looked at. Same arguments, same
bytes. Only a schedule takes its inputs first: who disables one after a stand-still wants no run of
what was missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from detent.kernel import blocks
from detent.kernel.born import born
from detent.kernel.counting import counted
from detent.kernel.ending import advance
from detent.kernel.inbox import take
from detent.kernel.injecting import carried, program_with
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.kernel.program import Program
from detent.kernel.resume import fire_due
from detent.kernel.run import Facts, NeedFact, Run, in_line
from detent.kernel.slot import settle
from detent.kernel.spill import pack, pack_input, unpack
from detent.kernel.survey import next_due, shown_state
from detent.model import limits
from detent.model.decision import Decision, Need
from detent.model.inputs import decode_input
from detent.model.snapshot import decode_snapshot

__all__ = ["Facts", "blocks", "step"]


def step(
    program: Program, snapshot: bytes | None, inputs: Sequence[bytes], tick: int, facts: Facts
) -> Decision | list[Need]:
    """Decide what follows from the inputs at this tick."""
    try:
        return _step(program, snapshot, inputs, tick, facts)
    except NeedFact as unwound:
        return [unwound.need]


def _step(
    program: Program, body: bytes | None, inputs: Sequence[bytes], tick: int, facts: Facts
) -> Decision:
    told = list(map(decode_input, inputs))
    if body is None:
        snapshot, birth = born(program, told[0], tick)
    else:
        snapshot, birth = decode_snapshot(body), None
    kept = carried(told[0], snapshot) if birth is not None else {}
    if snapshot.injected:
        blobs = {f"blob:{digest}": body for digest, body in kept.items()}
        program = program_with(program, snapshot.injected, blobs or facts.given)
    run = Run(program, snapshot, tick, facts)
    run.birth, run.kept = birth, kept
    run.bulk = sum(map(len, inputs)) + (len(body) if body else 0)
    if snapshot.blobs:
        _open(run)
    if snapshot.more:
        snapshot.more = False
        advance(run)
    if not program.is_schedule:
        fire_due(run, tick - 1)
    for index, each in enumerate(told):
        take(run, each, index)
    return _seal(run, inputs, fire_due(run, tick))


def _open(run: Run) -> None:
    """Put the blobs of a snapshot back; they count as part of what the step started from."""
    blobs: dict[str, bytes] = {}
    for digest in run.snapshot.blobs:
        if f"blob:{digest}" not in run.facts.given:
            raise NeedFact(Need(kind="blob", name=digest))
        blobs[digest] = run.facts.given[f"blob:{digest}"]
        run.bulk += len(blobs[digest])
    unpack(run.snapshot, blobs)


def _seal(run: Run, inputs: Sequence[bytes], due: int | None) -> Decision:
    """Settle the shown state and turn the working copy into a Decision.

    `due` is what stands when nothing fires any more; what is settled here may change it.
    """
    snapshot = run.snapshot
    stood = snapshot.state
    if stood not in TERMINAL:
        _settle_state(run)
    gated = bool(snapshot.tickets or snapshot.slot)
    if gated:
        settle(run)
    happened = bool(run.entries or inputs or run.more)
    snapshot.more = run.more and not run.held and snapshot.state not in TERMINAL
    if happened:
        snapshot.version += 1
    if gated or run.more or snapshot.state != stood:
        due = next_due(snapshot, run.tick)
    body, blobs = pack(snapshot)
    if run.kept:
        blobs |= run.kept
    if run.bulk > limits.BLOB_BYTES:  # else no input can be that large
        inputs = [pack_input(each, blobs) for each in inputs]
    journal = run.splice(inputs) if happened else b""
    decision = Decision(
        instance=snapshot.id,
        snapshot=body,
        version=snapshot.version,
        state=snapshot.state,
        priority=snapshot.priority,
        due=due,
        busy=bool(snapshot.effects),
        journal=journal,
        tick=run.tick,
        definition=snapshot.definition,
        more=snapshot.more,
        birth=run.birth,
        started=snapshot.started,
        actions=counted(run.entries),
        orders=run.orders,
    )
    _add_rare(decision, run, blobs)
    return decision


def _add_rare(decision: Decision, run: Run, blobs: dict[str, bytes]) -> None:
    if run.withdrawn:
        decision.withdrawn = run.withdrawn
    if run.recalled:
        decision.recalled = run.recalled
    if run.settled:
        decision.settled = run.settled
    if run.doubts:
        decision.doubts = run.doubts
    if run.messages:
        decision.messages = run.messages
    if run.verdicts:
        decision.verdicts = run.verdicts
    if run.work:
        decision.work = run.work
    if run.called_off:
        decision.called_off = run.called_off
    if run.events:
        decision.events = run.events
    if blobs:
        decision.blobs = blobs


def _settle_state(run: Run) -> None:
    snapshot = run.snapshot
    if in_line(snapshot) and not snapshot.pause_requested:
        if snapshot.state == "waiting":
            run.move("scheduled", "in line for its concurrency key")
        return
    if run.held and snapshot.state != "paused":
        if snapshot.state == "waiting":
            return
        snapshot.paused_reason = snapshot.paused_reason or "pause requested"
        snapshot.pause_requested = False
        run.move("paused", snapshot.paused_reason)
        return
    if snapshot.state == "paused":
        return
    target = "running" if run.more else shown_state(snapshot)
    if target == snapshot.state:
        return
    if target not in INSTANCE[snapshot.state]:
        run.set_moving("run to wait")
    run.move(target, "run to wait")
