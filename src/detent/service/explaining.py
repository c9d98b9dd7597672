"""Explaining: why instances stand still, whom they wait for, and what is in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from detent.kernel.explain import RESOLUTIONS, Explanation, explain
from detent.kernel.foresight import coming_asks
from detent.kernel.gate.asks import PROBE
from detent.kernel.gate.forecast import Forecast, forecast, forecast_ask
from detent.kernel.gate.meters import Timing as GateTiming
from detent.kernel.ledger import effect_due
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.places import frontier
from detent.kernel.survey import next_due
from detent.model.errors import RequestError
from detent.model.ids import work_id
from detent.ports.store import Page
from detent.runtime.gates import open_gate
from detent.service.reading import (
    check_tenant,
    find_instance,
    program_for,
    read_snapshot,
    timing_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from detent.kernel.gate.gate import Gate
    from detent.kernel.program import Node
    from detent.kernel.recording import Timing
    from detent.model.snapshot import Frame, OpenEffect, Snapshot
    from detent.ports.store import Flight, InstanceRow, Store

APPROVALS_LIMIT = 1_000
_PAGE = 500
_GATE_ROUNDS = 2_000  # instants at which a gate calls that a list looks ahead
_GATE_ROOM = 10_000
_HOLDERS = 100  # of a concurrency key, that are looked at
_STILL = (*TERMINAL, "paused")
_YES_NO = (("Yes", "yes"), ("No", "no"))


class Approval(Struct, frozen=True, kw_only=True):
    """A question that waits for a person's answer."""

    instance: str
    tenant: str
    namespace: str
    definition: str
    name: str
    block: str
    node: str
    prompt: str
    choices: tuple[tuple[str, str], ...]  # (label, value)
    store_as: str | None
    timeout_ms: int | None
    escalation_handler: str | None
    since_ms: int
    deadline_ms: int | None
    metadata: Any
    allow_comment: bool


class OpenCall(Struct, frozen=True, kw_only=True):
    """An effect that is not settled; `resolutions` where a person must decide."""

    effect: str
    instance: str
    tenant: str
    node: str
    block: str
    handler: str
    attempt: int
    state: str  # planned | in_flight | needs_reconcile | indeterminate
    since: int
    due: int | None
    reason: str
    unwanted: bool
    resolutions: tuple[str, ...] = ()


def explain_instance(
    store: Store, instance: str, tenant: str | None, tick: int | None = None
) -> Explanation:
    """Why an instance stands still and when it can move; by the store's last tick by default."""
    row = find_instance(store, instance, tenant)
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return Explanation(
            instance=row.id,
            state=row.state,
            summary="It was accepted, and starts as soon as an engine takes it in.",
            waits=(),
            effects=(),
            earliest=None,
            earliest_ms=None,
        )
    program = program_for(store, snapshot)
    if tick is None:
        tick = max((each.tick for each in store.partitions() if each.p == row.p), default=0)
    timing = timing_of(store)
    return explain(snapshot, program, timing, tick, forecasts(store, snapshot, timing, tick))


def forecasts(store: Store, snapshot: Snapshot, timing: Timing, tick: int) -> dict[int, Forecast]:
    """When each ticket of an instance is called, as its tenant's gate stands now.

    Also what becomes of the tickets to come, of steps that wait for an instant first.
    """
    told: dict[int, Forecast] = {}
    for token in snapshot.tickets:
        gate = _gate(store, snapshot.tenant, timing, tick)
        found = forecast(gate, f"{snapshot.id}:{token}", tick)
        if found.holders:
            found = found._replace(not_before=_released(store, found.holders, timing, tick))
        told[token] = found
    if snapshot.state in _STILL:
        return told
    program = program_for(store, snapshot)
    for each in coming_asks(program, snapshot, timing):
        gate = _gate(store, snapshot.tenant, timing, tick)
        later = forecast_ask(gate, each.ask, tick, each.tick)
        if later is not None:
            told[each.token] = later
    return told


def _gate(store: Store, tenant: str, timing: Timing, tick: int) -> Gate:
    return open_gate(store, tenant, GateTiming(timing.epoch_ms, timing.resolution_ms), tick)


def _released(store: Store, holders: Sequence[str], timing: Timing, tick: int) -> int | None:
    """A tick before which no holder of a key moves by itself; None when that is not known."""
    first: list[int] = []
    for id in holders[:_HOLDERS]:
        row = store.instance(id)
        snapshot = None if row is None else read_snapshot(store, row)
        if snapshot is None or snapshot.effects or len(holders) > _HOLDERS:
            return None  # an outcome may come at any time
        due = next_due(snapshot, tick)
        first += [] if due is None else [due]
        for token in snapshot.tickets:
            called = forecast(_gate(store, snapshot.tenant, timing, tick), f"{id}:{token}", tick)
            first += [] if called.at is None else [called.at]
    return min(first, default=None)


def gate_calls(store: Store, tenant: str, instances: frozenset[str]) -> dict[str, int]:
    """When a tenant's gate calls those of the instances that stand in line there.

    It is so if nothing else happens; what is too far ahead is left out.
    """
    meta = store.meta()
    tick = max((each.tick for each in store.partitions()), default=0)
    gate = open_gate(store, tenant, GateTiming(meta.epoch_ms, meta.resolution_ms), tick)
    gate.begin_all(tick)
    found: dict[str, int] = {}
    probed: set[str] = set()
    for _ in range(_GATE_ROUNDS):
        due = gate.next_due()
        if due is None or len(found) == len(instances):
            break
        tick = max(due, tick)
        for call in gate.call(tick, _GATE_ROOM):
            ticket = f"{call.instance}:{call.token}"
            breaker = gate.breaker_of(ticket)
            if call.instance in instances and breaker not in probed:
                found.setdefault(call.instance, tick)
            if gate.take(ticket, tick).rule == PROBE:
                probed.add(breaker)  # what becomes of the probe decides on the others
            gate.begin(ticket, tick)
    return found


def approvals(
    store: Store, tenant: str | None, *, namespace: str = "", offset: int = 0, limit: int = 100
) -> list[Approval]:
    """The questions that wait for an answer, the oldest instances first."""
    check_tenant(tenant)
    if offset < 0 or not 0 < limit <= APPROVALS_LIMIT:
        raise RequestError(
            "request.invalid",
            f"offset must not be negative and limit must be 1 to {APPROVALS_LIMIT}; "
            f"got {offset} and {limit}",
        )
    found: list[Approval] = []
    for row in _standing(store, Page(tenant=tenant or "", namespace=namespace)):
        found += _questions(store, row)
        if len(found) >= offset + limit:
            break
    return found[offset : offset + limit]


def doubts(
    store: Store, tenant: str | None, *, instance: str = "", limit: int = 100
) -> list[OpenCall]:
    """Effects in doubt, the oldest first; of one instance, every effect that is not settled."""
    check_tenant(tenant)
    if instance:
        row = find_instance(store, instance, tenant)
        snapshot = read_snapshot(store, row)
        return _calls(store, row, snapshot) if snapshot is not None else []
    calls: list[OpenCall] = []
    seen: dict[str, dict[str, OpenCall]] = {}
    for doubt in store.doubts(tenant or "", "", limit):
        if doubt.instance not in seen:
            row = find_instance(store, doubt.instance, None)
            snapshot = read_snapshot(store, row)
            open_calls = _calls(store, row, snapshot) if snapshot is not None else []
            seen[doubt.instance] = {call.effect: call for call in open_calls}
        call = seen[doubt.instance].get(doubt.effect)
        if call is not None:
            calls.append(call)
    return calls


def _standing(store: Store, page: Page) -> Iterator[InstanceRow]:
    page = page._replace(states=("waiting",), limit=_PAGE)
    while rows := store.instances(page):
        yield from rows
        page = page._replace(after=rows[-1].n)


def _questions(store: Store, row: InstanceRow) -> list[Approval]:
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return []
    program = program_for(store, snapshot)
    timing = timing_of(store)
    name = program.definition.name
    return [
        _approval(snapshot, name, (path, frame, node), timing)
        for path, frame, node in frontier(snapshot, program)
        if frame.wait is not None and frame.wait.kind == "human"
    ]


def _approval(
    snapshot: Snapshot, name: str, place: tuple[str, Frame, Node], timing: Timing
) -> Approval:
    path, frame, node = place
    human = node.block.wait_for_input
    wait = frame.wait
    named = human.choices
    choices = _YES_NO if named is None else tuple((each.label, each.value) for each in named)
    return Approval(
        instance=snapshot.id,
        tenant=snapshot.tenant,
        namespace=snapshot.namespace,
        definition=snapshot.definition,
        name=name,
        block=node.id,
        node=path,
        prompt=human.prompt,
        choices=choices,
        store_as=human.store_as,
        timeout_ms=human.timeout,
        escalation_handler=human.escalation_handler,
        since_ms=timing.ms_of(wait.since if wait is not None else frame.since),
        deadline_ms=None if wait is None or wait.due is None else timing.ms_of(wait.due),
        metadata=snapshot.metadata,
        allow_comment=human.allow_comment,
    )


def _calls(store: Store, row: InstanceRow, snapshot: Snapshot) -> list[OpenCall]:
    flights = store.flights([effect.key for effect in snapshot.effects])
    return [
        _call(row, effect, called=_begun(store, flights, effect)) for effect in snapshot.effects
    ]


def _begun(store: Store, flights: Mapping[str, Flight], effect: OpenEffect) -> bool:
    """Whether somebody may be performing it: a start mark, or a worker's claim."""
    if effect.worker:
        item = store.work.item(work_id(effect.key))
        return item is not None and item.state == "claimed"
    return effect.key in flights and flights[effect.key].dispatcher != ""


def _call(row: InstanceRow, effect: OpenEffect, *, called: bool) -> OpenCall:
    return OpenCall(
        effect=effect.key,
        instance=row.id,
        tenant=row.tenant,
        node=effect.node,
        block=effect.block,
        handler=effect.handler,
        attempt=effect.attempt,
        state="in_flight" if called and effect.state == "planned" else effect.state,
        since=effect.since,
        due=effect_due(effect),
        reason=effect.reason,
        unwanted=effect.unwanted,
        resolutions=RESOLUTIONS if effect.state == "indeterminate" else (),
    )
