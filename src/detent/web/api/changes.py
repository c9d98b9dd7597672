"""The change feed (contract §31): changes of state as pages, and as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from detent.model import limits
from detent.model.errors import DetentError
from detent.service.changes import newest_cursor, read_changes, read_cursor
from detent.service.reading import timing_of
from detent.web.api.call import Call
from detent.web.api.histories import audit_wire
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.streams import MEDIA, Pace, Streams, event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from detent.ports.store import Store
    from detent.service.changes import ChangePage
    from detent.service.desk import Desk

table = Table("changes")

_LOOK_MS = 5_000  # where nobody tells of a move: another process may have committed it
_PART = 100


class ChangeQuery(Struct):
    """Where to go on, and how many changes to give (1 to 500)."""

    tenant_id: str | None = None
    cursor: str = ""
    limit: int = 100


class ChangeStreamQuery(Struct):
    """Where to go on; `tail` begins with what happens from now on."""

    tenant_id: str | None = None
    cursor: str = ""
    tail: bool = False


class Changes(Struct):
    """Changes in the order of their commits; `has_more` also where a page had to stop early."""

    changes: list[Any]
    has_more: bool
    next_cursor: str | UnsetType = UNSET


@table.route("GET", "/changes", query=ChangeQuery, gives={200: Changes})
async def listing(call: Call) -> Response:
    """The next changes of state of a tenant's instances."""
    asked: ChangeQuery = call.query
    tenant = call.needed_scope(asked.tenant_id)
    limit = max(1, min(asked.limit, limits.CHANGES_LISTED))

    def read(store: Store) -> Changes:
        page = read_changes(store, tenant, asked.cursor, limit)
        rows = [row for _cursor, row in _wires(store, tenant, page)]
        return Changes(rows, page.more, page.cursor)

    return json_reply(await call.desk.look(read))


@table.route("GET", "/changes/stream", query=ChangeStreamQuery, gives={200: str}, media=MEDIA)
async def stream(call: Call) -> Response:
    """Every change as it happens; `Last-Event-ID` goes on after the last one seen."""
    asked: ChangeStreamQuery = call.query
    tenant = call.needed_scope(asked.tenant_id)
    cursor = call.request.headers.get("last-event-id", "") or asked.cursor

    def begin(store: Store) -> str:
        read_cursor(store, cursor)
        return newest_cursor(store) if asked.tail and not cursor else cursor

    begun = await call.desk.look(begin)
    return call.streams.open(_events(call.desk, call.streams, tenant, begun))


async def _events(
    desk: Desk, streams: Streams, tenant: str, cursor: str
) -> AsyncGenerator[bytes, None]:
    pace = Pace(_LOOK_MS)
    stop = streams.pulse.listen(pace.wake)

    def read(store: Store) -> tuple[list[bytes], ChangePage]:
        page = read_changes(store, tenant, cursor, _PART)
        return [event("change", row, id) for id, row in _wires(store, tenant, page)], page

    try:
        while True:
            pace.looking()
            told, page = await desk.look(read)
            cursor = page.cursor
            for part in told:
                yield part
                pace.spoke()
            if not page.more:
                beat = await pace.rest()
                if beat:
                    yield beat
    except DetentError as error:
        yield event("error", {"error": error.message, "code": error.code})
    finally:
        stop()


def _wires(store: Store, tenant: str, page: ChangePage) -> list[tuple[str, dict[str, Any]]]:
    timing = timing_of(store)
    return [
        (change.cursor, audit_wire(change.instance, tenant, change.entry, timing))
        for change in page.changes
    ]
