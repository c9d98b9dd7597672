"""The inbox: how each input changes an instance, in the order in which inputs were numbered."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from detent.kernel import asking, breaking, calling, intercept, ledger, listening, plans, slot
from detent.kernel.blocks import correlator
from detent.kernel.blocks.person import acceptable
from detent.kernel.blocks.schedule import child_ended, child_retried
from detent.kernel.commands import command
from detent.kernel.configure import configure
from detent.kernel.ending import advance
from detent.kernel.gate.asks import Answer
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.lifecycle_moves import cancel, pause, resume_instance
from detent.kernel.resume import resume, resume_token
from detent.kernel.run import Run
from detent.kernel.slot import wake_up
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.inputs import (
    ChildEnded,
    ChildRetried,
    Commanded,
    Configured,
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
    EffectStranded,
    EventArrived,
    EventIngested,
    EventsMatched,
    Forked,
    GateAnswered,
    GateCalled,
    Input,
    SignalReceived,
    Started,
    WaitLeft,
    WaitRegistered,
    decode_input,
)
from detent.model.snapshot import Frame, KeptSignal


def take(run: Run, told: Input, index: int) -> None:
    """Take one input in."""
    match told:
        case EffectApplied() | EffectFailed() | EffectDoubted() | EffectReconciled():
            breaking.heard(run, told)
            resume_token(run, ledger.take_outcome(run, told, index))
        case EffectStranded():
            _stranded(run, told, index)
        case SignalReceived():
            _signal(run, told, index)
        case Commanded():
            command(run, told, index)
        case GateCalled():
            _called(run, told, index)
        case GateAnswered():
            _gate_answered(run, told, index)
        case Configured():
            configure(run, told, index)
        case ChildEnded():
            _child_ended(run, told, index)
        case EventArrived() | WaitRegistered() | WaitLeft():
            correlator.take(run, told, index)
        case EventIngested():
            plans.ingest(run, told, index)
        case EventsMatched():
            _matched(run, told, index)
        case ChildRetried():
            _child_retried(run, told, index)
        case Started():
            _start(run, told, index)
        case Forked():
            _fork(run, told)
        case _:
            assert_never(told)


def _start(run: Run, told: Started, index: int) -> None:
    if run.snapshot.version > 0 or index > 0:
        run.note("event.ignored", "", {"in": index, "why": "the instance exists already"})
        return
    run.note("run.created", "", {"in": 0})
    root = run.snapshot.root
    if root is not None and told.hold:
        run.wait(root, "", "start", None)
        return
    if root is not None and told.at is not None and told.at > run.tick:
        run.wait(root, "", "start", told.at)
        return
    wake_up(run, "start")
    advance(run)


def _fork(run: Run, told: Forked) -> None:
    """Settle what was under way in the origin as it was settled there, and go on.

    The calls behind it were the origin's: none is made, recalled or withdrawn again in its name.
    """
    run.note("run.forked", "", {"origin": told.origin, "seq": told.seq})
    calls = frozenset(effect.key for effect in run.snapshot.effects)
    for body in told.outcomes:
        outcome = decode_input(body)
        if isinstance(outcome, Commanded):
            _skip(run, outcome.args["key"])
        else:
            take(run, outcome, 0)
    if run.snapshot.state not in TERMINAL:
        if run.snapshot.concurrency is not None:
            wake_up(run, "fork")
        advance(run)
    run.orders = [order for order in run.orders if order.key not in calls]
    run.settled = [key for key in run.settled if key not in calls]
    run.recalled = [key for key in run.recalled if key not in calls]
    run.withdrawn = [key for key in run.withdrawn if key not in calls]
    run.doubts = [doubt for doubt in run.doubts if doubt.effect not in calls]
    run.called_off = [key for key in run.called_off if key not in calls]
    _answer(run, told.id)


def _skip(run: Run, key: str) -> None:
    """An effect of the origin that a person chose to skip."""
    effect = run.effect(key)
    if effect is not None:
        effect.state = "indeterminate"
        resume_token(run, ledger.resolve(run, effect, "skip", None))


def _stranded(run: Run, told: EffectStranded, index: int) -> None:
    """An effect is settled by its outcome, or stands already, or its call is made from here."""
    effect = run.effect(told.key)
    if effect is None or effect.state != "planned" or effect.asked or effect.next_try is not None:
        run.note("event.ignored", "", {"in": index, "why": "the call is not to be made"})
        return
    run.note("error.retried", effect.node, {"key": effect.key, "why": "its process is gone"})
    resume_token(run, ledger.stranded(run, effect, called=told.called))


def _signal(run: Run, told: SignalReceived, index: int) -> None:
    snapshot = run.snapshot
    if snapshot.state in TERMINAL:
        run.note(
            "event.ignored",
            "",
            {"in": index, "name": told.name, "why": f"the instance is {snapshot.state}"},
        )
        _answer(
            run,
            told.id,
            "instance.terminal",
            f"the instance is {snapshot.state}; it takes no signals",
        )
        return
    source = snapshot.state
    run.note("event.received", "", {"in": index, "name": told.name})
    if run.program.interceptors:
        intercept.on_signal(run, told.name)
    if told.name == "pause":
        pause(run, "signal")
    elif told.name == "resume":
        resume_instance(run, "signal")
    elif told.name == "cancel":
        cancel(run, "signal")
    elif told.name == "update_context":
        if not _update_context(run, told, index):
            return
    elif not _custom(run, told.name.removeprefix("custom:"), told, index):
        return
    if told.batch:
        detail = {"action": "signal", "batch": told.batch, "state": source}
        run.note("batch.action", "", detail)
    _answer(run, told.id)


def _update_context(run: Run, told: SignalReceived, index: int) -> bool:
    payload = told.payload
    values = (
        payload.get("data")
        if isinstance(payload, dict) and isinstance(payload.get("data"), dict)
        else payload
    )
    if not isinstance(values, dict):
        run.note("event.ignored", "", {"in": index, "why": "update_context needs an object"})
        _answer(
            run, told.id, "payload.invalid", "update_context needs an object to merge into data"
        )
        return False
    size = run.merged_too_large(values)
    if size:
        text = f"data would be {size} bytes; the limit is {limits.CONTEXT_BYTES}"
        run.note("event.ignored", "", {"in": index, "why": text})
        _answer(run, told.id, "payload.too_large", text)
        return False
    run.merge(values)
    return True


def _custom(run: Run, name: str, told: SignalReceived, index: int) -> bool:
    frame = _waiting_for(run, run.snapshot.root, name, told.payload)
    if frame is not None:
        resume(run, frame, "signal", told.payload)
        return True
    if name.startswith("human_input:") and _asked(run.snapshot.root, name):
        run.note("event.ignored", "", {"in": index, "why": "not one of the choices"})
        return True
    if len(run.snapshot.signals) >= limits.SIGNALS_KEPT:
        text = f"{limits.SIGNALS_KEPT} signals are kept already and nobody has taken one"
        run.note("event.ignored", "", {"in": index, "why": text})
        _answer(run, told.id, "request.invalid", text)
        return False
    run.snapshot.signals.append(KeptSignal(name=name, payload=told.payload, tick=run.tick))
    return True


def _waiting_for(run: Run, frame: Frame | None, name: str, payload: Any) -> Frame | None:
    """The first frame in tree order that waits for a signal of that name and accepts it."""
    if frame is None:
        return None
    wait = frame.wait
    if wait is not None and wait.name == name:
        if wait.kind == "signal":
            return frame
        if wait.kind == "human":
            human = run.program.nodes[frame.b].block.wait_for_input
            return frame if acceptable(human, payload) else None
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            found = _waiting_for(run, lane.open, name, payload)
            if found is not None:
                return found
    return None


def _asked(frame: Frame | None, name: str) -> bool:
    if frame is None:
        return False
    if frame.wait is not None and frame.wait.kind == "human" and frame.wait.name == name:
        return True
    return any(_asked(lane.open, name) for lane in frame.lanes if not lane.end)


def _child_ended(run: Run, told: ChildEnded, index: int) -> None:
    if run.program.is_schedule:
        child_ended(run, told, index)
        _answer(run, told.id)
        return
    frame = ledger.find_frame(run.snapshot.root, told.token)
    wait = frame.wait if frame is not None else None
    if frame is None or wait is None or wait.kind != "child" or wait.name != told.child:
        run.note("event.ignored", "", {"in": index, "why": "nobody waits for this child any more"})
    else:
        resume(run, frame, "child", told)
    _answer(run, told.id)


def _matched(run: Run, told: EventsMatched, index: int) -> None:
    """Events for a step; those that nobody waits for any more go back."""
    frame = ledger.find_frame(run.snapshot.root, told.token)
    wait = frame.wait if frame is not None else None
    if frame is None or wait is None or wait.kind != "event" or wait.name != told.wait:
        run.note("event.ignored", "", {"in": index, "why": "nobody waits for these events"})
        listening.refuse(run, told)
    else:
        run.note("wait.matched", "", {"in": index, "wait": told.wait})
        resume(run, frame, "events", told)
    _answer(run, told.id)


def _child_retried(run: Run, told: ChildRetried, index: int) -> None:
    if run.snapshot.state in TERMINAL or not run.program.is_schedule:
        run.note("event.ignored", "", {"in": index, "why": "nobody counts this instance"})
    else:
        child_retried(run, told)
    _answer(run, told.id)


def _answer(run: Run, id: str, code: str = "", message: str = "") -> None:
    if id:
        run.verdicts.append(Verdict(id=id, ok=not code, code=code, message=message))


def _called(run: Run, told: GateCalled, index: int) -> None:
    """A ticket's turn has come: its node, or the instance itself, takes what was kept for it."""
    root = run.snapshot.root
    frame = ledger.find_frame(root, told.token)
    effect = calling.in_line(run, told.token)
    if effect is not None:
        resume_token(run, ledger.let_pass(run, effect, None))
    elif frame is None or frame.wait is None or frame.wait.kind not in ("gate", "slot"):
        run.note("event.ignored", "", {"in": index, "why": "nobody waits with this ticket"})
        asking.leave(run, told.token)
    elif frame is root:
        if slot.called(run, told.token):
            run.set_moving("called by the gate")
            advance(run)
    else:
        resume(run, frame, "called", told.token)


def _gate_answered(run: Run, told: GateAnswered, index: int) -> None:
    """What the gate of another writer said; a grant that nobody wants any more is given back."""
    frame = ledger.find_frame(run.snapshot.root, told.token)
    answer = msgspec.convert(told.answer, Answer)
    effect = calling.in_line(run, told.token)
    if effect is not None:
        asking.forget(run, told.token)
        resume_token(run, ledger.let_pass(run, effect, answer))
    elif frame is None or frame.wait is None or frame.wait.kind not in ("gate", "slot"):
        run.note("event.ignored", "", {"in": index, "why": "nobody waits with this ticket"})
        asking.leave(run, told.token)
    elif frame is run.snapshot.root:
        asking.forget(run, told.token)
        if slot.granted(run, answer):
            run.set_moving("the gate answered")
            advance(run)
    else:
        asking.forget(run, told.token)
        resume(run, frame, "gate", (told.token, answer))
    _answer(run, told.id)
