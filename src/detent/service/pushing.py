"""Pushing: tasks of a queue are brought to a URL instead of waiting to be polled for.

A push is a poll that is made for somebody else. The task is claimed under `push:<queue>` and sent
with the epoch of that claim; from then on the receiver is a worker like any other, who answers with
the output at once, or says that it has the task and reports it later. The claim is what the start
mark is to a call: it is durable before anything is sent, so whoever dies in between leaves a claim
that ends by its lease.

What the answer means (`meaning`): a definite no gives the task back, for pollers at once and for
the next push after a pause. An answer that is lost is no such thing. The receiver may be at work,
so the claim stays until it reports, or until its lease is over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from detent.handlers.network.headers import retry_after_s
from detent.model import limits
from detent.model.errors import DetentError
from detent.ports.records import RecordQuery
from detent.ports.work import GivenBack, PushClaim
from detent.service.holds import PIN, Asker, barred, read_pin
from detent.service.push_targets import Target, active_targets, keys_of
from detent.service.work import Holder, tell_gates
from detent.service.work_views import Task, task_of

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.vault import Safe

_REFUSED, _GONE, _BROKEN = 400, 410, 500
_AGAIN = (408, 429)
_decode = msgspec.json.Decoder().decode


class Push(Struct, frozen=True, kw_only=True):
    """A task that is claimed for a target, and the keys that sign it."""

    target: Target
    task: Task
    keys: tuple[str, ...]
    failed: int = 0  # pushes in a row that nobody got

    @property
    def holder(self) -> Holder:
        """The claim, as reports name it."""
        task = self.task
        return Holder(task=task.id, worker=self.target.worker, epoch=task.claim_epoch)


class Look(NamedTuple):
    """What there is to push now, and when there is more without anybody adding it."""

    pushes: tuple[Push, ...] = ()
    next_ms: int | None = None
    queues: frozenset[tuple[str, str]] = frozenset()  # tenant and queue of each target
    troubles: tuple[tuple[str, str], ...] = ()  # targets that cannot be pushed to, and why


class Pushing(NamedTuple):
    """What pushes are made with."""

    safe: Safe
    keys: tuple[str, ...]  # of all deliveries, where a target has none of its own
    now_ms: int  # logical: by it claims and leases are counted
    wall_ms: int  # by it credentials expire
    stale_ms: int


# claiming ----------------------------------------------------------------------------------------


def claim_pushes(store: Store, pushing: Pushing, busy: Mapping[str, int]) -> Look:
    """Claim what is due for each target, as long as not too many are `busy`, there or in all.

    Those with the fewest under way come first: none with a backlog holds up another.
    """
    pushes: list[Push] = []
    troubles: list[tuple[str, str]] = []
    nexts: list[int] = []
    left = limits.PUSHES_IN_ALL - sum(busy.values())
    targets = sorted(active_targets(store), key=lambda target: busy.get(target.id, 0))
    for target in targets:
        room = min(left, limits.PUSHES_AT_ONCE - busy.get(target.id, 0))
        try:
            found, next_ms = _claimed(store, pushing, target, max(0, room))
        except DetentError as error:  # one target must not hold up the others
            troubles.append((target.id, f"{error.message} [{error.code}]"))
            continue
        pushes += found
        left -= len(found)
        nexts += [] if next_ms is None else [next_ms]
    queues = frozenset((target.tenant, target.kept.queue_name) for target in targets)
    return Look(tuple(pushes), min(nexts, default=None), queues, tuple(sorted(troubles)))


def _claimed(
    store: Store, pushing: Pushing, target: Target, room: int
) -> tuple[list[Push], int | None]:
    if barred(store, target.tenant, Asker(target.worker, "")).everybody:
        return [], None  # whoever lets it go on rouses us
    keys = keys_of(store, pushing.safe, target, pushing.wall_ms, pushing.keys)
    claim = PushClaim(
        tenant=target.tenant,
        queue=target.kept.queue_name,
        worker=target.worker,
        now_ms=pushing.now_ms,
        stale_ms=pushing.stale_ms + limits.PUSH_TIMEOUT_MS,
        limit=room,
        barred=_pinned_away(store, target),
    )
    claimed = store.work.claim_pushes(claim)
    tell_gates(store, claimed.rows, pushing.now_ms)
    pushes = [
        Push(target=target, task=task_of(row), keys=keys, failed=row.pushes) for row in claimed.rows
    ]
    return pushes, claimed.next_ms


def _pinned_away(store: Store, target: Target) -> tuple[str, ...]:
    """Handlers that the tenant has pinned to another version than the target's."""
    query = RecordQuery(PIN, tenant=target.tenant, limit=limits.FLEET_PER_TENANT)
    pins = [read_pin(record.body) for record in store.records(query)]
    return tuple(pin.handler_name for pin in pins if not pin.fits(target.kept.version))


# answers -----------------------------------------------------------------------------------------


class Done(Struct, frozen=True, kw_only=True):
    """The receiver has carried the task out."""

    output: Any
    logs: list[Any] = []


class Broken(Struct, frozen=True, kw_only=True):
    """The receiver tried, and the task failed."""

    message: str
    retryable: bool = False
    logs: list[Any] = []


class Taken(Struct, frozen=True, kw_only=True):
    """The receiver has the task, and will report."""


class Unsure(Struct, frozen=True, kw_only=True):
    """Nobody knows whether the receiver has it."""

    reason: str


class Again(Struct, frozen=True, kw_only=True):
    """The receiver does not have it: it is pushed again later; `final` as late as may be."""

    reason: str
    final: bool = False
    asked_ms: int = 0
    gone: bool = False  # it wants no more, of any task


Meaning = Done | Broken | Taken | Unsure | Again


def meaning(status: int, headers: Mapping[str, str], body: bytes) -> Meaning:
    """What a receiver's answer means."""
    if status < _REFUSED:
        return _taken(body)
    text = f"the receiver answered {status}"
    if status < _BROKEN and status not in _AGAIN:
        return Again(reason=text, final=True, gone=status == _GONE)
    asked = retry_after_s(headers)
    return Again(reason=text, asked_ms=0 if asked is None else round(asked * 1000))


def _taken(body: bytes) -> Meaning:
    """An object with `output`, or with an `error` that has a message, ends the task at once."""
    try:
        said = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return Taken()
    if not isinstance(said, dict):
        return Taken()
    logs = said.get("logs")
    lines = logs if isinstance(logs, list) else []
    error = said.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        again = error.get("retryable") is True
        return Broken(message=error["message"], retryable=again, logs=lines)
    return Done(output=said["output"], logs=lines) if "output" in said else Taken()


def given_back(push: Push, again: Again, now_ms: int) -> GivenBack:
    """How a task that nobody got goes back."""
    return GivenBack(
        id=push.task.id,
        worker=push.target.worker,
        epoch=push.task.claim_epoch,
        now_ms=now_ms,
        push_ms=now_ms + _pause_ms(push, again),
        reason=again.reason[: limits.WEBHOOK_EXCERPT_CHARS],
    )


def _pause_ms(push: Push, again: Again) -> int:
    """Twice as long each time, a quarter more or less: those that fail together come apart."""
    most = limits.PUSH_BACKOFF_MAX_MS
    doublings = min(push.failed, most.bit_length())
    grown = most if again.final else min(limits.PUSH_BACKOFF_MS << doublings, most)
    point = hashlib.sha256(f"{push.task.id}:{push.task.claim_epoch}".encode()).digest()[:8]
    spread = grown // 4
    paused = grown - spread + int.from_bytes(point, "big") % (2 * spread + 1)
    return max(paused, again.asked_ms)
