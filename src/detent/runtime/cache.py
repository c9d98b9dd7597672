"""The hot cache: instances as stored bytes, so that hot and cold are one code path.

An entry is changed only after a commit succeeded; after any commit error everything is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import Struct

from detent.kernel.chain import GENESIS
from detent.model.decision import Birth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.ports.store import Loaded

SALT_BYTES = 16
ENTRY_BYTES = 700  # what Python needs for an entry beside its snapshot


class Hot(Struct, gc=False, eq=False):
    """One instance as the store has it; `n` is -1 and `birth` set until its row exists."""

    n: int
    id: str
    p: int
    tenant: str
    salt: bytes
    state: str
    due: int | None
    busy: bool
    priority: int
    definition: str
    version: int
    body: bytes | None
    head: bytes
    birth: Birth | None = None


def hot_of(row: Loaded) -> Hot:
    """An instance as it was read."""
    return Hot(*row[:-1], row.head or GENESIS)


def unborn(birth: Birth, p: int, salt: bytes, n: int = -1) -> Hot:
    """An instance before its first step; with a number its row (version 0) exists already."""
    return Hot(
        n,
        birth.id,
        p,
        birth.tenant,
        salt,
        "scheduled",
        None,
        False,
        birth.priority,
        birth.definition,
        0,
        None,
        GENESIS,
        birth if n < 0 else None,
    )


class Cache:
    """Least recently used instances, bounded by bytes."""

    __slots__ = ("_held", "_limit", "_weights", "bytes")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[str, Hot] = OrderedDict()
        self._weights: dict[str, int] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, instance: str) -> Hot | None:
        """The entry, without counting as a use."""
        return self._held.get(instance)

    def split(self, instances: Iterable[str]) -> tuple[dict[str, Hot], list[str]]:
        """Those that are here, and those that must be loaded, each once, in the order given."""
        get = self._held.get
        here: dict[str, Hot] = {}
        missing: dict[str, None] = {}
        for instance in instances:
            hot = get(instance)
            if hot is None:
                missing[instance] = None
            else:
                here[instance] = hot
        return here, list(missing)

    def put(self, hot: Hot) -> None:
        """Keep an entry as the most recently used one; older ones make room."""
        instance = hot.id
        weight = ENTRY_BYTES + (len(hot.body) if hot.body else 0)
        held = self._held
        self.bytes += weight - self._weights.get(instance, 0)
        held[instance] = hot
        held.move_to_end(instance)
        self._weights[instance] = weight
        while self.bytes > self._limit and held:
            old, _ = held.popitem(last=False)
            self.bytes -= self._weights.pop(old)

    def drop(self, instance: str) -> None:
        """Forget one entry."""
        if self._held.pop(instance, None) is not None:
            self.bytes -= self._weights.pop(instance)

    def clear(self) -> None:
        """Forget everything: what is stored may differ."""
        self._held.clear()
        self._weights.clear()
        self.bytes = 0
