"""Fair shares: whose instance moves next among the tenants of one priority.

Deficit round robin at a cost of 1 per instance: in each round every tenant with work gets up to
`TENANT_QUANTUM` places in a row. The round of a tenant is `served // TENANT_QUANTUM`; the lowest
goes first, and of equals the one that came to have work last. Who had no work enters in the round
after the one that is under way: nothing is owed for the time before, and coming and going gains
nothing. So over any time in which two tenants both have work, neither moves more than one quantum
more than the other, and who comes waits for at most two quanta of each of the others.

`served` is all there is to undo: a place that was not used (the turn's time was over, the commit
failed) is given back by counting it down.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from detent.model.limits import TENANT_QUANTUM

if TYPE_CHECKING:
    from collections.abc import Iterable

Key = tuple[int, int, str]  # round of the queue, tick, instance

PRIORITIES = 4
_NOWHERE = -1


class Share:
    """A tenant's ready instances of one priority, and how many places it was given."""

    __slots__ = ("came", "heap", "placed", "served", "tenant")

    def __init__(self, tenant: str, served: int, came: int) -> None:
        self.tenant = tenant
        self.served = served
        self.came = came
        self.placed = _NOWHERE  # its round in the order
        self.heap: list[Key] = []


class Shares:
    """The tenants with work of one priority; none is kept that has no work."""

    __slots__ = ("_came", "_order", "_round", "tenants")

    def __init__(self) -> None:
        self.tenants: dict[str, Share] = {}
        self._order: list[tuple[int, int, str]] = []  # round, minus came, tenant; some are outdated
        self._round = 0  # of the place given last
        self._came = 0

    def of(self, tenant: str) -> Share:
        """The share of a tenant that has work from now on."""
        share = self.tenants.get(tenant)
        if share is None:
            self._came += 1
            share = Share(tenant, (self._round + 1) * TENANT_QUANTUM, self._came)
            self._enter(share)
        return share

    def next(self) -> Share:
        """The tenant whose place is next; there must be one."""
        order, tenants = self._order, self.tenants
        while True:
            round_, _, tenant = order[0]
            share = tenants.get(tenant)
            if share is not None and share.placed == round_:
                return share
            heappop(order)

    def charge(self, share: Share) -> None:
        """The tenant that is next was given one place."""
        self._round = share.served // TENANT_QUANTUM
        share.served += 1
        if share.placed == self._round and share.served % TENANT_QUANTUM == 0:
            share.placed = self._round + 1
            heapreplace(self._order, (share.placed, -share.came, share.tenant))

    def charge_only(self, share: Share, places: int) -> None:
        """The only tenant with work was given places: the same as charging it for each."""
        share.served += places
        self._round = (share.served - 1) // TENANT_QUANTUM
        if share.placed != share.served // TENANT_QUANTUM:
            share.placed = share.served // TENANT_QUANTUM
            heapreplace(self._order, (share.placed, -share.came, share.tenant))

    def leave(self, share: Share) -> None:
        """A tenant has no more work."""
        del self.tenants[share.tenant]
        share.placed = _NOWHERE

    def give_back(self, shares: Iterable[Share]) -> None:
        """Places were not used: each share stands here once per place."""
        given = list(shares)
        for share in given:
            share.served -= 1
        for share in dict.fromkeys(given):
            if self.tenants.setdefault(share.tenant, share) is not share:
                continue  # it left and came again: nothing is owed
            round_ = share.served // TENANT_QUANTUM
            self._round = min(self._round, round_)
            if share.placed != round_:
                self._enter(share)

    def _enter(self, share: Share) -> None:
        self.tenants[share.tenant] = share
        share.placed = share.served // TENANT_QUANTUM
        heappush(self._order, (share.placed, -share.came, share.tenant))
