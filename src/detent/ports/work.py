"""Work items as they cross the store port: claimed, kept alive and settled by guarded updates.

Items are written by `Store.commit`. Everything here may be called from any process. A claim is
named by (item, worker, epoch): whoever comes with another one changes nothing. Times are epoch
milliseconds of the engine's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detent.ports.store import NewArrival


HELD_MS = 1 << 62  # `available_ms` of an item that nobody gets until its instance says so


class WorkRow(NamedTuple):
    """A work item as stored."""

    n: int
    id: str
    effect: str
    instance: str
    tenant: str
    block: str
    handler: str
    queue: str
    attempt: int
    timeout_ms: int | None
    state: str  # pending | claimed | completed | failed | cancelled
    worker: str | None
    claim_epoch: int
    created_ms: int
    available_ms: int
    claimed_ms: int | None
    heartbeat_ms: int | None
    lease_ms: int | None  # when it must be looked at, while it is claimed
    deadline_ms: int | None  # when its own time is over, while it is claimed
    lost: int  # claims that ended in silence since the last checkpoint
    checkpoint_seq: int
    completed_ms: int | None
    retryable: bool | None
    error: str | None
    params: bytes
    context: bytes
    checkpoint: bytes | None
    output: bytes | None
    ticket: str  # under which the tenant's gate granted it, if that was asked
    pushes: int  # times in a row that it was given back by who pushes its queue


class Claim(NamedTuple):
    """Who wants work of which handler; without a queue of any, without a tenant of all."""

    handler: str
    worker: str
    now_ms: int
    stale_ms: int  # how long a claim lives without a heartbeat
    limit: int = 1
    queue: str | None = None
    tenant: str | None = None
    version: str | None = None
    barred: tuple[str, ...] = ()  # tenants whose items are passed over, where none is named


class PushClaim(NamedTuple):
    """Who pushes the items of a tenant's queue, whatever their handlers but for some."""

    tenant: str
    queue: str
    worker: str
    now_ms: int
    stale_ms: int
    limit: int = 1
    barred: tuple[str, ...] = ()  # handlers whose items are passed over


class Claimed(NamedTuple):
    """What was claimed, oldest first, and when the next one may be had if nobody adds any."""

    rows: list[WorkRow]
    next_ms: int | None


class Beat(NamedTuple):
    """A sign of life of a claim; with a checkpoint, `seq` must be the one that is stored."""

    id: str
    worker: str
    epoch: int
    now_ms: int
    stale_ms: int
    checkpoint: bytes | None = None
    seq: int = 0


class Report(NamedTuple):
    """How a claim ended, and the input that tells the instance."""

    id: str
    worker: str
    epoch: int
    now_ms: int
    state: Literal["completed", "failed"]
    arrival: NewArrival
    event: str
    output: bytes | None = None
    error: str | None = None
    retryable: bool | None = None
    logs: bytes | None = None
    overdue: bool = False  # not of the worker itself: holds only if the lease is over by now


class GivenBack(NamedTuple):
    """A claim whose holder did not get its item to anybody; it is pushed no earlier than so."""

    id: str
    worker: str
    epoch: int
    now_ms: int
    push_ms: int
    reason: str
    told: NewArrival | None = None  # it is held back until the instance that hears this says so


class WorkEvent(NamedTuple):
    """One line of an item's history."""

    n: int
    item: str
    claim_epoch: int
    worker: str | None
    event: str
    reason: str
    at_ms: int


class WorkQuery(NamedTuple):
    """A filter over items; empty fields do not filter."""

    tenant: str | None = None
    states: tuple[str, ...] = ()
    handler: str = ""
    worker: str = ""
    queue: str = ""
    limit: int = 50
    offset: int = 0


class WorkerRow(NamedTuple):
    """One thing a worker polled for."""

    tenant: str  # "" for a worker of all tenants
    id: str
    handler: str
    queue: str
    version: str | None
    seen_ms: int


class WorkStore(Protocol):
    """The work items of a store."""

    def claim(self, claim: Claim) -> Claimed:
        """Give pending items to a worker, each to one only; notes that it was seen."""

    def claim_pushes(self, claim: PushClaim) -> Claimed:
        """Give pending items of a queue to who pushes them, none before its pause is over."""

    def give_back(self, given: GivenBack) -> bool:
        """Put an item back to pending for whoever polls; False when the claim is not held."""

    def beat(self, beat: Beat) -> tuple[Literal["kept", "lost", "seq"], int]:
        """Keep a claim alive; `seq` when the checkpoint's number is another, with the stored."""

    def settle(self, report: Report) -> Literal["settled", "ignored", "lost"]:
        """End a claim and leave its arrival in one transaction, then wake the instance's owner.

        `ignored` when the item was cancelled under this claim, `lost` when the claim is not held.
        """

    def overdue(self, now_ms: int, limit: int) -> list[WorkRow]:
        """Claimed items whose lease is over, the longest first."""

    def reclaim(
        self, rows: Sequence[WorkRow], now_ms: int, told: Mapping[str, NewArrival]
    ) -> list[WorkRow]:
        """Put items back to pending, where the lease is still over; those that were."""

    def next_lease(self) -> int | None:
        """When the first lease of a claimed item is over."""

    def item(self, id: str) -> WorkRow | None: ...
    def items(self, query: WorkQuery) -> list[WorkRow]:
        """The newest first."""

    def counts(self, tenant: str | None) -> list[tuple[str, str, int]]:
        """(handler, state, how many)."""

    def holders(self, tenant: str | None) -> dict[str, int]:
        """How many claimed items each worker holds."""

    def events(self, id: str, limit: int) -> list[WorkEvent]:
        """The history of an item, the oldest first."""

    def workers(self, tenant: str | None, seen_ms: int, limit: int) -> list[WorkerRow]:
        """Who polled since an instant, by id."""

    def logs(self, instance: str, limit: int) -> list[tuple[str, bytes]]:
        """(block, what its worker wrote down), the oldest first."""
