"""Compiled definitions by hash: compiling is dear, a hash never changes what it means."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from detent.definition import load
from detent.kernel.program import Program, compile_program
from detent.model.errors import StoreError

if TYPE_CHECKING:
    from detent.ports.store import Store

PROGRAMS_KEPT = 1_000


class Programs:
    """The programs in use, read from the store when first asked for."""

    __slots__ = ("_kept", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, Program] = OrderedDict()

    def get(self, digest: str) -> Program:
        """The program of a definition's hash."""
        program = self._kept.get(digest)
        if program is None:
            program = self._compile(digest)
            self._kept[digest] = program
            if len(self._kept) > PROGRAMS_KEPT:
                self._kept.popitem(last=False)
        return program

    def _compile(self, digest: str) -> Program:
        row = self._store.definition(digest)
        if row is None:
            raise StoreError(
                "definition.unknown",
                f"an instance is pinned to definition {digest}, which the store does not have; "
                "restore it from a backup or store the same definition again",
            )
        return compile_program(load(row.body))
