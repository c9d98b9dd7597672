"""Sequences that were looked up lately, ready to start instances of.

A definition never changes under its id, so only its existence has to be asked for again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import Struct

from detent.definition import load
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.ports.definitions import DefinitionRow
from detent.service.sequences import find_sequence

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.desk import Desk

KEPT = 1_000
_FRESH_S = 1.0


class Known(Struct, frozen=True):
    """A stored sequence and its definition, and when it was last seen in the store."""

    row: DefinitionRow
    definition: Definition
    seen: float


class KnownSequences:
    """The sequences used last, by id."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._kept: OrderedDict[str, Known] = OrderedDict()

    async def get(self, id: str, tenant: str | None) -> Known:
        """A sequence of this tenant; `definition.unknown` when there is none."""
        known = self._kept.get(id)
        if known is None or time.monotonic() - known.seen > _FRESH_S:
            known = await self._desk.look(lambda store: self._read(store, id))
            self._keep(id, known)
        if tenant is not None and known.row.tenant != tenant:
            raise RequestError("definition.unknown", f"there is no sequence {id}")
        return known

    def forget(self, id: str) -> None:
        """It was removed."""
        self._kept.pop(id, None)

    def _read(self, store: Store, id: str) -> Known:
        row = find_sequence(store, id, None)
        known = self._kept.get(id)
        same = known is not None and known.row.hash == row.hash
        definition = known.definition if same and known is not None else load(row.body)
        return Known(row, definition, time.monotonic())

    def _keep(self, id: str, known: Known) -> None:
        self._kept[id] = known
        self._kept.move_to_end(id)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
