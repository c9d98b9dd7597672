"""The store port on one SQLite connection: each method hands over to the module of its subject."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from detent.store.sqlite import blobs as blob_rows
from detent.store.sqlite import (
    catalogue,
    gates,
    inbox,
    listing,
    own,
    own_lists,
    ownership,
    readiness,
    views,
    work_rows,
)
from detent.store.sqlite import feed as feed_rows
from detent.store.sqlite import flights as flight_rows
from detent.store.sqlite import records as record_rows
from detent.store.sqlite.checkpoint import Checkpointer
from detent.store.sqlite.commit import commit_turn
from detent.store.sqlite.failures import translated
from detent.store.sqlite.wake import Waker
from detent.store.sqlite.work import SqliteWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from detent.model.decision import Verdict
    from detent.ports.due import DuePage, DueQuery, Stretch
    from detent.ports.store import (
        Arrival,
        Commit,
        Committed,
        Flight,
        GateDue,
        GateRow,
        Loaded,
        Meta,
        NewArrival,
        Owner,
        Partition,
    )
    from detent.store.sqlite.lock import StoreLock


P = ParamSpec("P")
R = TypeVar("R")


def _handed(
    function: Callable[Concatenate[apsw.Connection, P], R],
) -> Callable[Concatenate[SqliteStore, P], R]:
    """The method that hands its arguments over to a function of a connection."""

    @translated
    @wraps(function)
    def call(self: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self._connection, *args, **kwargs)

    return call


class SqliteStore:
    """One open connection to a store, used by one thread."""

    __slots__ = ("_checkpointer", "_connection", "_lock", "_meta", "_waker", "_work")

    def __init__(self, connection: apsw.Connection, meta: Meta, lock: StoreLock | None) -> None:
        self._connection = connection
        self._meta = meta
        self._lock = lock  # None for a store in memory, which no other process can reach
        self._checkpointer: Checkpointer | None = None
        self._waker = Waker()
        self._work = SqliteWork(connection, self._waker)

    def meta(self) -> Meta:
        """What is fixed in the store."""
        return self._meta

    # owning

    @translated
    def acquire(
        self, owner: Owner, partitions: Iterable[int], now_ms: int, lease_until_ms: int
    ) -> list[Partition]:
        """Take partitions whose lease is free or expired; `store.owned` if none can be had."""
        owner = owner._replace(lease_until_ms=lease_until_ms)
        taken = ownership.acquire(self._connection, self._lock, owner, partitions, now_ms)
        if self._lock is not None and self._checkpointer is None:
            self._checkpointer = Checkpointer(self._connection)
        return taken

    @translated
    def hold_lock(self) -> int:
        """Take the OS lock before any partition, for writers that share it by this descriptor.

        It is free again when this store and all that adopted it are closed. `store.owned` when
        another process has it; -1 for a store in memory, which has none.
        """
        if self._lock is None:
            return -1
        if not self._lock.held:
            ownership.hold(self._connection, self._lock)
        return self._lock.descriptor

    @translated
    def renew(self, owner: Owner, fences: Sequence[tuple[int, int]], tick: int) -> bool:
        """Move the lease of all (p, fence_epoch) pairs to the owner's, or of none."""
        return ownership.renew(self._connection, owner, fences, tick)

    @translated
    def release(self, owner: str, partitions: Sequence[int] | None = None) -> None:
        """Give up partitions of the owner, or all of them."""
        if partitions is None:
            ownership.release(self._connection, self._lock, owner)
        else:
            ownership.release_some(self._connection, owner, partitions)

    @translated
    def owners(self) -> list[Owner]:
        """All owners, by id."""
        return ownership.owners(self._connection)

    @translated
    def partitions(self) -> list[Partition]:
        """All partitions, by number."""
        return ownership.partitions(self._connection)

    # the turn

    @translated
    def arrivals(self, partitions: Sequence[int], limit: int, after: str = "") -> list[Arrival]:
        """What waits to be taken, shared between the tenants, of each in its order."""
        return inbox.arrivals(self._connection, self._here(partitions), limit, after)

    @translated
    def stretches(self, partitions: Sequence[int]) -> list[Stretch]:
        """Every stretch with its earliest due tick, by tenant and priority."""
        return readiness.stretches(self._connection, self._here(partitions))

    @translated
    def due(
        self, partitions: Sequence[int], tick: int, queries: Sequence[DueQuery]
    ) -> list[DuePage]:
        """What is due of each stretch asked for, by due tick and id."""
        return readiness.due(self._connection, self._here(partitions), tick, queries)

    @translated
    def next_due(self, partitions: Sequence[int]) -> int | None:
        """The earliest due tick of all waiting instances."""
        return min((stretch.due for stretch in self.stretches(partitions)), default=None)

    @translated
    def any_due(self, partitions: Sequence[int]) -> bool:
        """Whether a user's instance has a due tick."""
        return readiness.any_due(self._connection, self._here(partitions))

    @translated
    def busy(self, partitions: Sequence[int], after: int, limit: int) -> list[int]:
        """Numbers of instances with open effects, by n."""
        return readiness.busy(self._connection, self._here(partitions), after, limit)

    @translated
    def load(self, ids: Sequence[str]) -> dict[str, Loaded]:
        """The instances that exist, by id."""
        return readiness.load(self._connection, ids)

    @translated
    def load_numbers(self, numbers: Sequence[int]) -> list[Loaded]:
        """The instances that exist, in the order asked for."""
        return readiness.load_numbers(self._connection, numbers)

    @translated
    def flights(self, effects: Sequence[str]) -> dict[str, Flight]:
        """The marks and tombstones there are, by effect."""
        return flight_rows.flights(self._connection, effects)

    @translated
    def gate_rows(self, tenant: str) -> list[GateRow]:
        """Everything stored of a tenant's gate."""
        return gates.gate_rows(self._connection, tenant)

    @translated
    def breaker_rows(
        self, tenant: str | None, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[GateRow]:
        """Breakers of a tenant or of all, by tenant and handler."""
        return gates.breaker_rows(self._connection, tenant, limit, after)

    @translated
    def gate_dues(self, partitions: Sequence[int]) -> list[GateDue]:
        """The gates of these partitions that have a due tick."""
        return gates.gate_dues(self._connection, self._here(partitions))

    @translated
    def verdict(self, arrival: str) -> tuple[bool, Verdict | None]:
        """(known, verdict) of one arrival id."""
        found = inbox.verdicts(self._connection, (arrival,))
        return arrival in found, found.get(arrival)

    @translated
    def verdicts(self, arrivals: Sequence[str]) -> dict[str, Verdict | None]:
        """The known ones of many arrival ids, with their verdicts once they are taken."""
        return inbox.verdicts(self._connection, arrivals)

    @translated
    def commit(self, commit: Commit) -> Committed:
        """Make a turn durable, or raise with nothing changed."""
        committed = commit_turn(self._connection, commit)
        self._shorten_wal()
        return committed

    # from any process

    @property
    def work(self) -> SqliteWork:
        """The work items for external workers."""
        return self._work

    @translated
    def enqueue(self, arrivals: Sequence[NewArrival], tick: int) -> list[bool]:
        """Leave arrivals (and births) in one transaction, then wake their owners."""
        left, wakes = inbox.enqueue(self._connection, arrivals, tick)
        self._waker.wake(wakes)
        self._shorten_wal()
        return left

    @translated
    def mark(self, flights: Sequence[Flight]) -> list[str]:
        """Start marks in a transaction of their own: the keys that were won."""
        won = flight_rows.mark(self._connection, flights)
        self._shorten_wal()
        return won

    @translated
    def forget(self, before_tick: int, limit: int) -> int:
        """Remove taken arrivals, tombstones and ended work items older than the tick."""
        before_ms = self._meta.epoch_ms + before_tick * self._meta.resolution_ms
        gone = inbox.forget(self._connection, before_tick, limit)
        gone += work_rows.forget(self._connection, before_ms, limit)
        return gone + flight_rows.forget(self._connection, before_tick, limit)

    # catalogue

    put_definition = _handed(catalogue.put_definition)
    definition = _handed(catalogue.definition)
    definition_by_id = _handed(catalogue.definition_by_id)
    find_definition = _handed(catalogue.find_definition)
    find_definitions = _handed(catalogue.find_definitions)
    definitions = _handed(catalogue.definitions)
    deprecate_definition = _handed(catalogue.deprecate_definition)
    set_definition_status = _handed(catalogue.set_definition_status)
    delete_definition = _handed(catalogue.delete_definition)
    setting = _handed(catalogue.setting)
    put_setting = _handed(catalogue.put_setting)

    # records

    insert_record = _handed(record_rows.insert_record)
    record = _handed(record_rows.record)
    record_by_key = _handed(record_rows.record_by_key)
    records = _handed(record_rows.records)
    count_records = _handed(record_rows.count_records)
    replace_record = _handed(record_rows.replace_record)
    replace_records = _handed(record_rows.replace_records)
    delete_record = _handed(record_rows.delete_record)
    prune_records = _handed(record_rows.prune_records)

    # views

    instance = _handed(views.instance)
    instances = _handed(views.instances)
    own_instances = _handed(own.own_instances)
    events = _handed(own_lists.events)
    event = _handed(own_lists.event)
    deliveries = _handed(own_lists.deliveries)
    recent_instances = _handed(listing.recent_instances)
    waiting_start = _handed(listing.waiting_start)
    count_states = _handed(views.count_states)
    journal = _handed(views.journal)
    journal_scan = _handed(views.journal_scan)
    feed = _handed(feed_rows.feed)
    feed_ends = _handed(feed_rows.feed_ends)
    turns = _handed(views.turns)
    seals = _handed(views.seals)
    doubts = _handed(views.doubts)
    blobs = _handed(blob_rows.blobs)
    put_blob = _handed(blob_rows.put_blob)
    check = _handed(views.check)
    statistics = _handed(views.statistics)

    # the file

    def before_commit(self, hook: Callable[[], None]) -> None:
        """Call this inside every transaction of the connection, right before its COMMIT."""

        def pass_by() -> bool:
            hook()
            return False  # the commit goes on

        self._connection.set_commit_hook(pass_by)

    @translated
    def checkpoint(self) -> None:
        """Copy the whole WAL into the file and empty it; for backups and tests."""
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    @translated
    def close(self) -> None:
        """Close the connection and free the lock; twice is as good as once."""
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        self._waker.close()
        self._connection.close()
        if self._lock is not None:
            self._lock.free()

    def _shorten_wal(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.finish()

    def _here(self, partitions: Sequence[int]) -> str:
        return readiness.within(partitions, self._meta.partitions)
