"""The store port on one PostgreSQL connection: each method hands over to its subject's module."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from detent.store.postgres import blobs as blob_rows
from detent.store.postgres import (
    catalogue,
    gates,
    inbox,
    listing,
    own_lists,
    ownership,
    readiness,
    views,
    work_rows,
)
from detent.store.postgres import feed as feed_rows
from detent.store.postgres import flights as flight_rows
from detent.store.postgres import records as record_rows
from detent.store.postgres.commit import commit_turn
from detent.store.postgres.failures import translated
from detent.store.postgres.session import Session
from detent.store.postgres.waking import Waker
from detent.store.postgres.work import PostgresWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from detent.model.decision import Verdict
    from detent.ports.due import DuePage, DueQuery, Stretch
    from detent.ports.feed import FeedPage, FeedQuery
    from detent.ports.store import (
        Arrival,
        Commit,
        Committed,
        GateDue,
        GateRow,
        Meta,
        NewArrival,
        Owner,
        Partition,
    )


P = ParamSpec("P")
R = TypeVar("R")


def _handed(
    function: Callable[Concatenate[Session, P], R],
) -> Callable[Concatenate[PostgresStore, P], R]:
    """The method that hands its arguments over to a function of a session."""

    @translated
    @wraps(function)
    def call(self: PostgresStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self._session, *args, **kwargs)

    return call


class PostgresStore:
    """One open connection to a store, used by one thread."""

    __slots__ = ("_meta", "_owned", "_session", "_waker", "_work")

    def __init__(self, session: Session, meta: Meta) -> None:
        self._session = session
        self._meta = meta
        self._owned: frozenset[int] = frozenset()  # taken here: nobody else need be woken
        self._waker = Waker(meta.store_id)
        self._work = PostgresWork(session, self._waker)

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
        taken = ownership.acquire(self._session, owner, partitions, now_ms)
        self._owned |= frozenset(row.p for row in taken)
        return taken

    def hold_lock(self) -> None:
        """A server has no lock that ends with its holder; leases alone count."""

    @translated
    def release(self, owner: str, partitions: Sequence[int] | None = None) -> None:
        """Give up partitions of the owner, or all of them."""
        ownership.release(self._session, owner, partitions)
        self._owned = self._owned.difference(self._owned if partitions is None else partitions)

    @translated
    def renew(self, owner: Owner, fences: Sequence[tuple[int, int]], tick: int) -> bool:
        """Move the lease of all named partitions, or of none when one of them is lost."""
        self._owned = frozenset(p for p, _ in fences)
        return ownership.renew(self._session, owner, fences, tick)

    owners = _handed(ownership.owners)
    partitions = _handed(ownership.partitions)

    # the turn

    @translated
    def arrivals(self, partitions: Sequence[int], limit: int, after: str = "") -> list[Arrival]:
        """What waits to be taken, shared between the tenants, of each in its order."""
        return inbox.arrivals(self._session, self._here(partitions), limit, after)

    @translated
    def stretches(self, partitions: Sequence[int]) -> list[Stretch]:
        """Every stretch with its earliest due tick, by tenant and priority."""
        return readiness.stretches(self._session, self._here(partitions))

    @translated
    def due(
        self, partitions: Sequence[int], tick: int, queries: Sequence[DueQuery]
    ) -> list[DuePage]:
        """What is due of each stretch asked for, by due tick and id."""
        return readiness.due(self._session, self._here(partitions), tick, queries)

    @translated
    def next_due(self, partitions: Sequence[int]) -> int | None:
        """The earliest due tick of all waiting instances."""
        return min((stretch.due for stretch in self.stretches(partitions)), default=None)

    @translated
    def any_due(self, partitions: Sequence[int]) -> bool:
        """Whether a user's instance has a due tick."""
        return readiness.any_due(self._session, self._here(partitions))

    @translated
    def busy(self, partitions: Sequence[int], after: int, limit: int) -> list[int]:
        """Numbers of instances with open effects, by n."""
        return readiness.busy(self._session, self._here(partitions), after, limit)

    load = _handed(readiness.load)
    load_numbers = _handed(readiness.load_numbers)
    flights = _handed(flight_rows.flights)
    gate_rows = _handed(gates.gate_rows)

    @translated
    def breaker_rows(
        self, tenant: str | None, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[GateRow]:
        """Breakers of a tenant or of all, by tenant and handler."""
        return gates.breaker_rows(self._session, tenant, limit, after)

    @translated
    def gate_dues(self, partitions: Sequence[int]) -> list[GateDue]:
        """The gates of these partitions that have a due tick."""
        return gates.gate_dues(self._session, self._here(partitions))

    @translated
    def verdict(self, arrival: str) -> tuple[bool, Verdict | None]:
        """(known, verdict) of one arrival id."""
        found = inbox.verdicts(self._session, (arrival,))
        return arrival in found, found.get(arrival)

    verdicts = _handed(inbox.verdicts)

    @translated
    def commit(self, commit: Commit) -> Committed:
        """Make a turn durable, or raise with nothing changed."""
        own = self._owned
        wakes = self._waker.arrivals([each.p for each in commit.arrivals if each.p not in own])
        wakes += self._waker.work([(item.handler, item.queue, item.tenant) for item in commit.work])
        return commit_turn(self._session, commit, wakes)

    # from any process

    @property
    def work(self) -> PostgresWork:
        """The work items for external workers."""
        return self._work

    @translated
    def enqueue(self, arrivals: Sequence[NewArrival], tick: int) -> list[bool]:
        """Leave arrivals (and births) in one transaction, then wake their owners."""
        wakes = self._waker.arrivals([arrival.p for arrival in arrivals])
        return inbox.enqueue(self._session, arrivals, tick, wakes)

    mark = _handed(flight_rows.mark)

    @translated
    def forget(self, before_tick: int, limit: int) -> int:
        """Remove taken arrivals, tombstones and ended work items older than the tick."""
        before_ms = self._meta.epoch_ms + before_tick * self._meta.resolution_ms
        gone = inbox.forget(self._session, before_tick, limit)
        gone += work_rows.forget(self._session, before_ms, limit)
        return gone + flight_rows.forget(self._session, before_tick, limit)

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
    own_instances = _handed(listing.own_instances)
    events = _handed(own_lists.events)
    event = _handed(own_lists.event)
    deliveries = _handed(own_lists.deliveries)
    recent_instances = _handed(listing.recent_instances)
    waiting_start = _handed(listing.waiting_start)
    count_states = _handed(views.count_states)
    journal = _handed(views.journal)
    journal_scan = _handed(views.journal_scan)
    feed_ends = _handed(feed_rows.feed_ends)
    turns = _handed(views.turns)
    seals = _handed(views.seals)
    doubts = _handed(views.doubts)
    blobs = _handed(blob_rows.blobs)
    put_blob = _handed(blob_rows.put_blob)
    check = _handed(views.check)
    statistics = _handed(views.statistics)

    @translated
    def feed(self, query: FeedQuery) -> FeedPage:
        """Rows in which instances of a tenant moved."""
        return feed_rows.feed(self._session, query, self._meta.partitions)

    # the connection

    def before_commit(self, hook: Callable[[], None]) -> None:
        """Call this inside every transaction of the connection, right before its COMMIT."""
        self._session.before_commit(hook)

    def close(self) -> None:
        """Close the connection; twice is as good as once."""
        self._session.close()

    def _here(self, partitions: Sequence[int]) -> readiness.Here:
        return readiness.within(partitions, self._meta.partitions)
