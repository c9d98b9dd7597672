"""Holdings: what follows when a writer gets partitions, gives some up, or finds that it lost some.

Whatever is in memory of a partition is worth nothing once it changed hands: it is read anew. Inputs
that were taken in for one that is gone are left for its new owner when their turn comes (`load`);
the dispatcher drops the calls that were not begun.

A change that is broken off in the middle by the store leaves `lost` set, so that the next turn
starts over with everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.runtime.marks import first_dispatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.runtime.parts import Parts


def take_over(parts: Parts) -> None:
    """Acquire partitions, and start from what the store says of them."""
    lease = parts.lease
    held = list(lease.heads)
    gained = lease.acquire()
    parts.out.dropped += [p for p in held if p not in lease.resumed]
    _settle_in(parts, gained)


def look_around(parts: Parts) -> None:
    """Give up what is too much, or take what is free and due to us."""
    lease = parts.lease
    moves = lease.look()
    if moves.give:
        lease.give(moves.give)
        leave(parts, moves.give)
    elif moves.take and not parts.closing:
        gained = lease.take(moves.take)
        if gained:
            _settle_in(parts, gained)


def step_down(parts: Parts) -> bool:
    """Drop the partitions that others have taken; True when the rest can go on."""
    gone = parts.lease.reread()
    if gone:
        leave(parts, gone)
    return bool(gone) and can_go_on(parts)


def can_go_on(parts: Parts) -> bool:
    """Whether there is a reason to take turns."""
    return bool(parts.lease.heads) or parts.lease.shared


def leave(parts: Parts, gone: Sequence[int]) -> None:
    """Forget partitions that are not ours any more; the lease has dropped them already."""
    parts.out.dropped += gone
    parts.out.news = True
    parts.lost = True
    parts.recovery.leave(gone, parts.meta.partitions)
    if not parts.lease.heads:
        parts.inbox.refused = []  # their rows are still there, for whoever takes them
    _read_anew(parts)


def _settle_in(parts: Parts, gained: Sequence[int]) -> None:
    lease = parts.lease
    parts.lost = True
    parts.clock.resume(lease.tick)
    epoch = max((lease.heads[p].fence_epoch for p in gained), default=0)
    parts.marks.start_at(first_dispatch(lease.tick, epoch))
    foreign = lease.foreign_until_ms
    wait = foreign + parts.settings.lease_margin_ms if foreign else 0
    if not parts.settings.errand and gained:
        parts.recovery.begin(gained, full=True, not_before_ms=wait)
    parts.inbox.look_now = True
    parts.out.news = True
    _read_anew(parts)


def _read_anew(parts: Parts) -> None:
    parts.cache.clear()
    parts.dues.reset()
    parts.seals.forget()
    parts.gates.take_over()
    parts.lost = False  # last: see above
