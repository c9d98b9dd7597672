"""The ledger: plans effects, settles them, and decides what doubt leads to.

Theory of operation. `plan` adds an open effect and an order. Every outcome comes back as an input
and goes through `take_outcome`, which settles the entry by the table in `lifecycle.EFFECT` and
returns what the waiting node is to be told, or None. Doubt never becomes "failed" by itself:
`repeatable` is called again, `keyed` is repeated under the same key, `queryable` is reconciled,
`once` waits for a person. An *unwanted* effect (its node was cancelled) is settled all the same and
resumes nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from detent.kernel import asking, calling
from detent.kernel.budget import spend
from detent.kernel.calling import deadline_of, find_frame
from detent.kernel.effect_words import loop_words
from detent.kernel.failure import Failure
from detent.kernel.gate.asks import Answer
from detent.kernel.lifecycle import check_effect
from detent.kernel.orders import order_of
from detent.kernel.run import Run, encode
from detent.kernel.work import hand_out, spec_of
from detent.model import limits
from detent.model.decision import Doubt
from detent.model.ids import effect_key
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed, EffectReconciled
from detent.model.snapshot import Frame, OpenEffect, Wait

Outcome = EffectApplied | EffectFailed | EffectDoubted | EffectReconciled


class Plan(Struct, frozen=True):
    """What to call, for which node."""

    path: str  # the node's path, with a suffix for calls that are not the step's own
    block: str
    handler: str
    request: bytes
    kind: str = "call"
    attempt: int = 1
    timeout_ms: int | None = None
    resource: str = ""
    queue: str = ""  # names external workers, whatever the handler
    pause_ms: int = 0  # a worker gets it after that
    granted: Any = None  # what it may use of limits and pools
    ticket: int = 0  # under which that was granted


class Wake(Struct, frozen=True):
    """What a settled effect tells its node."""

    token: int
    why: str  # applied | failed | skipped
    value: Any


def plan(run: Run, plan: Plan, frame: Frame | None) -> OpenEffect:
    """Commit to a call; the frame, if any, waits for its outcome."""
    snapshot = run.snapshot
    spec = spec_of(run, plan.handler, plan.queue)
    token = run.token() if frame is not None else 0
    timeout_ms = plan.timeout_ms or spec.timeout_ms
    key = effect_key(snapshot.id, snapshot.generation, plan.path, plan.attempt)
    effect = OpenEffect(
        key=key,
        node=plan.path,
        block=plan.block,
        handler=plan.handler,
        token=token,
        request=Raw(plan.request),
        kind=plan.kind,
        doubt=spec.doubt,
        marked=spec.marked,
        attempt=plan.attempt,
        since=run.tick,
        deadline=deadline_of(run, timeout_ms),
        timeout_ms=timeout_ms,
        ctx=spec.ctx,
        resource=plan.resource,
    )
    if spec.ctx and run.program.is_plan:
        effect.clock = run.clock()
    if plan.granted is not None:
        effect.granted, effect.ticket = plan.granted, plan.ticket
    snapshot.effects.append(effect)
    if plan.kind != "policy":  # asking whether to act is no act
        snapshot.effects_made += 1
    detail = {
        "key": key,
        "handler": plan.handler,
        "attempt": plan.attempt,
        "request": effect.request,
    }
    if plan.kind != "call":
        detail["kind"] = plan.kind
    if plan.resource:
        detail["resource"] = plan.resource
    run.entries.append(("effect.planned", plan.path, detail))
    if spec.worker and not snapshot.dry_run:  # a dry run hands nothing out
        detail["worker"] = plan.queue or True
        hand_out(run, effect, plan.queue, plan.pause_ms)
        if frame is not None:
            frame.wait = Wait(kind="worker", token=token, since=run.tick, name=key)
    else:
        run.orders.append(order_of(snapshot, effect, run.program))
        if frame is not None:
            frame.wait = Wait(kind="effect", token=token, since=run.tick, name=key)
    return effect


def take_outcome(run: Run, told: Outcome, index: int) -> Wake | None:
    """Settle what an outcome settles; the wake for the node, if it still waits."""
    effect = run.effect(told.key)
    if effect is None:
        run.note(
            "event.ignored", "", {"in": index, "why": "the effect is settled", "key": told.key}
        )
        return None
    if effect.state == "indeterminate" and _is_no_news(told):
        why = "a person decides on the effect already"
        run.note("event.ignored", effect.node, {"in": index, "why": why, "key": told.key})
        return None
    match told:
        case EffectApplied():
            return _applied(run, effect, told.result, index)
        case EffectFailed():
            return _failed(run, effect, told.message, told.retryable, told.kind, told.details)
        case EffectDoubted():
            return doubt(run, effect, told.reason, crashed=told.crashed)
        case EffectReconciled():
            return _reconciled(run, effect, told, index)


def _is_no_news(told: Outcome) -> bool:
    return isinstance(told, EffectDoubted) or (
        isinstance(told, EffectReconciled) and told.verdict == "retry"
    )


def doubt(run: Run, effect: OpenEffect, reason: str, *, crashed: bool) -> Wake | None:
    """Nobody knows whether it happened: do what the handler's class allows."""
    asking.begin(run, effect)
    if crashed:
        effect.crashes += 1
    looping = effect.crashes > limits.CRASHES_PER_EFFECT
    effect.reason = reason
    if effect.doubt == "repeatable":
        if looping:
            return _failed(
                run, effect, loop_words(effect), False, "consistency", {"code": "effect.crash_loop"}
            )
        if effect.unwanted or not crashed:  # nobody wants to know, so it is not called again
            return _failed(run, effect, reason, True, "timeout", None)
        run.note(
            "error.retried",
            effect.node,
            {"key": effect.key, "why": reason, "crashes": effect.crashes},
        )
        return _call_again(run, effect, called=True)
    if effect.doubt == "once" or looping:
        return _escalate(run, effect, loop_words(effect) if looping else reason)
    return _try_again(run, effect, reason)


def stranded(run: Run, effect: OpenEffect, *, called: bool) -> Wake | None:
    """The process that was to make a call is gone: it is made by this one, if it may be now."""
    return _call_again(run, effect, called=called)


def let_pass(run: Run, effect: OpenEffect, said: Answer | None) -> Wake | None:
    """The gate speaks to a call that stands in line to be made once more."""
    return _unless(run, effect, calling.called(run, effect, said))


def _call_again(run: Run, effect: OpenEffect, *, called: bool) -> Wake | None:
    return _unless(run, effect, calling.again(run, effect, called=called))


def _unless(run: Run, effect: OpenEffect, refused: Failure | None) -> Wake | None:
    """Fail what may never act again; nobody can say so of a call in doubt, but for a person."""
    if refused is None:
        return None
    if effect.state != "planned":
        return _escalate(run, effect, refused.message)
    return _failed(run, effect, refused.message, False, refused.kind, {"code": refused.code})


def fire_effect(run: Run, effect: OpenEffect) -> Wake | None:
    """A due tick of an effect: its next reconcile attempt, or its deadline."""
    if effect.next_try is not None:
        effect.next_try = None
        if effect.state == "planned":
            run.note("wait.completed", effect.node, {"kind": "window"})
            return stranded(run, effect, called=False)
        return _reorder(run, effect)
    effect.deadline = None
    if effect.state == "planned" and effect.marked and run.fact("flight", effect.key) is None:
        return _never_called(run, effect)
    if effect.doubt == "repeatable":
        run.recalled.append(effect.key)
    return doubt(run, effect, "no outcome before the effect's deadline", crashed=False)


def effect_due(effect: OpenEffect) -> int | None:
    """The tick at which an effect must be looked at without an outcome."""
    return effect.deadline if effect.next_try is None else effect.next_try


def resolve(run: Run, effect: OpenEffect, action: str, result: Any) -> Wake | None:
    """A person's decision on an indeterminate effect."""
    run.note("effect.resolved", effect.node, {"key": effect.key, "action": action})
    if action == "happened":
        spend(run, result)
        return _settle(
            run, effect, "applied", "applied", result, {"by": "person", "output": result}
        )
    if action == "failed":
        return _failed(
            run, effect, "a person found that it did not happen", True, "indeterminate", None
        )
    if action == "skip":
        return _settle(run, effect, "skipped", "skipped", None, {"by": "person"})
    check_effect(effect.state, "needs_reconcile")
    effect.state = "needs_reconcile"
    effect.tries = 0
    effect.crashes = 0
    run.doubts.append(Doubt(effect=effect.key, state="needs_reconcile", reason=effect.reason))
    _wait_kind(run, effect, "effect")
    return _reorder(run, effect)


def release(run: Run, effect: OpenEffect) -> None:
    """Its node was cancelled: withdraw it if it was certainly not called, else disown it.

    What is with workers is called off at once: one that holds it learns so when it reports.
    """
    if effect.worker:
        _withdraw(run, effect)
        return
    if effect.state == "planned" and effect.marked and run.fact("flight", effect.key) is None:
        _withdraw(run, effect)
        return
    effect.unwanted = True
    effect.token = 0
    if effect.state == "planned":
        run.recalled.append(effect.key)
    run.note("effect.unwanted", effect.node, {"key": effect.key})


def _withdraw(run: Run, effect: OpenEffect) -> None:
    """Certainly not called, and with its tombstone never called; or no worker's any more."""
    check_effect("planned", "withdrawn")
    if effect.worker:
        run.called_off.append(effect.key)
    else:
        run.withdrawn.append(effect.key)
        run.recalled.append(effect.key)
    asking.give_up(run, effect)
    run.snapshot.effects.remove(effect)
    run.note("effect.withdrawn", effect.node, {"key": effect.key})


def _never_called(run: Run, effect: OpenEffect) -> Wake | None:
    """The deadline came before any call: nothing happened, so this is a failure and no doubt."""
    _withdraw(run, effect)
    failure = Failure(
        message=f"{effect.handler} was not called before the effect's deadline",
        kind="timeout",
        block=effect.block,
        node=effect.node,
        retryable=True,
        attempt=effect.attempt,
    )
    return Wake(effect.token, "failed", failure) if effect.token else None


def _applied(run: Run, effect: OpenEffect, result: Any, index: int) -> Wake | None:
    spend(run, result)
    return _settle(run, effect, "applied", "applied", result, {"in": index})


def _failed(
    run: Run, effect: OpenEffect, message: str, retryable: bool, kind: str, details: Any
) -> Wake | None:
    code = details.get("code", "") if isinstance(details, dict) else ""
    failure = Failure(
        message=message,
        kind=kind,
        code=code if isinstance(code, str) else "",
        block=effect.block,
        node=effect.node,
        retryable=retryable,
        attempt=effect.attempt,
        details=details,
    )
    return _settle(run, effect, "failed", "failed", failure, {"message": message, "kind": kind})


def _settle(
    run: Run, effect: OpenEffect, state: str, why: str, value: Any, detail: dict[str, Any]
) -> Wake | None:
    source = "in_flight" if effect.state == "planned" and effect.marked else effect.state
    check_effect(source, state)
    if effect.ticket:
        asking.begin(run, effect)
    run.snapshot.effects.remove(effect)
    if effect.marked:
        run.settled.append(effect.key)
    if effect.state != "planned":
        run.doubts.append(Doubt(effect=effect.key, state=""))
    detail["key"] = effect.key
    run.entries.append((f"effect.{state}", effect.node, detail))
    return None if effect.unwanted or not effect.token else Wake(effect.token, why, value)


def _reconciled(run: Run, effect: OpenEffect, told: EffectReconciled, index: int) -> Wake | None:
    run.note("effect.reconciled", effect.node, {"key": effect.key, "verdict": told.verdict})
    if told.verdict == "applied":
        return _applied(run, effect, told.result, index)
    if told.verdict == "failed":
        text = told.message or "reconciliation found that it did not happen"
        return _failed(run, effect, text, True, "transport", None)
    return _try_again(run, effect, told.message or "reconciliation could not tell yet")


def _try_again(run: Run, effect: OpenEffect, reason: str) -> Wake | None:
    """One attempt inline, then with backoff, then a person."""
    if effect.tries >= limits.RECONCILE_ATTEMPTS:
        return _escalate(run, effect, reason)
    effect.state = "needs_reconcile"
    if effect.tries == 0:
        run.doubts.append(Doubt(effect=effect.key, state="needs_reconcile", reason=reason))
        return _reorder(run, effect)
    pause = limits.RECONCILE_BACKOFF_MS << (effect.tries - 1)
    effect.next_try = run.after(min(pause, limits.RECONCILE_BACKOFF_MAX_MS))
    effect.deadline = None
    detail = {"key": effect.key, "why": reason, "next_try": effect.next_try}
    run.note("effect.doubted", effect.node, detail)
    run.doubts.append(
        Doubt(effect=effect.key, state="needs_reconcile", next_try=effect.next_try, reason=reason)
    )
    return None


def _reorder(run: Run, effect: OpenEffect) -> Wake | None:
    effect.tries += 1
    if effect.marked:
        run.settled.append(effect.key)  # the old mark goes, so that the new call can be marked
    run.note(
        "error.retried", effect.node, {"key": effect.key, "try": effect.tries, "why": effect.reason}
    )
    if effect.doubt == "queryable":  # it asks what happened, which is no call of the handler
        calling.make(run, effect)
        return None
    return _call_again(run, effect, called=True)


def _escalate(run: Run, effect: OpenEffect, reason: str) -> Wake | None:
    effect.state = "indeterminate"
    effect.next_try = None
    effect.deadline = None
    effect.reason = reason
    run.doubts.append(Doubt(effect=effect.key, state="indeterminate", reason=reason))
    run.note("effect.escalated", effect.node, {"key": effect.key, "why": reason})
    _wait_kind(run, effect, "decision")
    return None


def _wait_kind(run: Run, effect: OpenEffect, kind: str) -> None:
    frame = find_frame(run.snapshot.root, effect.token) if effect.token else None
    if frame is not None and frame.wait is not None:
        frame.wait.kind = kind


__all__ = [
    "Plan",
    "Wake",
    "doubt",
    "effect_due",
    "encode",
    "find_frame",
    "fire_effect",
    "plan",
    "release",
    "resolve",
    "take_outcome",
]
