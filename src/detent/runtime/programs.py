"""Compiled definitions by hash: compiling is dear, a hash never changes what it means."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from detent.definition import load
from detent.kernel.injecting import program_with
from detent.kernel.program import Program, compile_program
from detent.model.errors import StoreError
from detent.model.ids import SYSTEM
from detent.ports.definitions import DefinitionRow

if TYPE_CHECKING:
    from detent.model.definition import Definition
    from detent.model.snapshot import Snapshot
    from detent.ports.store import Store
    from detent.runtime.clock import TurnClock

PROGRAMS_KEPT = 1_000


class Programs:
    """The programs in use, read from the store when first asked for."""

    __slots__ = ("_kept", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, Program] = OrderedDict()

    def get(self, digest: str) -> Program:
        """The program of a definition's hash that an instance is pinned to."""
        program = self._kept.get(digest) or self.find(digest)
        if program is None:
            raise StoreError(
                "definition.unknown",
                f"an instance is pinned to definition {digest}, which the store does not have; "
                "restore it from a backup or store the same definition again",
            )
        return program

    def whole(self, snapshot: Snapshot) -> Program:
        """The program of an instance, with the blocks that were injected into it."""
        program, digest = self.get(snapshot.definition), snapshot.injected
        if not digest or digest in program.extensions:
            return program_with(program, digest, {})
        return program_with(
            program, digest, {f"blob:{digest}": self._store.blobs(snapshot.id, [digest])[digest]}
        )

    def find(self, digest: str) -> Program | None:
        """The program of a definition's hash, None where the store has no such definition."""
        program = self._kept.get(digest)
        if program is None:
            row = self._store.definition(digest)
            if row is None:
                return None
            program = self._kept[digest] = compile_program(load(row.body))
            if len(self._kept) > PROGRAMS_KEPT:
                self._kept.popitem(last=False)
        return program

    def keep(self, own: Definition, clock: TurnClock) -> str:
        """Store one of the engine's own definitions if it is not there; its hash."""
        if self.find(own.hash) is None:
            row = (own.hash, "default", SYSTEM, own.name, own.version, own.canonical)
            self._store.put_definition(DefinitionRow(*row, False, clock.wall_ms()))
        return own.hash
