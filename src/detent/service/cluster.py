"""Nodes: the processes that own partitions of a store, and those that are to be left alone.

A node that drains goes on with what it has; it is no longer ready, so whoever shares out requests
sends it none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from detent.model.limits import LEASE_TTL_MS, LIST_MOST
from detent.ports.records import Record, RecordQuery

if TYPE_CHECKING:
    from detent.ports.store import Store

_DRAIN = "node.drain"
WAITING_COUNTED = 1_000
_TIMED = 7  # the version of an id that begins with the instant of its making


class Node(Struct, frozen=True, kw_only=True):
    """One process; instants are Unix milliseconds."""

    id: str
    host: str
    pid: int
    status: str  # active | draining | stopped
    drain: bool
    registered_ms: int | None
    last_heartbeat_ms: int


def nodes(store: Store, now_ms: int) -> list[Node]:
    """Every node that holds a lease or has let one run out, by id."""
    drained = _drained(store)
    found = []
    for owner in store.owners():
        drain = owner.id in drained
        alive = owner.lease_until_ms > now_ms
        found.append(
            Node(
                id=owner.id,
                host=owner.host,
                pid=owner.pid,
                status="stopped" if not alive else "draining" if drain else "active",
                drain=drain,
                registered_ms=_made_ms(owner.id),
                last_heartbeat_ms=max(0, min(now_ms, owner.lease_until_ms - LEASE_TTL_MS)),
            )
        )
    return found


class PartitionView(Struct, frozen=True, kw_only=True):
    """One partition: whose it is, for how long, and how far its owner is behind."""

    partition: int
    owner: str  # empty: nobody's now
    fence_epoch: int
    lease_left_ms: int  # until another process may take it; 0 when it may now
    turn: int
    waiting: int  # inputs that were left for it and are not taken yet; counted up to a limit
    late_ms: int  # how long the first instance that is due has been so


class ClusterView(Struct, frozen=True, kw_only=True):
    """Who owns what, and what waits."""

    nodes: list[Node]
    partitions: list[PartitionView]


def cluster(store: Store, now_ms: int, logical_ms: int) -> ClusterView:
    """Every process and every partition as the store has them."""
    owners = {owner.id for owner in store.owners() if owner.lease_until_ms > now_ms}
    meta = store.meta()
    views = []
    for row in store.partitions():
        here = [row.p]
        due = store.next_due(here)
        late_ms = 0 if due is None else logical_ms - (meta.epoch_ms + due * meta.resolution_ms)
        views.append(
            PartitionView(
                partition=row.p,
                owner=row.owner if row.owner in owners else "",
                fence_epoch=row.fence_epoch,
                lease_left_ms=max(0, row.lease_until_ms - now_ms) if row.owner else 0,
                turn=row.turn,
                waiting=len(store.arrivals(here, WAITING_COUNTED)),
                late_ms=max(0, late_ms),
            )
        )
    return ClusterView(nodes=nodes(store, now_ms), partitions=views)


def drain(store: Store, id: str, now_ms: int) -> bool:
    """Take a node out of use; False when there is no such node, which is as good."""
    known = {owner.id for owner in store.owners()}
    for gone in _drained(store) - known:
        store.delete_record(_DRAIN, gone)
    if id not in known:
        return False
    store.insert_record(Record(_DRAIN, id, "", b"{}", created_ms=now_ms, updated_ms=now_ms))
    return True


def draining(store: Store, host: str, pid: int) -> bool:
    """Whether the node of a process drains."""
    drained = _drained(store)
    return bool(drained) and any(
        owner.id in drained for owner in store.owners() if (owner.host, owner.pid) == (host, pid)
    )


def _drained(store: Store) -> set[str]:
    return {record.id for record in store.records(RecordQuery(_DRAIN, limit=LIST_MOST))}


def _made_ms(id: str) -> int | None:
    digits = id.partition(".")[0].replace("-", "")
    timed = len(digits) == 32 and digits[12] == str(_TIMED)  # noqa: PLR2004 - of a UUID
    return int(digits[:12], 16) if timed else None
