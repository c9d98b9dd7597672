"""Who may write: partitions are taken, renewed and given up by guarded updates.

There is no lock beside the leases: a server has no way to tell that a process is gone but that it
no longer renews. The lock of a row is what makes two that want the same partition wait for each
other, for as long as a statement takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.ports.store import Owner, Partition
from detent.store.postgres.failures import Failed
from detent.store.postgres.session import GUARD
from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_COLUMNS = "p, owner, fence_epoch, lease_until, turn, tick, root"
_SELECT_PARTITIONS = f"SELECT {_COLUMNS} FROM partition ORDER BY p"
# A commit renews its partitions only, so an owner's lease is the latest of all its rows.
_SELECT_OWNERS = """
SELECT id, host, pid, greatest(lease_until, coalesce(
    (SELECT max(p.lease_until) FROM partition p WHERE p.owner = owner.id), 0)), wake
FROM owner ORDER BY id
"""
_SELECT_NEWEST_OWNER = """
SELECT o.id, o.host, o.pid FROM partition p JOIN owner o ON o.id = p.owner
ORDER BY p.lease_until DESC LIMIT 1
"""
# Calls of an owner that is gone may run on: its row tells until when it could begin any.
_REMEMBERED_MS = 60_000
_FORGET_OWNERS = """
DELETE FROM owner WHERE lease_until <= $1 AND id NOT IN (SELECT owner FROM partition)
"""
_UPSERT_OWNER = """
INSERT INTO owner(id, host, pid, lease_until, wake) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
    lease_until = excluded.lease_until, wake = excluded.wake
"""
# Rows are locked in their order, so that two who take several never wait for each other in turn.
_LOCK_PARTITIONS = "SELECT p FROM partition WHERE p = ANY($1) ORDER BY p FOR UPDATE"
_TAKE_PARTITIONS = f"""
UPDATE partition SET owner = $1, fence_epoch = fence_epoch + 1, lease_until = $2, cut = 0
WHERE p = ANY($3) AND (owner = '' OR owner = $1 OR lease_until <= $4)
RETURNING {_COLUMNS}
"""
_RENEW_PARTITIONS = Rows(
    f"""
WITH held AS (
    UPDATE partition SET lease_until = $1, tick = greatest(partition.tick, $2)
    FROM $rows WHERE partition.p = new.p AND partition.fence_epoch = new.fence_epoch
    RETURNING 1)
{GUARD.format(rows="held", count="$3")}
""",
    "p int, fence_epoch int",
)
_RENEW_OWNER = "UPDATE owner SET lease_until = $1 WHERE id = $2"
# The epoch rises here too, so that nothing of a released owner can commit any more.
_RELEASE_PARTITIONS = """
UPDATE partition SET owner = '', lease_until = 0, fence_epoch = fence_epoch + 1
WHERE owner = $1 AND ($2::bigint[] IS NULL OR p = ANY($2))
"""
_DELETE_OWNER = "DELETE FROM owner WHERE id = $1"


def acquire(
    session: Session, owner: Owner, partitions: Iterable[int], now_ms: int
) -> list[Partition]:
    """Take what is free; the lease runs until the owner's `lease_until_ms`."""
    numbers = sorted(set(partitions))
    taken = session.repeated(lambda: _take(session, owner, numbers, now_ms))
    for each in taken:
        session.cuts.pop(each.p, None)
    return taken


def _take(session: Session, owner: Owner, numbers: list[int], now_ms: int) -> list[Partition]:
    wanted = keys(numbers, "int")
    with session.transaction():
        session.write(_FORGET_OWNERS, (now_ms - _REMEMBERED_MS,))
        row = (owner.id, owner.host, owner.pid, owner.lease_until_ms, owner.wake)
        session.write(_UPSERT_OWNER, row)
        session.rows(_LOCK_PARTITIONS, (wanted,))
        guard = (owner.id, owner.lease_until_ms, wanted, now_ms)
        taken = sorted(map(Partition._make, session.write(_TAKE_PARTITIONS, guard)))
        if numbers and not taken:
            raise _owned(session)
    return taken


def renew(session: Session, owner: Owner, fences: Sequence[tuple[int, int]], tick: int) -> bool:
    """Move the lease of all named partitions, or of none when one of them is lost."""
    until = owner.lease_until_ms
    statements: list[Statement] = [(_RENEW_OWNER, [until, owner.id])]
    if fences:
        statements.insert(0, _RENEW_PARTITIONS.of(fences, until, tick, len(fences)))
    try:
        session.transact(statements)
    except Failed as failed:
        if failed.guarded:
            return False
        raise
    return True


def release(session: Session, owner: str, partitions: Sequence[int] | None = None) -> None:
    """Give up partitions of the owner; all of them with the owner itself."""
    some = None if partitions is None else keys(sorted(partitions), "int")
    statements: list[Statement] = [(_RELEASE_PARTITIONS, [owner, some])]
    if partitions is None:
        statements.append((_DELETE_OWNER, [owner]))
    session.transact(statements)


def owners(session: Session) -> list[Owner]:
    """All owners, by id."""
    return [Owner._make(row) for row in session.rows(_SELECT_OWNERS)]


def partitions(session: Session) -> list[Partition]:
    """All partitions, by number."""
    return [Partition._make(row) for row in session.rows(_SELECT_PARTITIONS)]


def _owned(session: Session) -> StoreError:
    row = session.row(_SELECT_NEWEST_OWNER)
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
