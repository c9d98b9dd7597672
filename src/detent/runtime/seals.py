"""Seals: every 1,000 turns one digest over the roots of all partitions.

Turns are counted over all partitions, so the rule needs no memory: a seal belongs to the commit
that crosses a multiple. Only the owner of partition 0 seals, so two writers never make the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.kernel.chain import GENESIS, seal_of
from detent.model.limits import SEAL_EVERY_TURNS
from detent.ports.store import Seal, Store

if TYPE_CHECKING:
    from collections.abc import Mapping


class Seals:
    """The head of the chain of seals."""

    __slots__ = ("_digest", "_n", "_partitions", "_store")

    def __init__(self, store: Store, partitions: int) -> None:
        self._store = store
        self._partitions = partitions
        self._n = -1
        self._digest = GENESIS

    def due(self, turns: int, more: int) -> bool:
        """Whether a commit that adds `more` turns crosses a multiple of 1,000."""
        return turns // SEAL_EVERY_TURNS != (turns + more) // SEAL_EVERY_TURNS

    def next(self, tick: int, roots: Mapping[int, bytes]) -> Seal | None:
        """The seal over these roots; None when partition 0 is somebody else's."""
        if 0 not in roots:
            return None
        if self._n < 0:
            self._find_last()
        if len(roots) < self._partitions:
            roots = {row.p: row.root for row in self._store.partitions()} | dict(roots)
        ordered = [roots[p] for p in sorted(roots)]
        n = self._n + 1
        return Seal(n, tick, b"".join(ordered), seal_of(self._digest, n, tick, ordered), b"")

    def committed(self, seal: Seal) -> None:
        """The seal is durable; the next one builds on it."""
        self._n = seal.n
        self._digest = seal.digest

    def forget(self) -> None:
        """Read the last seal again before the next one."""
        self._n = -1

    def _find_last(self) -> None:
        """Seals are numbered from 1 without a gap: double the stride, then halve it."""
        n, stride = 0, 1
        while self._exists(n + stride):
            n += stride
            stride *= 2
        while stride > 1:
            stride //= 2
            if self._exists(n + stride):
                n += stride
        self._n = n
        self._digest = self._store.seals(n - 1, 1)[0].digest if n else GENESIS

    def _exists(self, n: int) -> bool:
        return bool(self._store.seals(n - 1, 1))
