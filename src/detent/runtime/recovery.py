"""Recovery: open effects of an earlier process are found and brought to an end.

A walk over the instances with open effects, a chunk between turns, so that the first turn does not
wait for it. Of each effect: marked and without a start mark means certainly not called, so its
order goes out again; unmarked, or marked by a dispatcher whose lease is over, means nobody knows,
and the kernel is told (`EffectDoubted`), which counts crashes and does what the handler's class
allows. A call whose dispatcher's lease is valid is left alone and looked at again; age is never a
reason. Marks under our own name with a number below our first are of an earlier life.

A writer that follows another one of the same engine finds the dispatcher alive: nothing of it is
doubted. What it has marked it is calling, or asks for again; of the rest the orders may have been
lost on the way, so they go out once more (`again`) and it ignores those it has.

Effects ordered by this very process while the walk goes on are not its business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent.kernel.orders import order_of
from detent.kernel.spill import unpack
from detent.kernel.standing import QUARANTINED
from detent.model.definition import Step
from detent.model.errors import DetentError
from detent.model.figures import add_counts
from detent.model.inputs import EffectDoubted, EffectStranded, encode_input
from detent.model.link import Submission
from detent.model.snapshot import OpenEffect, Snapshot, decode_snapshot
from detent.runtime import failpoints
from detent.runtime.recovering import Deferred

if TYPE_CHECKING:
    from detent.kernel.program import Program
    from detent.ports.store import Flight, Loaded
    from detent.runtime.parts import Parts

CHUNK = 256


class _Found(NamedTuple):
    p: int
    snapshot: Snapshot
    definition: str
    effects: list[OpenEffect]


def recover(parts: Parts) -> None:
    """Do the next piece of recovery, if there is one and its time has come."""
    state = parts.recovery
    now = parts.clock.elapsed_ms()
    if state.active:
        arrivals_first = parts.inbox.polled_full or parts.inbox.own
        if not arrivals_first and parts.clock.wall_ms() >= state.not_before_ms:
            _walk_chunk(parts)
    elif now >= state.look_at:
        _look_for_the_dead(parts)
        state.look_at = now + parts.settings.stale_instance_threshold_secs * 1000
    if state.deferred and now >= state.recheck_at:
        state.recheck_at = now + parts.settings.tick_interval_ms
        _recheck(parts)


def _walk_chunk(parts: Parts) -> None:
    failpoints.hit("during_recovery")
    state, store = parts.recovery, parts.store
    numbers = store.busy(state.partitions, state.after, CHUNK)
    rows = store.load_numbers(numbers) if numbers else []
    found = [each for each in map(_open_effects, rows) if each is not None]
    keys = [effect.key for each in found for effect in each.effects if effect.marked]
    flights = store.flights(keys) if keys else {}
    valid = _valid_dispatchers(parts)
    for each in found:
        left = [effect for effect in each.effects if effect.key not in state.ordered]
        for effect in left:
            _recover_effect(parts, each, effect, flights.get(effect.key), valid)
        if left:
            add_counts(parts.out.counts, {"recovery.instances": 1})
    if len(numbers) < CHUNK:
        state.finish()
    else:
        state.after = numbers[-1]


def _open_effects(row: Loaded) -> _Found | None:
    """The effects of an instance that nothing else will bring to an end."""
    if row.body is None:
        return None
    try:
        snapshot = decode_snapshot(row.body)
    except msgspec.MsgspecError:
        return None  # its next step quarantines it
    if snapshot.state == "paused" and snapshot.paused_reason == QUARANTINED:
        return None
    effects = [
        effect
        for effect in snapshot.effects
        if (effect.state == "planned" and not effect.worker)  # its work item is durable itself
        or effect.state == "needs_reconcile"
    ]
    effects = [each for each in effects if each.next_try is None and not each.asked]
    return _Found(row.p, snapshot, row.definition, effects)


def _recover_effect(
    parts: Parts,
    found: _Found,
    effect: OpenEffect,
    flight: Flight | None,
    valid: frozenset[str],
) -> None:
    state = parts.recovery
    marked = effect.marked and not _reconciling(effect)
    if flight is not None and _may_run(parts, flight, valid):
        if flight.dispatcher != parts.lease.owner.id:
            state.deferred.append(Deferred(found.snapshot.id, flight))
    elif marked and flight is None:
        if found.p in state.fresh:
            _order_again(parts, found, effect)
    elif marked and flight is not None:
        if flight.dispatcher:
            _doubt(parts, found.snapshot.id, effect.key, flight.dispatch)
    elif found.p in state.fresh and found.p in parts.lease.clean | parts.lease.resumed:
        _order_again(parts, found, effect)  # closed or going on, not crashed: no strike
    elif found.p in state.fresh:
        _doubt(parts, found.snapshot.id, effect.key, 0)


def _reconciling(effect: OpenEffect) -> bool:
    """Whether the order that is out asks what happened, which needs no mark."""
    return effect.state == "needs_reconcile" and effect.doubt == "queryable"


def _order_again(parts: Parts, found: _Found, effect: OpenEffect) -> None:
    """Let a call be made that nobody makes any more.

    If it had to pass something, its instance decides anew. That a limited call has begun was told
    to the gate before an engine is closed, so what it was granted is used or free by now.
    """
    snapshot = found.snapshot
    if snapshot.blobs:
        unpack(snapshot, parts.store.blobs(snapshot.id, snapshot.blobs))
    try:
        program = parts.programs.whole(snapshot)
        ours = found.p in parts.lease.resumed  # then our dispatcher may have the order
        if effect.state == "planned" and not ours and _passed(program, effect):
            told = EffectStranded(key=effect.key)
            parts.inbox.inputs.append(Submission(snapshot.id, encode_input(told)))
            parts.recovery.ordered.add(effect.key)
            return
        order = order_of(snapshot, effect, program)
    except DetentError as error:
        if error.code.startswith("store."):
            raise
        _doubt(parts, snapshot.id, effect.key, 0)  # the step that takes this is quarantined
        return
    parts.recovery.ordered.add(effect.key)
    again = parts.lease.resuming
    parts.out.orders.append(msgspec.structs.replace(order, again=True) if again else order)


def _passed(program: Program, effect: OpenEffect) -> bool:
    """Whether a call was let pass by limits or by send windows, which may say another thing now."""
    node = program.nodes.get(effect.block)
    windows = node is not None and isinstance(node.block, Step) and node.block.send_window
    return effect.granted is not None or (effect.kind == "call" and bool(windows))


def _doubt(parts: Parts, instance: str, key: str, dispatch: int) -> None:
    doubted = EffectDoubted(key=key, dispatch=dispatch, reason="crash", crashed=True)
    parts.inbox.inputs.append(Submission(instance, encode_input(doubted)))
    parts.recovery.ordered.add(key)


def _valid_dispatchers(parts: Parts) -> frozenset[str]:
    """Other owners who may still be making calls: until their lease and the margin are over."""
    now = parts.clock.wall_ms() - parts.settings.lease_margin_ms
    alive = [owner.id for owner in parts.store.owners() if owner.lease_until_ms > now]
    return frozenset(alive) - {parts.lease.owner.id}


def _may_run(parts: Parts, flight: Flight, valid: frozenset[str]) -> bool:
    """Whether the call of a start mark may be running now."""
    return parts.our_mark(flight) or flight.dispatcher in valid


def _recheck(parts: Parts) -> None:
    """Doubt the deferred calls whose dispatcher's lease has run out, unless they were settled."""
    state = parts.recovery
    valid = _valid_dispatchers(parts)
    stored = parts.store.flights([each.flight.effect for each in state.deferred])
    left = [each for each in state.deferred if stored.get(each.flight.effect) == each.flight]
    state.deferred = [each for each in left if each.flight.dispatcher in valid]
    for instance, flight in left:
        if flight.dispatcher not in valid:
            _doubt(parts, instance, flight.effect, flight.dispatch)


def _look_for_the_dead(parts: Parts) -> None:
    """Walk again, for start marks only, when a dispatcher that was seen has gone."""
    state = parts.recovery
    valid = _valid_dispatchers(parts)
    gone = [each for each in state.seen if each not in valid]
    state.seen = sorted(valid)
    if gone:
        state.begin(parts.lease.owned, full=False)
