"""The work items of a turn's commit, their history, and how long all of it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model import limits
from detent.ports.work import WorkRow
from detent.store.sqlite.statements import ManyKeys, ManyRows, change, rows_of, transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import apsw

    from detent.model.decision import WorkItem
    from detent.ports.store import Commit

COLUMNS = ", ".join(WorkRow._fields)

# The checkpoint of the attempt before goes on with its number. An item that is there already was
# taken from a silent worker, and held until the gate let it be handed out once more.
_INSERT = ManyRows(
    """INSERT INTO work_item(id, effect, instance, tenant, block, handler, queue, attempt,
        timeout_ms, created_ms, available_ms, params, context, ticket, checkpoint, checkpoint_seq)
    VALUES""",
    """(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        (SELECT checkpoint FROM work_item WHERE id = ?),
        coalesce((SELECT checkpoint_seq FROM work_item WHERE id = ?), 0))""",
    "ON CONFLICT(id) DO UPDATE SET available_ms = excluded.available_ms, ticket = excluded.ticket",
)
_OPEN = ManyKeys(
    "SELECT id, claim_epoch, worker FROM work_item "
    "WHERE id IN ($keys) AND state IN ('pending', 'claimed')"
)
_CALL_OFF = """
UPDATE work_item SET state = 'cancelled', completed_ms = ?, lease_ms = NULL, deadline_ms = NULL
WHERE id = ?
"""
_EVENT = """
INSERT INTO work_event(item, claim_epoch, worker, event, reason, at_ms)
SELECT ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM work_event WHERE item = ?) < ?
"""
_FORGOTTEN = """
SELECT id FROM work_item INDEXED BY work_over WHERE completed_ms < ? ORDER BY completed_ms LIMIT ?
"""
_DELETE_ITEMS = ManyKeys("DELETE FROM work_item WHERE id IN ($keys)")
_DELETE_EVENTS = ManyKeys("DELETE FROM work_event WHERE item IN ($keys)")
_DELETE_WORKERS = "DELETE FROM worker WHERE seen_ms < ?"


def write_work(connection: apsw.Connection, commit: Commit) -> None:
    """Insert a turn's new items and cancel those it calls off, inside its transaction."""
    _insert(connection, commit.work)
    for item in commit.work:
        if item.routed:
            add_event(connection, (item.id, 0, None, "routed", item.routed, commit.wall_ms))
    for id, epoch, worker in sorted(set(_OPEN.fetch(connection, commit.called_off))):
        connection.execute(_CALL_OFF, (commit.wall_ms, id))
        add_event(connection, (id, epoch, worker, "cancelled", "", commit.wall_ms))


def _insert(connection: apsw.Connection, items: Sequence[WorkItem]) -> None:
    flat: list[Any] = []
    for item in items:
        flat += (item.id, item.effect, item.instance, item.tenant, item.block, item.handler)
        flat += (item.queue, item.attempt, item.timeout_ms, item.created_ms, item.available_ms)
        flat += (item.params, item.context, item.ticket, item.previous, item.previous)
    _INSERT.run(connection, flat)


def add_event(connection: apsw.Connection, event: tuple[Any, ...]) -> None:
    """Write one line of history: item, epoch, worker, event, reason, instant."""
    connection.execute(_EVENT, (*event, event[0], limits.WORK_EVENTS))


def rows(found: Iterable[Any]) -> list[WorkRow]:
    """Rows as the port has them."""
    made = map(WorkRow._make, found)
    return [
        row if row.retryable is None else row._replace(retryable=bool(row.retryable))
        for row in made
    ]


def forget(connection: apsw.Connection, before_ms: int, limit: int) -> int:
    """Remove items that ended before an instant, and workers not seen since."""
    with transaction(connection):
        ids = [row[0] for row in rows_of(connection, _FORGOTTEN, (before_ms, limit))]
        _DELETE_ITEMS.fetch(connection, ids)
        _DELETE_EVENTS.fetch(connection, ids)
        return len(ids) + change(connection, _DELETE_WORKERS, (before_ms,))
