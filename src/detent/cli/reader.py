"""A store that a command looks at; reading works whoever owns it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from detent.bootstrap.owners import logical_now_ms, open_reader
from detent.cli.invocation import Invocation
from detent.cli.times import instant, local, relative
from detent.ports.store import Store


class Reader(NamedTuple):
    """An open store, whose instances to show, and its logical now."""

    store: Store
    tenant: str | None
    now_ms: int

    def ms_of(self, tick: int) -> int:
        """A tick as epoch milliseconds."""
        meta = self.store.meta()
        return meta.epoch_ms + tick * meta.resolution_ms

    def at_present(self) -> Reader:
        """The same store at its logical now."""
        return self._replace(now_ms=logical_now_ms(self.store))

    def instant(self, ms: int | None) -> str:
        """An instant with its distance from now."""
        return instant(ms, self.now_ms)

    def at(self, tick: int | None) -> str:
        """A tick as an instant with its distance from now."""
        return "" if tick is None else self.instant(self.ms_of(tick))

    def ago(self, ms: int | None) -> str:
        """Only the distance from now."""
        return "" if ms is None else relative(ms, self.now_ms)

    def iso(self, tick: int | None) -> str | None:
        """A tick as local ISO time, for JSON."""
        return None if tick is None else local(self.ms_of(tick))


@contextmanager
def reading(options: Invocation) -> Iterator[Reader]:
    """Open the store of a command for reading."""
    store = open_reader(options.db)
    try:
        yield Reader(store, options.tenant, logical_now_ms(store))
    finally:
        store.close()
