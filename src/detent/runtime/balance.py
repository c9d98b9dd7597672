"""Balance: which partitions a process takes or gives up, from what the store says of everybody.

Every process reckons for itself and nobody is asked. Those whose lease is valid share the
partitions equally; the oldest (by id) have one more where the shares are not even. Whoever has more
than its share gives the rest up, whoever has less takes what is free: given up, or of a process
whose lease is over. Two who want the same are told apart by the row, and look again.

A process that was given a fixed range is pinned: it takes that range, gives nothing up, and what it
holds is not shared out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from detent.ports.store import Owner, Partition

PINNED = ".pinned"  # how the id of an owner ends that takes no part in sharing


class Moves(NamedTuple):
    """What a process is to take and to give up now; one of them is empty."""

    take: list[int]
    give: list[int]


def share_out(
    me: str, held: Sequence[int], rows: Sequence[Partition], owners: Sequence[Owner], now_ms: int
) -> Moves:
    """The moves of a process that shares."""
    living = {owner.id for owner in owners if owner.lease_until_ms > now_ms} | {me}
    sharers = sorted(id for id in living if not id.endswith(PINNED))
    pool = [row for row in rows if row.owner not in living or row.owner in sharers]
    least, more = divmod(len(pool), len(sharers))
    share = least + (sharers.index(me) < more)
    if len(held) > share:
        return Moves([], list(held[share:]))
    return Moves(free_of(pool, held, now_ms)[: share - len(held)], [])


def free_of(rows: Sequence[Partition], held: Collection[int], now_ms: int) -> list[int]:
    """The partitions that can be had, but for those that are held."""
    return [
        row.p
        for row in rows
        if row.p not in held and (not row.owner or row.lease_until_ms <= now_ms)
    ]
