"""The partitions a writer owns: fence, lease and chain head of each.

Commits renew the lease of the partitions they touch; a plain renewal of all of them goes out when
less than two thirds of the time to live is left, whatever the commits did, since a busy writer may
leave some partitions untouched for long. One that shares the store with others looks around now and
then (`balance`), and so does one that misses a partition of its range.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.runtime.balance import Moves, free_of, share_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from detent.ports.store import Meta, Owner, Partition, Store
    from detent.runtime.clock import TurnClock
    from detent.runtime.settings import WriterSettings

_NEVER_S = 3_600.0


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
        "_look_at",
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
        self._look_at = 0
        self.owner = owner
        self.heads: dict[int, Head] = {}
        self.owned: list[int] = []
        self.tick = 0  # the last tick this store was written at
        self.until_ms = 0
        self.clean: frozenset[int] = frozenset()  # given up: what was not called, nobody called
        self.foreign_until_ms = 0  # until then calls of a former owner may still be running
        self.successor = False  # a writer of the same engine was here before; its calls go on
        self.resuming = False  # our dispatcher may have orders from before the last acquisition
        self.resumed: frozenset[int] = frozenset()  # partitions that were ours all the while
        self._opened = False

    def acquire(self) -> list[int]:
        """Take what is wanted and can be had; `store.owned` if there is none and nobody shares."""
        before = self._store.partitions()
        now = self._clock.wall_ms()
        if self._settings.sharing:
            self._make_known(now)  # before it looks: whoever comes at the same time sees it
            ours = [row.p for row in before if row.owner == self.owner.id]
            moves = share_out(self.owner.id, ours, before, self._store.owners(), now)
            self._adopt(self._try_to_take(before, [*ours, *moves.take], now))
        else:
            self._adopt(self._take(before, self._wanted, now))
        self._renewed(now)
        self._look_soon()
        return list(self.owned)

    def take(self, wanted: Sequence[int]) -> list[int]:
        """Take more partitions, as many as can be had."""
        before = self._store.partitions()
        now = self._clock.wall_ms()
        rows = self._try_to_take(before, wanted, now)
        if self.heads:
            self._renew_at = 0  # so that the end of the lease is the same for all
        elif rows:
            self._renewed(now)
        self._adopt(rows, kept=True)
        return [row.p for row in rows]

    def give(self, partitions: Sequence[int]) -> None:
        """Leave partitions to others; nothing of them can be committed here any more."""
        self._store.release(self.owner.id, partitions)
        self._drop(partitions)

    def look_due(self) -> bool:
        """Whether it is time to look around, for one that has a reason to."""
        return self.seconds_to_look() <= 0

    def seconds_to_look(self) -> float:
        """How long until it looks around."""
        if not self._settings.sharing and len(self.heads) == len(self._wanted):
            return _NEVER_S
        return max(0, self._look_at - self._clock.elapsed_ms()) / 1000

    def look(self) -> Moves:
        """What is to be taken and given up now."""
        self._look_soon()
        now, rows = self._clock.wall_ms(), self._store.partitions()
        if not self._settings.sharing:
            return Moves([p for p in free_of(rows, self.heads, now) if p in self._wanted], [])
        owners = self._store.owners()
        if all(owner.id != self.owner.id for owner in owners):
            self._make_known(now)  # it was silent for so long that it was forgotten
        return share_out(self.owner.id, self.owned, rows, owners, now)

    def renewal_due(self) -> bool:
        """Whether less than two thirds of the lease is left."""
        return self._clock.elapsed_ms() >= self._renew_at

    def renew(self, tick: int) -> bool:
        """Renew all partitions; False when one of them was taken over."""
        now = self._clock.wall_ms()
        self.owner = self.owner._replace(lease_until_ms=now + self._settings.lease_ttl_ms)
        fences = [(head.p, head.fence_epoch) for head in self.heads.values()]
        if not self._store.renew(self.owner, fences, tick):
            return False
        self._renewed(now)
        if self.heads:
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

    def reread(self) -> list[int]:
        """Read the heads again after an error; the partitions that are not ours any more."""
        rows = {row.p: row for row in self._store.partitions()}
        gone = []
        for p, head in self.heads.items():
            row = rows.get(p)
            if row is None or (row.owner, row.fence_epoch) != (self.owner.id, head.fence_epoch):
                gone.append(p)
        self._drop(gone)
        self._adopt(rows[p] for p in self.owned)
        return gone

    @property
    def shared(self) -> bool:
        """Whether others may have partitions, so that having none is no reason to stand still."""
        return self._settings.sharing

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

    def _try_to_take(
        self, before: Sequence[Partition], wanted: Sequence[int], now_ms: int
    ) -> list[Partition]:
        """As many as can be had; none is no error, somebody was faster."""
        try:
            return self._take(before, wanted, now_ms) if wanted else []
        except StoreError as error:
            if error.code != "store.owned":
                raise
            return []

    def _take(
        self, before: Sequence[Partition], wanted: Sequence[int], now_ms: int
    ) -> list[Partition]:
        """Take partitions, and note who had them."""
        until = now_ms + self._settings.lease_ttl_ms
        rows = self._store.acquire(self.owner, wanted, now_ms, until)
        alive = {owner.id for owner in self._store.owners()} - {self.owner.id}
        taken = {row.p for row in rows}
        former = [row for row in before if row.p in taken]
        self.foreign_until_ms = max(
            (row.lease_until_ms for row in former if row.owner in alive), default=0
        )
        self.resuming = self.successor or self._opened
        ours = {row.p for row in former if self.resuming and row.owner == self.owner.id}
        self.resumed = (self.resumed - taken) | ours
        self.clean = (self.clean - taken) | {row.p for row in former if not row.owner}
        self._opened = True
        return rows

    def _make_known(self, now_ms: int) -> None:
        self._store.acquire(self.owner, (), now_ms, now_ms + self._settings.lease_ttl_ms)

    def _adopt(self, rows: Iterable[Partition], *, kept: bool = False) -> None:
        ordered = sorted(rows)
        heads = self.heads if kept else {}
        heads.update((row.p, Head(row)) for row in ordered)
        self.heads = dict(sorted(heads.items()))
        self.owned = list(self.heads)
        self.tick = max([self.tick, *(row.tick for row in ordered)])

    def _drop(self, gone: Sequence[int]) -> None:
        for p in gone:
            self.heads.pop(p, None)
        self.owned = list(self.heads)
        if gone:
            self._look_at = 0

    def _renewed(self, now_ms: int) -> None:
        self.until_ms = now_ms + self._settings.lease_ttl_ms
        self.owner = self.owner._replace(lease_until_ms=self.until_ms)
        self._renew_at = self._clock.elapsed_ms() + self._settings.lease_ttl_ms // 3

    def _look_soon(self) -> None:
        self._look_at = self._clock.elapsed_ms() + self._settings.lease_retry_ms
