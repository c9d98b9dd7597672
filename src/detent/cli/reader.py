"""What a command looks at: a store, whoever owns it, or a server that runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from detent.bootstrap.onlooker import Onlooker
from detent.cli.doors import named_for_people
from detent.cli.invocation import Invocation
from detent.cli.times import instant, local, relative
from detent.ports.store import Store
from detent.service.clock import ClockView

if TYPE_CHECKING:
    from detent.client.client import Client


class Reader(NamedTuple):
    """The views of a store or a server, whose instances to show, and its clock."""

    views: Onlooker | Client
    tenant: str | None
    clock: ClockView

    @property
    def store(self) -> Store:
        """The store itself, for a command that has asked for a file."""
        if isinstance(self.views, Onlooker):
            return self.views.store
        raise TypeError("a command that reads a file was given a server")

    @property
    def now_ms(self) -> int:
        """Logical now."""
        return self.clock.now_ms

    def ms_of(self, tick: int) -> int:
        """A tick as epoch milliseconds."""
        return self.clock.ms_of(tick)

    def at_present(self) -> Reader:
        """The same at its logical now."""
        return self._replace(clock=self.views.clock())

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
    """Look at the server that a command names, else at its store."""
    if options.url is None:
        with Onlooker(options.db) as views:
            yield Reader(views, options.tenant, views.clock())
        return
    with named_for_people(), options.client() as client:
        yield Reader(client, options.tenant, client.clock())


@contextmanager
def reading_file(options: Invocation) -> Iterator[Reader]:
    """Look at the store of a command that needs the file itself."""
    options.needs_file()
    with reading(options) as reader:
        yield reader
