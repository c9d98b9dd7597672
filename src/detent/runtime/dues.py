"""What is known of the due index, so that the store is asked only for whom something is due.

A stretch of the index is the waiting instances of one tenant and priority. Two things are kept of
each: `next`, a lower bound of the due ticks beyond what was read, and `after`, how far it was read.
What was read is queued, so a stretch is read on from there, and not again while its rows wait for
their turn.

Call order: `seed` once after a take-over or an error -> each turn `fallen_due` (those whose tick
has come) and `hungry` (those with more due than was queued, of which little is left) -> `read` for
each page -> `note` for each row that a commit wrote. A turn costs the stretches that are due,
whoever else waits.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from detent.model.limits import DUE_STRETCHES, TENANT_QUANTUM
from detent.ports.due import DueQuery
from detent.runtime.shares import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.ports.due import DuePage, Stretch
    from detent.ports.store import Store

NEVER = (1 << 63) - 1
AHEAD = 4  # turns' worth of a stretch is read at once
_SPARE = 64  # outdated bounds that are not worth a clean-up
_RANKS = range(PRIORITIES - 1, -1, -1)

_Key = tuple[int, str]  # priority, tenant
_Bound = tuple[int, str, int]  # due tick, tenant, priority


class DueStretch:
    """The waiting instances of one tenant and priority, as far as they are known."""

    __slots__ = ("after", "key", "next", "open", "priority", "rank", "tenant")

    def __init__(self, tenant: str, priority: int, due: int) -> None:
        self.tenant = tenant
        self.priority = priority
        self.next = due  # nothing beyond `after` is due earlier
        self.after = (due, "")  # due tick and id of the last row that was read
        self.open = 0  # rows that are queued and have not moved yet
        self.key = (priority, tenant)
        self.rank = min(max(priority, 0), PRIORITIES - 1)  # its priority as the queue has it


class Dues:
    """All stretches of the partitions that are owned."""

    __slots__ = ("_bounds", "_full", "_known", "_stretches")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing is known any more."""
        self._known = False
        self._stretches: dict[_Key, DueStretch] = {}
        self._bounds: list[list[_Bound]] = [[] for _ in range(PRIORITIES)]  # some are outdated
        self._full: list[dict[_Key, DueStretch]] = [{} for _ in range(PRIORITIES)]

    def seed(self, stretches: Iterable[Stretch]) -> None:
        """Start from what the store says, if nothing is known."""
        if not self._known:
            self._known = True
            for stretch in stretches:
                self._place(DueStretch(stretch.tenant, stretch.priority, stretch.due))

    @property
    def known(self) -> bool:
        """Whether the stretches are known."""
        return self._known

    @property
    def next(self) -> int:
        """The earliest tick at which to look again; 0 for now."""
        if not self._known or any(self._full):
            return 0
        return min([bounds[0][0] for bounds in self._bounds if bounds], default=NEVER)

    def stretch(self, tenant: str, priority: int) -> DueStretch:
        """The stretch of a row that was written due and is queued already."""
        return self._stretches.get((priority, tenant)) or DueStretch(tenant, priority, NEVER)

    def note(self, tenant: str, priority: int, due: int, tick: int) -> None:
        """A row with this due tick was committed at `tick`; no row makes a tick be asked twice."""
        stretch = self._stretches.get((priority, tenant))
        if stretch is None:
            if not self._known:
                return
            stretch = DueStretch(tenant, priority, NEVER)
        stretch.after = min(stretch.after, (due, ""))
        look = max(due, tick + 1)
        if look < stretch.next:
            stretch.next = look
            self._place(stretch)

    def fallen_due(self, tick: int, most: int) -> list[DueStretch]:
        """Those to read whose tick has come, so many per priority, the highest first."""
        found: list[DueStretch] = []
        for rank in _RANKS:
            bounds = self._bounds[rank]
            if not bounds or bounds[0][0] > tick:
                continue
            left = min(most, DUE_STRETCHES - len(self._full[rank]))
            while left > 0 and bounds and bounds[0][0] <= tick:
                stretch = self._valid(heappop(bounds))
                if stretch is not None:
                    stretch.next = NEVER
                    found.append(stretch)
                    left -= 1
        return found

    def hungry(self, enough: int) -> list[tuple[DueStretch, int]]:
        """Those with more due of which too little is queued for a turn, and how much to read."""
        found: list[tuple[DueStretch, int]] = []
        for rank in _RANKS:
            full = self._full[rank]
            if full:
                least = enough // len(full) + TENANT_QUANTUM
                some = [stretch for stretch in full.values() if stretch.open < least]
                found += [(stretch, least * AHEAD) for stretch in some]
        return found

    def read(self, stretch: DueStretch, limit: int, page: DuePage, tick: int) -> None:
        """So much of a stretch was queued at this tick."""
        full = self._full[stretch.rank]
        if len(page.rows) >= limit:
            last = page.rows[-1]
            stretch.after = (last.due, last.id)
            full[stretch.key] = stretch
            return
        full.pop(stretch.key, None)
        stretch.after = (tick + 1, "")
        self._move(stretch, page.next)

    def earliest(self, store: Store, owned: list[int], tick: int) -> int | None:
        """When something is due next: exactly if it is later than now, for who moves the time."""
        if not self._known or any(self._full):
            return tick
        while True:
            stretch = self._first()
            if stretch is None or stretch.next <= tick:
                return None if stretch is None else stretch.next
            seen = stretch.next
            query = DueQuery(stretch.tenant, stretch.priority, stretch.after, 1)
            (page,) = store.due(owned, tick, [query])
            if page.rows or page.next == seen:
                return seen
            self._move(stretch, page.next)

    def _first(self) -> DueStretch | None:
        """The stretch with the lowest bound."""
        for bounds in self._bounds:
            while bounds and self._valid(bounds[0]) is None:
                heappop(bounds)
        lowest = min((bounds[0] for bounds in self._bounds if bounds), default=None)
        return None if lowest is None else self._valid(lowest)

    def _valid(self, bound: _Bound) -> DueStretch | None:
        due, tenant, priority = bound
        stretch = self._stretches.get((priority, tenant))
        return stretch if stretch is not None and stretch.next == due else None

    def _move(self, stretch: DueStretch, due: int | None) -> None:
        """The bound of a stretch is known anew; one without waiting instances is forgotten."""
        if due is None:
            self._stretches.pop(stretch.key, None)
        else:
            stretch.next = due
            self._place(stretch)

    def _place(self, stretch: DueStretch) -> None:
        self._stretches[stretch.key] = stretch
        bounds = self._bounds[stretch.rank]
        heappush(bounds, (stretch.next, stretch.tenant, stretch.priority))
        if len(bounds) > 2 * len(self._stretches) + _SPARE:
            bounds[:] = [
                (each.next, each.tenant, each.priority)
                for each in self._stretches.values()
                if each.rank == stretch.rank and each.next != NEVER
            ]
            heapify(bounds)
