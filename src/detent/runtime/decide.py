"""Decide: one `step` per instance, with the facts it asks for.

Instances are independent within a turn, so the order of deciding is the queue's (it spends the time
budget fairly) while the order of the turn is CORE-SCH-2's. A step that raises anything is the
instance's own trouble: it is quarantined and the others go on.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from detent.definition.system import GATE
from detent.kernel.step import Facts, step
from detent.model.decision import Decision
from detent.model.errors import InvariantViolation, StoreError
from detent.runtime.cache import Hot
from detent.runtime.facts import give
from detent.runtime.quarantine import quarantine, refuse_birth
from detent.runtime.ready import Ready
from detent.runtime.webhooks import announce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import Need
    from detent.runtime.load import Loaded
    from detent.runtime.parts import Parts

NEEDS_PER_STEP = 1_000
_body = attrgetter("body")


class GateUsed(Exception):
    """A step failed after the gate had answered it: the turn starts over without that step."""


class Done(Struct, frozen=True, gc=False):
    """A decided instance."""

    entry: Ready
    hot: Hot
    decision: Decision


def decide(parts: Parts, loaded: Sequence[Loaded], tick: int) -> list[Done]:
    """Step instances until the time budget is spent; in turn order, the rest is put back."""
    clock = parts.clock
    budget = parts.settings.turn_budget_ms if clock.mode == "wall" else 0
    until = clock.elapsed_ms() + budget
    done: list[Done] = []
    for index, each in enumerate(loaded, 1):
        entry, hot = each.entry, each.hot
        try:
            decision = _decide_one(parts, entry, hot, tick)
        except (StoreError, GateUsed) as stopped:
            parts.queue.restore([each.entry for each in done])
            parts.queue.restore([each.entry for each in loaded[index - 1 :]])
            parts.gates.drop()
            if isinstance(stopped, StoreError):
                raise
            return []
        if decision is not None:
            done.append(Done(entry, hot, decision))
        if budget and clock.elapsed_ms() >= until:
            parts.queue.restore([each.entry for each in loaded[index:]])
            break
    done.sort(key=_turn_order)
    if parts.gates.calls:
        parts.gates.settle_calls({each.entry.id for each in done})
    return done


def _turn_order(done: Done) -> tuple[int, int, str]:
    entry = done.entry
    return (-entry.priority, entry.tick, entry.id)


def _decide_one(parts: Parts, entry: Ready, hot: Hot, tick: int) -> Decision | None:
    reason = parts.condemned.get(entry.id) if parts.condemned else None
    parts.gates.begin_step()
    if reason is None:
        try:
            return _step(parts, entry, hot, tick)
        except StoreError as error:
            if error.code.startswith("store."):
                raise  # the store cannot be read: nobody's poison
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the others
            reason = f"{type(error).__name__}: {error}"
        if parts.gates.used_by_step():
            parts.condemned[entry.id] = reason
            raise GateUsed
    if entry.birth is not None:
        refuse_birth(parts, entry, reason)
        return None
    return quarantine(parts.store, entry, hot, tick, reason)


def _step(parts: Parts, entry: Ready, hot: Hot, tick: int) -> Decision:
    program = parts.programs.get(hot.definition)
    inputs = list(map(_body, entry.inputs))
    decision = step(program, hot.body, inputs, tick, parts.facts)
    if isinstance(decision, list):
        decision = _step_with_facts(parts, hot, inputs, tick, decision)
    expected = hot.version + 1 if decision.journal else hot.version
    if decision.version != expected:
        raise InvariantViolation(f"a step left version {decision.version}, expected {expected}")
    if hot.definition == GATE.hash:
        parts.gates.configure(decision.snapshot, inputs)
    if parts.settings.webhooks:
        announce(parts, decision)
    return decision


def _step_with_facts(
    parts: Parts, hot: Hot, inputs: list[bytes], tick: int, needs: list[Need]
) -> Decision:
    facts = Facts(
        handlers=parts.facts.handlers,
        given={},
        epoch_ms=parts.facts.epoch_ms,
        resolution_ms=parts.facts.resolution_ms,
        gate=parts.gates,
    )
    program = parts.programs.get(hot.definition)
    for _ in range(NEEDS_PER_STEP):
        for need in needs:
            give(parts, hot, need, facts.given)
        decision = step(program, hot.body, inputs, tick, facts)
        if not isinstance(decision, list):
            return decision
        needs = decision
    raise InvariantViolation(f"a step asked for more than {NEEDS_PER_STEP} facts")
