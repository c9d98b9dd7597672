"""`Onlooker`: the reading verbs of an engine, on a store that somebody else may own.

It offers what an engine and a client offer for looking, under the same names, so that whoever only
looks need not know which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from detent.bootstrap.crons import Crons
from detent.bootstrap.gates import Door, Limits, Pools
from detent.bootstrap.inspector import Inspector
from detent.bootstrap.owners import living_owner, logical_now_ms
from detent.bootstrap.stores import open_reader
from detent.definition import load
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.ports.definitions import DefinitionQuery
from detent.ports.store import Store
from detent.service.catalogue import find_definition
from detent.service.clock import ClockView
from detent.service.sequences import list_sequences, sequence_wire
from detent.service.starting import Moment, check_labels

T = TypeVar("T")


class Onlooker:
    """Looks at a store through a connection that can only read; use it as a context manager."""

    def __init__(self, path: str | Path) -> None:
        """Open the store at `path`, which must exist."""
        self.store: Store = open_reader(path)
        self.inspect = Inspector(lambda: self.store, shared=True)
        door = Door(_refuse, _refuse, self._look, self._moment)
        self.limits = Limits(door)
        self.pools = Pools(door)
        self.crons = Crons(door, _Nobody(), _refuse)

    def clock(self) -> ClockView:
        """The store's logical now, and how its ticks become instants."""
        meta = self.store.meta()
        return ClockView(
            now_ms=logical_now_ms(self.store),
            epoch_ms=meta.epoch_ms,
            resolution_ms=meta.resolution_ms,
            clock=meta.clock,
        )

    def owned(self) -> bool:
        """Whether an engine runs on the store."""
        return living_owner(self.store) is not None

    def definition(
        self,
        name: str,
        version: int | None = None,
        *,
        tenant: str | None = None,
        namespace: str = "default",
    ) -> Definition:
        """A stored definition: that version, or the highest one that is not deprecated."""
        place = (tenant or "default", namespace)
        check_labels(*place)
        return load(find_definition(self.store, place, name, version).body)

    def definitions(
        self, *, tenant: str | None = None, namespace: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Stored definitions by tenant, namespace, name and falling version, with their status."""
        query = DefinitionQuery(tenant=tenant, namespace=namespace, limit=limit)
        rows, _more = list_sequences(self.store, query)
        return [sequence_wire(row) for row in rows]

    def close(self) -> None:
        """Let the store go."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _look(self, use: Callable[[Store], T], /) -> T:
        return use(self.store)

    def _moment(self) -> Moment:
        clock = self.clock()
        tick = max(0, (clock.now_ms - clock.epoch_ms) // clock.resolution_ms)
        return Moment(
            tick=tick,
            epoch_ms=clock.epoch_ms,
            resolution_ms=clock.resolution_ms,
            fresh_id="",
            seed="",
        )


class _Nobody:
    """Who carries changes out for somebody who only looks."""

    def command(self, *_asked: Any) -> NoReturn:
        _refuse()

    def wait_for(self, *_asked: Any) -> NoReturn:
        _refuse()


def _refuse(*_asked: Any) -> NoReturn:
    raise RequestError("engine.closed", "this store is open for reading only; use an engine")
