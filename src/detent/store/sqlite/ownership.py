"""Who may write: partitions are taken, renewed and given up by guarded updates.

The OS lock comes first. It makes one process the only possible owner of the file, so getting it
voids every lease in it; while it is held here, leases between owners of this process count. A lock
that was adopted is held by one engine for all its writers: only leases of others are void.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.errors import StoreError
from detent.ports.store import Owner, Partition
from detent.store.sqlite.statements import (
    ManyRows,
    change,
    row_of,
    rows_of,
    transaction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import apsw

    from detent.store.sqlite.lock import StoreLock

_PARTITION_COLUMNS = "p, owner, fence_epoch, lease_until, turn, tick, root"
_SELECT_PARTITIONS = f"SELECT {_PARTITION_COLUMNS} FROM partition ORDER BY p"
# A commit renews its partitions only, so an owner's lease is the latest of all its rows.
_SELECT_OWNERS = """
SELECT id, host, pid, max(lease_until, coalesce(
    (SELECT max(lease_until) FROM partition WHERE owner = owner.id), 0)), wake
FROM owner ORDER BY id
"""
_SELECT_NEWEST_OWNER = """
SELECT o.id, o.host, o.pid FROM partition p JOIN owner o ON o.id = p.owner
ORDER BY p.lease_until DESC LIMIT 1
"""
_VOID_OWNERS = "DELETE FROM owner WHERE id IN (SELECT owner FROM partition) AND id <> ?"
_VOID_PARTITIONS = """
UPDATE partition SET owner = '', lease_until = 0 WHERE owner <> '' AND owner <> ?
"""
# Calls of an owner that is gone may run on: its row tells until when it could begin any.
_REMEMBERED_MS = 60_000
_FORGET_OWNERS = """
DELETE FROM owner WHERE lease_until <= ? AND id NOT IN (SELECT owner FROM partition)
"""
_UPSERT_OWNER = """
INSERT INTO owner(id, host, pid, lease_until, wake) VALUES (?, ?, ?, ?, ?)
ON CONFLICT(id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
    lease_until = excluded.lease_until, wake = excluded.wake
"""
_TAKE_PARTITION = f"""
UPDATE partition SET owner = ?, fence_epoch = fence_epoch + 1, lease_until = ?
WHERE p = ? AND (owner = '' OR owner = ? OR lease_until <= ?)
RETURNING {_PARTITION_COLUMNS}
"""
_RENEW_PARTITIONS = ManyRows(
    "WITH held(p, fence_epoch, lease_until, tick) AS (VALUES",
    "(?, ?, ?, ?)",
    """) UPDATE partition SET lease_until = held.lease_until, tick = max(partition.tick, held.tick)
    FROM held WHERE partition.p = held.p AND partition.fence_epoch = held.fence_epoch""",
)
_RENEW_OWNER = "UPDATE owner SET lease_until = ? WHERE id = ?"
# The epoch rises here too, so that nothing of a released owner can commit any more.
_RELEASE_PARTITIONS = """
UPDATE partition SET owner = '', lease_until = 0, fence_epoch = fence_epoch + 1 WHERE owner = ?
"""
_RELEASE_PARTITION = _RELEASE_PARTITIONS.rstrip() + " AND p = ?"
_DELETE_OWNER = "DELETE FROM owner WHERE id = ?"
_COUNT_OWNED = "SELECT count(*) FROM partition WHERE owner <> ''"


class _Lost(Exception):
    """A guarded update found fewer rows than it named."""


def acquire(
    connection: apsw.Connection,
    lock: StoreLock | None,
    owner: Owner,
    partitions: Iterable[int],
    now_ms: int,
) -> list[Partition]:
    """Take what is free; the lease runs until the owner's `lease_until_ms`."""
    wanted = list(partitions)
    if lock is not None and lock.adopted:
        return _take(connection, owner, wanted, now_ms, spared=owner.id)
    if lock is None or lock.held:
        return _take(connection, owner, wanted, now_ms)
    hold(connection, lock)
    try:
        return _take(connection, owner, wanted, now_ms, spared="")
    except BaseException:
        lock.free()
        raise


def hold(connection: apsw.Connection, lock: StoreLock) -> None:
    """Take the OS lock, or raise who has it."""
    if not _take_lock(lock):
        raise _owned(connection)


def renew(
    connection: apsw.Connection, owner: Owner, fences: Sequence[tuple[int, int]], tick: int
) -> bool:
    """Move the lease of all named partitions, or of none when one of them is lost."""
    flat: list[Any] = []
    for p, fence_epoch in fences:
        flat += (p, fence_epoch, owner.lease_until_ms, tick)
    try:
        with transaction(connection):
            _renew_rows(connection, flat, len(fences))
            connection.execute(_RENEW_OWNER, (owner.lease_until_ms, owner.id))
    except _Lost:
        return False
    return True


def release_some(connection: apsw.Connection, owner: str, partitions: Sequence[int]) -> None:
    """Give up some partitions of the owner, which stays known and keeps the lock."""
    with transaction(connection):
        for p in partitions:
            change(connection, _RELEASE_PARTITION, (owner, p))


def release(connection: apsw.Connection, lock: StoreLock | None, owner: str) -> None:
    """Give up every partition of the owner, and the lock when nobody here owns any."""
    with transaction(connection):
        change(connection, _RELEASE_PARTITIONS, (owner,))
        change(connection, _DELETE_OWNER, (owner,))
        left = row_of(connection, _COUNT_OWNED)[0]
    if lock is not None and not left:
        lock.free()


def owners(connection: apsw.Connection) -> list[Owner]:
    """All owners, by id."""
    return [Owner._make(row) for row in rows_of(connection, _SELECT_OWNERS)]


def partitions(connection: apsw.Connection) -> list[Partition]:
    """All partitions, by number."""
    return [Partition._make(row) for row in rows_of(connection, _SELECT_PARTITIONS)]


def _renew_rows(connection: apsw.Connection, flat: list[Any], wanted: int) -> None:
    if _RENEW_PARTITIONS.run(connection, flat) != wanted:
        raise _Lost


def _take(
    connection: apsw.Connection,
    owner: Owner,
    wanted: list[int],
    now_ms: int,
    *,
    spared: str | None = None,
) -> list[Partition]:
    """`spared`: leases are void but for those of this owner; None when all of them count."""
    taken: list[Partition] = []
    with transaction(connection):
        if spared is not None:
            change(connection, _VOID_OWNERS, (spared,))
            change(connection, _VOID_PARTITIONS, (spared,))
        change(connection, _FORGET_OWNERS, (now_ms - _REMEMBERED_MS,))
        values = (owner.id, owner.host, owner.pid, owner.lease_until_ms, owner.wake)
        change(connection, _UPSERT_OWNER, values)
        for p in sorted(wanted):
            guard = (owner.id, owner.lease_until_ms, p, owner.id, now_ms)
            taken += map(Partition._make, rows_of(connection, _TAKE_PARTITION, guard))
        if wanted and not taken:
            raise _owned(connection)
    return taken


def _take_lock(lock: StoreLock) -> bool:
    try:
        return lock.take()
    except OSError as error:
        raise StoreError(
            "store.unavailable", f"the lock file of the store cannot be used ({error})"
        ) from error


def _owned(connection: apsw.Connection) -> StoreError:
    row = row_of(connection, _SELECT_NEWEST_OWNER)
    if row is None:
        return StoreError("store.owned", "another process is taking this store; try again")
    owner, host, pid = row
    return StoreError(
        "store.owned",
        f"process {pid} on {host} owns this store; stop it, or send to it with a Visitor",
        owner=owner,
        host=host,
        pid=pid,
    )
