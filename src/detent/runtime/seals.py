"""Seals: every 1,000 turns one digest over the roots of all partitions, signed if there is a key.

Turns are counted over all partitions, so the rule needs no memory: a seal belongs to the commit
that crosses a multiple. Only the owner of partition 0 seals, so two writers never make the same.

Once seals are signed, a writer without a key makes none: an unsigned one could not be told from one
whose signature was taken away. The next signed seal covers what it left out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from detent.kernel.chain import GENESIS, seal_of
from detent.kernel.signature import seal_message
from detent.ports.store import Seal, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detent.ports.signer import Signer

_log = logging.getLogger("detent.runtime")


class Seals:
    """The head of the chain of seals."""

    __slots__ = ("_digest", "_every", "_n", "_partitions", "_signed", "_store", "_told", "signer")

    def __init__(self, store: Store, partitions: int, every: int) -> None:
        self._store = store
        self._partitions = partitions
        self._every = every
        self._n = -1
        self._digest = GENESIS
        self._signed = False  # whether the newest seal is
        self._told = False
        self.signer: Signer | None = None

    def due(self, turns: int, more: int) -> bool:
        """Whether a commit that adds `more` turns crosses a multiple of the interval."""
        return turns // self._every != (turns + more) // self._every

    def next(self, tick: int, roots: Mapping[int, bytes]) -> Seal | None:
        """The seal over these roots; None when it is not for this writer to make."""
        if 0 not in roots:
            return None
        if self._n < 0:
            self._find_last()
        if self._signed and self.signer is None:
            self._tell()
            return None
        if len(roots) < self._partitions:
            roots = {row.p: row.root for row in self._store.partitions()} | dict(roots)
        ordered = [roots[p] for p in sorted(roots)]
        n = self._n + 1
        digest = seal_of(self._digest, n, tick, ordered)
        signature = b"" if self.signer is None else self.signer.sign(seal_message(digest))
        return Seal(n, tick, b"".join(ordered), digest, signature)

    def committed(self, seal: Seal) -> None:
        """The seal is durable; the next one builds on it."""
        self._n = seal.n
        self._digest = seal.digest
        self._signed = bool(seal.signature)

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
        last = self._store.seals(n - 1, 1)[0] if n else None
        self._digest = GENESIS if last is None else last.digest
        self._signed = last is not None and bool(last.signature)

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            text = "seal %d is signed and no key is set: no seal is made until `seal_key` is given"
            _log.warning(text, self._n)

    def _exists(self, n: int) -> bool:
        return bool(self._store.seals(n - 1, 1))
