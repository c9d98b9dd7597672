"""The first snapshot of an instance, from its first input alone."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from detent.kernel.listening import listen_again
from detent.kernel.program import Program
from detent.kernel.rebase import rebase
from detent.kernel.slot import step_out
from detent.model.decision import Birth
from detent.model.errors import InvariantViolation, invariant
from detent.model.inputs import Forked, Input, Started
from detent.model.labels import labels_of
from detent.model.snapshot import Frame, Lane, Snapshot, decode_snapshot


def born(program: Program, told: Input, tick: int) -> tuple[Snapshot, Birth]:
    """The snapshot before the first step, and the columns of the instance's row."""
    if isinstance(told, Started):
        snapshot = _from_start(program, told, tick)
        key = told.key
    elif isinstance(told, Forked):
        snapshot = _from_fork(told, tick)
        key = None
    else:
        raise InvariantViolation(f"the first input of an instance was {type(told).__name__}")
    parent = snapshot.parent["instance"] if snapshot.parent else None
    birth = Birth(
        id=snapshot.id,
        tenant=snapshot.tenant,
        namespace=snapshot.namespace,
        definition=snapshot.definition,
        priority=snapshot.priority,
        key=key,
        parent=parent,
        labels=labels_of(snapshot.metadata),
    )
    return snapshot, birth


def _from_start(program: Program, told: Started, tick: int) -> Snapshot:
    invariant(
        told.definition == program.hash, "the start names another definition than the one given"
    )
    snapshot = Snapshot(
        id=told.instance,
        tenant=told.tenant,
        namespace=told.namespace,
        definition=told.definition,
        priority=told.priority,
        timezone=told.timezone,
        seed=told.seed,
        created=tick,
        dry_run=told.dry_run,
        auto_approve=told.auto_approve,
        policies=[*policies_of(program), *told.policies],
        metadata=told.metadata,
        data=told.data,
        config=told.config,
        root=Frame(b="", since=tick, lanes=[Lane()]),
    )
    snapshot.session = told.session
    snapshot.budget = told.budget
    if told.parent is not None:
        snapshot.parent = to_builtins(told.parent)
    if told.concurrency_key is not None:
        snapshot.concurrency = {"key": told.concurrency_key, "max": told.max_concurrency}
    return snapshot


def policies_of(program: Program) -> list[dict[str, Any]]:
    """The policies a definition brings, before those the start adds."""
    return [to_builtins(policy) for policy in program.definition.body.policies]


def _from_fork(told: Forked, tick: int) -> Snapshot:
    """The origin's frontier under the new id; its ticks were counted from the row it is taken from.

    Open effects stay the origin's, with its keys, until `_fork` settles them; they get no time-out.
    """
    snapshot = decode_snapshot(told.snapshot)
    rebase(snapshot, tick)
    snapshot.id = told.instance
    snapshot.version = 0
    snapshot.created = tick
    snapshot.parent = None
    snapshot.more = False
    snapshot.slot = False
    snapshot.tickets = []
    if snapshot.root is not None:
        step_out(snapshot.root)
        listen_again(snapshot.root)
    if snapshot.concurrency is not None and snapshot.state == "running":
        snapshot.state = "scheduled"  # it does not hold the origin's key
    snapshot.dry_run = told.dry_run
    snapshot.seed = told.seed or snapshot.seed
    for effect in snapshot.effects:
        effect.deadline = effect.next_try = None
    if isinstance(told.data, dict):
        snapshot.data = (
            {**snapshot.data, **told.data} if isinstance(snapshot.data, dict) else told.data
        )
    return snapshot
