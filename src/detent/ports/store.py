"""The store port: what a database must offer, in call order, and the rows that cross it.

A writer opens the store, acquires partitions (`acquire`), reads for whom something is due when
(`stretches`), then repeats: `arrivals`, `due`, `load`, `commit`. `commit` is one transaction whose
first statement is the fence: a guarded UPDATE of each touched partition row; a row count that is
too small means another writer took over, everything is rolled back and `store.fenced` is raised.
Other processes only `enqueue`, read, and write catalogue rows. All values are encoded before the
transaction begins.

Integers are ticks unless the name says ms. Bytes are stored and returned unchanged: the chain
hashes them. One suite, tests/conformance, holds for every adapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from detent.model.decision import Birth, Doubt, Verdict, WorkItem
from detent.ports.blobs import BlobStore
from detent.ports.definitions import DefinitionStore
from detent.ports.due import DuePage, DueQuery, Stretch
from detent.ports.feed import FeedPage, FeedQuery
from detent.ports.listing import ListQuery
from detent.ports.own import DeliveryRow, EventRow, OwnStore
from detent.ports.records import RecordStore
from detent.ports.work import WorkStore


class Meta(NamedTuple):
    """What is fixed in a store when it is created."""

    schema: int
    store_id: str
    epoch_ms: int
    resolution_ms: int
    clock: str  # wall | stepped | virtual
    partitions: int


class Partition(NamedTuple):
    """Head of one partition: fence, lease and chain."""

    p: int
    owner: str
    fence_epoch: int
    lease_until_ms: int
    turn: int
    tick: int
    root: bytes


class Owner(NamedTuple):
    """A process that owns partitions."""

    id: str
    host: str
    pid: int
    lease_until_ms: int
    wake: str  # where a datagram wakes it, "host:port" or ""


class Loaded(NamedTuple):
    """An instance as the writer needs it; body is None while its version is 0."""

    n: int
    id: str
    p: int
    tenant: str
    salt: bytes
    state: str
    due: int | None
    busy: bool
    priority: int
    definition: str
    version: int
    body: bytes | None
    head: bytes


class Arrival(NamedTuple):
    """An input left by somebody else; those for one instance are taken in the order of `n`."""

    n: int
    id: str
    p: int
    instance: str
    body: bytes
    tenant: str = ""  # of the instance; empty where there is none


class NewArrival(NamedTuple):
    """An input to leave; with `birth` the row of a new instance (version 0) goes with it."""

    id: str
    p: int
    instance: str
    body: bytes
    birth: Birth | None = None
    salt: bytes = b""


class Flight(NamedTuple):
    """A start mark, or a tombstone when the dispatcher is empty."""

    effect: str
    dispatcher: str
    dispatch: int
    since: int


class InstanceChange(Struct, frozen=True, gc=False):
    """One instance-turn to commit; `birth` is set, and n is -1, when there is no row yet."""

    n: int
    id: str
    p: int
    birth: Birth | None
    salt: bytes
    row_changed: bool  # another listed column than `updated` differs from what is stored
    state: str
    priority: int
    due: int | None
    busy: bool
    definition: str
    version: int
    snapshot: bytes
    snapshot_digest: bytes
    tick: int
    digest: bytes
    body: bytes
    head: bytes
    moved: str | None = None  # the tenant, when the row tells of a change of state


class PartitionTurn(NamedTuple):
    """The fence and the turn row of one touched partition."""

    p: int
    fence_epoch: int
    turn: int  # the number expected in the store; the commit writes turn + 1
    root: bytes
    heads: bytes  # concatenated, in turn order


class Seal(NamedTuple):
    """A digest over the roots of all partitions."""

    n: int
    tick: int
    roots: bytes
    digest: bytes
    signature: bytes


class GateRow(NamedTuple):
    """One number or ticket of a tenant's gate; without a body the row is removed."""

    tenant: str
    kind: str
    key: str
    at: int
    body: bytes | None


class GateDue(NamedTuple):
    """When a tenant's gate must be looked at next; None while nothing frees by itself."""

    tenant: str
    p: int
    due: int | None


class Commit(NamedTuple):
    """One turn: everything in it becomes durable together or not at all."""

    tick: int
    wall_ms: int
    lease_until_ms: int
    partitions: Sequence[PartitionTurn]
    changes: Sequence[InstanceChange] = ()
    arrivals: Sequence[NewArrival] = ()  # messages to other instances
    taken: Sequence[
        tuple[str, Verdict | None]
    ] = ()  # arrival ids taken, or in-process ids to remember
    marks: Sequence[Flight] = ()  # start marks: insert or nothing
    tombstones: Sequence[str] = ()  # withdrawals: insert, or conflict with a start mark
    settled: Sequence[str] = ()  # flight rows to remove
    doubts: Sequence[tuple[str, Doubt]] = ()  # (instance id, row)
    blobs: Sequence[tuple[str, str, bytes]] = ()  # (instance id, digest, body)
    seal: Seal | None = None
    dues: Sequence[
        tuple[int, int | None]
    ] = ()  # (n, due): rows that woke for nothing; no journal row
    gate_rows: Sequence[GateRow] = ()
    gate_dues: Sequence[GateDue] = ()
    work: Sequence[WorkItem] = ()
    called_off: Sequence[str] = ()  # ids of work items to cancel, unless they have ended
    events: Sequence[EventRow] = ()
    deliveries: Sequence[DeliveryRow] = ()


class Committed(NamedTuple):
    """What the database decided: numbers given to new rows, marks won."""

    numbers: dict[str, int]  # instance id -> n, for births
    marked: Sequence[str]  # effect keys whose start mark was written
    born: Sequence[str] = ()  # ids of `arrivals` births whose row was new; others existed already


class JournalRow(NamedTuple):
    """One instance-turn as stored; body is None once erased."""

    pos: int
    inst: int
    seq: int
    turn: int
    tick: int
    snapshot_digest: bytes
    digest: bytes
    body: bytes | None
    head: bytes


class TurnRow(NamedTuple):
    """One partition-turn as stored."""

    p: int
    n: int
    tick: int
    wall_ms: int
    heads: bytes
    root: bytes


class InstanceRow(NamedTuple):
    """The listed columns of an instance."""

    n: int
    id: str
    p: int
    tenant: str
    namespace: str
    definition: str
    state: str
    priority: int
    due: int | None
    busy: bool
    key: str | None
    parent: str | None
    created: int
    updated: int
    salt: bytes


class DoubtRow(NamedTuple):
    """An effect that needs reconciliation or a person."""

    effect: str
    instance: str
    tenant: str
    state: str
    next_try: int | None
    since: int
    reason: str


class Page(NamedTuple):
    """A filter over instances; empty fields do not filter. `after` is the last n seen."""

    tenant: str = ""
    namespace: str = ""
    definition: str = ""
    states: tuple[str, ...] = ()
    parent: str = ""
    after: int = 0
    limit: int = 100
    without: str = ""  # a namespace that is left out


class Store(DefinitionStore, RecordStore, BlobStore, OwnStore, Protocol):
    """One open connection to a store, used by one thread."""

    # opening and owning
    def meta(self) -> Meta: ...
    def acquire(
        self, owner: Owner, partitions: Iterable[int], now_ms: int, lease_until_ms: int
    ) -> list[Partition]:
        """Take partitions whose lease is free or over (epoch + 1); `store.owned` if none is.

        Without any partition the owner is only made known, so that others leave it its share.
        """

    def renew(self, owner: Owner, fences: Sequence[tuple[int, int]], tick: int) -> bool:
        """Idle renewal by the guarded UPDATE without turn + 1; (p, fence_epoch) pairs."""

    def release(self, owner: str, partitions: Sequence[int] | None = None) -> None:
        """Give up partitions of the owner: lease 0; None for all, after which it is forgotten."""

    def owners(self) -> list[Owner]: ...
    def partitions(self) -> list[Partition]: ...

    # the turn
    def arrivals(self, partitions: Sequence[int], limit: int, after: str = "") -> list[Arrival]:
        """What waits to be taken, of each tenant in the order of `n`; fewer than `limit` is all.

        Tenants that have some share the limit equally, from the one after `after` on and round.
        """

    def stretches(self, partitions: Sequence[int]) -> list[Stretch]:
        """Every stretch, by tenant and priority; costs these, not the instances that wait."""

    def due(
        self, partitions: Sequence[int], tick: int, queries: Sequence[DueQuery]
    ) -> list[DuePage]:
        """What is due at a tick, a page per query; costs what it returns, whoever else waits."""

    def next_due(self, partitions: Sequence[int]) -> int | None:
        """The earliest due tick of all stretches."""

    def any_due(self, partitions: Sequence[int]) -> bool:
        """Whether a user's instance has a due tick; the engine's own go on for ever."""

    def busy(self, partitions: Sequence[int], after: int, limit: int) -> list[int]:
        """Numbers of instances with open effects, for recovery, by n."""

    def load(self, ids: Sequence[str]) -> dict[str, Loaded]: ...
    def load_numbers(self, numbers: Sequence[int]) -> list[Loaded]: ...
    def flights(self, effects: Sequence[str]) -> dict[str, Flight]: ...
    def verdict(self, arrival: str) -> tuple[bool, Verdict | None]:
        """(known, verdict): known ids have been left before; the verdict is None until taken."""

    def verdicts(self, arrivals: Sequence[str]) -> dict[str, Verdict | None]: ...
    def commit(self, commit: Commit) -> Committed:
        """Make a turn durable, or raise with nothing changed and the connection usable.

        `store.fenced` (details: partitions): another writer took over, or this very commit is in
        the store already. `store.conflict`: this contradicts what is stored (details: reason
        version | birth and instances, or reason flight and the effects whose start mark was there
        before the tombstone). `store.refused`: a row that cannot be stored, not known which; halve.
        `store.full`, `store.corrupt`, `store.unavailable`: the operator must act.
        """

    def gate_rows(self, tenant: str) -> list[GateRow]:
        """Everything stored of a tenant's gate."""

    def breaker_rows(
        self, tenant: str | None, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[GateRow]:
        """Breakers of a tenant or of all, by tenant and handler, from after these two on."""

    def gate_dues(self, partitions: Sequence[int]) -> list[GateDue]:
        """The gates of these partitions that have a due tick, by tenant."""

    # from any process
    @property
    def work(self) -> WorkStore: ...
    def enqueue(self, arrivals: Sequence[NewArrival], tick: int) -> list[bool]:
        """Leave arrivals (and births) in one transaction; False where the id was there already."""

    def mark(self, flights: Sequence[Flight]) -> list[str]:
        """Start marks from a dispatcher outside the writer: the keys that were won."""

    def forget(self, before_tick: int, limit: int) -> int:
        """Remove taken arrivals, tombstones and ended work items older than the tick."""

    # catalogue, beside definitions and records
    def setting(self, name: str) -> str | None: ...
    def put_setting(self, name: str, value: str) -> None: ...

    # views
    def instance(self, id: str) -> InstanceRow | None: ...
    def instances(self, page: Page) -> list[InstanceRow]: ...
    def recent_instances(self, query: ListQuery) -> list[InstanceRow]:
        """The newest instances that pass a filter."""

    def waiting_start(self, instance: str) -> bytes | None:
        """The start of an instance that no writer has taken in yet."""

    def count_states(self, tenant: str) -> dict[str, int]:
        """How many instances are in which state, but for the engine's own."""

    def journal(self, n: int, after_seq: int, limit: int) -> list[JournalRow]: ...
    def feed(self, query: FeedQuery) -> FeedPage:
        """Rows in which instances of a tenant moved; costs what it reads, whoever else moved."""

    def feed_ends(self) -> dict[str, int]:
        """Every lane of the feed, with its newest position."""

    def journal_scan(self, after_pos: int, limit: int) -> list[JournalRow]: ...
    def turns(self, p: int, after: int, limit: int) -> list[TurnRow]: ...
    def seals(self, after: int, limit: int) -> list[Seal]: ...
    def doubts(self, tenant: str, instance: str, limit: int) -> list[DoubtRow]: ...
    def check(self) -> list[str]:
        """Problems the database itself can see (integrity check); empty when there are none."""

    def statistics(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
