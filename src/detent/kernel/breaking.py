"""Circuit breakers as a step sees them: whether its handler may be called, and how calls ended.

A step looks at one mapping that the writer keeps, of breakers with failures; most of the time it is
empty, and that is all. Only what an open breaker says is a fact of the step's row: that the gate
must be asked, or, for a step with a `fallback_handler`, whether it is the probe or the fallback is
performed. Reports of how calls ended change nothing in the instance, so they are no facts.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.builtin import MOVES
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed, EffectReconciled
from detent.model.snapshot import Frame, OpenEffect

Outcome = EffectApplied | EffectFailed | EffectDoubted | EffectReconciled

UNTRACKED = frozenset({*MOVES, "emit_event", "send_signal", "query_instance", "webhook_deliver"})
"""Handlers without a breaker: nothing outside the engine can fail behind them, or it has its own
way to wait."""


# before a call -----------------------------------------------------------------------------------


def holds(run: Run, node: Node, path: str) -> bool:
    """Whether the breaker of a step's handler is open and has no fallback: the gate is asked."""
    gate = run.facts.gate
    if not (run.facts.given if gate is None else gate.breakers.shaky):
        return False  # nearly always: this is on the way of every step
    block = node.block
    if block.fallback_handler is not None or run.snapshot.dry_run:
        return False
    name = _name(run, path)
    if gate is None:
        told = run.facts.given.get(name)
    else:
        breaker = gate.breakers.shaky.get((run.snapshot.tenant, block.handler))
        told = {"until": breaker.until} if breaker is not None and breaker.until else None
    if told is None:
        return False
    run.used[name] = told
    return True


def performer(run: Run, node: Node, frame: Frame, path: str) -> str:
    """Of a step with a fallback: that, while the breaker of its own handler is open."""
    block = node.block
    fallback = str(block.fallback_handler)
    told = None if run.snapshot.dry_run else _told(run, block.handler, path)
    if told is None or told["told"] != "fallback":
        _remember(frame, "")
        return str(block.handler)
    _remember(frame, fallback)
    detail = {"handler": fallback, "instead_of": block.handler, "until": told["until"]}
    run.note("step.fallback", path, detail)
    return fallback


def performed_by(node: Node, frame: Frame) -> str:
    """The handler that performed the step's last call."""
    kept = frame.v
    return str(kept["by"] if isinstance(kept, dict) and "by" in kept else node.block.handler)


def _told(run: Run, handler: str, path: str) -> Any:
    """What an open breaker said to a step that has a fallback; None while it is closed."""
    gate = run.facts.gate
    name = _name(run, path)
    if gate is None:
        told = run.facts.given.get(name)
    elif not gate.breakers.shaky:
        return None
    else:
        told = gate.breakers.choose(run.snapshot.tenant, handler, name)
    if told is not None:
        run.used[name] = told
    return told


def _name(run: Run, path: str) -> str:
    """Under which name a look is recorded; whatever follows a look takes the next token."""
    return f"breaker:{path}:{run.snapshot.tokens}"


def _remember(frame: Frame, fallback: str) -> None:
    kept = frame.v if isinstance(frame.v, dict) else {}
    if fallback:
        frame.v = {**kept, "by": fallback}
    elif "by" in kept:
        frame.v = {name: value for name, value in kept.items() if name != "by"} or None


# after a call ------------------------------------------------------------------------------------


def heard(run: Run, told: Outcome) -> None:
    """Report how a call ended, where it counts; a success only where failures came before."""
    gate = run.facts.gate
    if gate is None or (not gate.breakers.shaky and isinstance(told, EffectApplied)):
        return
    effect = run.effect(told.key)
    if effect is None or effect.kind != "call" or effect.handler in UNTRACKED:
        return
    if run.snapshot.dry_run or run.birth is not None:  # a fork settles what others called
        return
    worked = _worked(effect, told)
    if worked is not None:
        gate.breakers.report(run.snapshot.tenant, effect.handler, effect.key, worked=worked)


def _worked(effect: OpenEffect, told: Outcome) -> bool | None:
    """Whether a call has worked; None when that is not known, or nobody wants to know."""
    match told:
        case EffectApplied():
            return True
        case EffectReconciled():
            return True if told.verdict == "applied" else None
        case EffectFailed():
            return None if effect.unwanted else False
        case EffectDoubted():
            failed = effect.doubt == "repeatable" and not told.crashed and not effect.unwanted
            return False if failed else None


__all__ = ["UNTRACKED", "heard", "holds", "performed_by", "performer"]
