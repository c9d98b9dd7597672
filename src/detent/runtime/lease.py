"""The partitions a writer owns: fence, lease and chain head of each.

Commits renew the lease of the partitions they touch; a plain renewal of all of them goes out when
less than two thirds of the time to live is left, whatever the commits did, since a busy writer may
leave some partitions untouched for long.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from detent.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.ports.store import Meta, Owner, Partition, Store
    from detent.runtime.clock import TurnClock
    from detent.runtime.settings import WriterSettings


class Head:
    """What the next commit of a partition must find, and builds on."""

    __slots__ = ("fence_epoch", "p", "root", "turn")

    def __init__(self, row: Partition) -> None:
        self.p = row.p
        self.fence_epoch = row.fence_epoch
        self.turn = row.turn
        self.root = row.root


class Lease:
    """The partitions held by this process."""

    __slots__ = (
        "_clock",
        "_opened",
        "_renew_at",
        "_settings",
        "_store",
        "_wanted",
        "clean",
        "foreign_until_ms",
        "heads",
        "owned",
        "owner",
        "resumed",
        "resuming",
        "successor",
        "tick",
        "until_ms",
    )

    def __init__(
        self, store: Store, clock: TurnClock, settings: WriterSettings, owner: Owner, meta: Meta
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._wanted = settings.partitions or tuple(range(meta.partitions))
        self._renew_at = 0
        self.owner = owner
        self.heads: dict[int, Head] = {}
        self.owned: list[int] = []
        self.tick = 0  # the last tick this store was written at
        self.until_ms = 0
        self.clean = False  # the former owner closed: what it did not call, nobody called
        self.foreign_until_ms = 0  # until then calls of a former owner may still be running
        self.successor = False  # a writer of the same engine was here before; its calls go on
        self.resuming = False  # our dispatcher may have orders from before the last acquisition
        self.resumed: frozenset[int] = frozenset()  # partitions that were ours all the while
        self._opened = False

    def acquire(self) -> None:
        """Take every wanted partition that can be had; `store.owned` if there is none."""
        before = {row.p: row for row in self._store.partitions()}
        now = self._clock.wall_ms()
        until = self._extend(now)
        rows = self._store.acquire(self.owner, self._wanted, now, until)
        alive = {owner.id for owner in self._store.owners()} - {self.owner.id}
        former = [before[row.p] for row in rows if row.p in before]
        self.foreign_until_ms = max(
            (row.lease_until_ms for row in former if row.owner in alive), default=0
        )
        self.clean = all(row.owner == "" for row in former)
        self.resuming = self.successor or self._opened
        ours = [row.p for row in former if self.resuming and row.owner == self.owner.id]
        self.resumed = frozenset(ours)
        self._opened = True
        self._adopt(rows)
        self.until_ms = until

    def renewal_due(self) -> bool:
        """Whether less than two thirds of the lease is left."""
        return self._clock.elapsed_ms() >= self._renew_at

    def renew(self, tick: int) -> bool:
        """Renew all partitions; False when one of them was taken over."""
        until = self._extend(self._clock.wall_ms())
        fences = [(head.p, head.fence_epoch) for head in self.heads.values()]
        if not self._store.renew(self.owner, fences, tick):
            return False
        self.until_ms = until
        self.tick = max(self.tick, tick)
        return True

    def keep_tick(self, tick: int) -> None:
        """Write down how far time has gone, if no turn did."""
        if tick > self.tick and self.heads:
            with suppress(StoreError):
                self.renew(tick)

    def seconds_to_renewal(self) -> float:
        """How long until the lease must be renewed."""
        return max(0, self._renew_at - self._clock.elapsed_ms()) / 1000

    def reread(self) -> bool:
        """Read the heads again after an error; False when a partition is not ours any more."""
        rows = [row for row in self._store.partitions() if row.p in self.heads]
        ours = all(
            row.owner == self.owner.id and row.fence_epoch == self.heads[row.p].fence_epoch
            for row in rows
        )
        if ours and len(rows) == len(self.heads):
            self._adopt(rows)
            return True
        return False

    @property
    def unused(self) -> bool:
        """Whether no turn was ever taken, so that there is no last tick to jump from."""
        return self.tick == 0 and not self.turns()

    def turns(self) -> int:
        """Turns of all owned partitions so far."""
        return sum(head.turn for head in self.heads.values())

    def release(self) -> None:
        """Give everything up."""
        try:
            self._store.release(self.owner.id)
        except StoreError:
            return  # the lease runs out by itself
        finally:
            self.heads.clear()
            self.owned = []

    def _adopt(self, rows: Iterable[Partition]) -> None:
        ordered = sorted(rows)
        self.heads = {row.p: Head(row) for row in ordered}
        self.owned = [row.p for row in ordered]
        self.tick = max([self.tick, *(row.tick for row in ordered)])

    def _extend(self, now_ms: int) -> int:
        until = now_ms + self._settings.lease_ttl_ms
        self.owner = self.owner._replace(lease_until_ms=until)
        self._renew_at = self._clock.elapsed_ms() + self._settings.lease_ttl_ms // 3
        return until
