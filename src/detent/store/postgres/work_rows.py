"""The work items of a turn's commit, their history, and how long all of it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model import limits
from detent.ports.work import WorkRow
from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detent.ports.store import Commit
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

COLUMNS = ", ".join(WorkRow._fields)

# The checkpoint of the attempt before goes on with its number. No join: rows are numbered in the
# order in which they are given. An item that is there already was taken from a silent worker, and
# held until the gate let it be handed out once more.
_INSERT = Rows(
    """
INSERT INTO work_item(id, effect, instance, tenant, block, handler, queue, attempt, timeout_ms,
    created_ms, available_ms, params, context, ticket, checkpoint, checkpoint_seq)
SELECT new.id, new.effect, new.instance, new.tenant, new.block, new.handler, new.queue,
    new.attempt, new.timeout_ms, new.created_ms, new.available_ms, new.params, new.context,
    new.ticket, (SELECT w.checkpoint FROM work_item w WHERE w.id = new.previous),
    coalesce((SELECT w.checkpoint_seq FROM work_item w WHERE w.id = new.previous), 0)
FROM $rows
ON CONFLICT (id) DO UPDATE SET available_ms = excluded.available_ms, ticket = excluded.ticket
""",
    "id text, effect text, instance text, tenant text, block text, handler text, queue text, "
    "attempt int, timeout_ms int, created_ms int, available_ms int, params bytes, "
    "context bytes, ticket text, previous text",
)
# Lines of history for the rows of a query `moved`; an item has no more than its limit of them.
EVENTS = f"""
INSERT INTO work_event(item, claim_epoch, worker, event, reason, at_ms)
SELECT moved.id, moved.claim_epoch, moved.worker, {{event}}, {{reason}}, {{at}} FROM moved
WHERE (SELECT count(*) FROM work_event e WHERE e.item = moved.id) < {limits.WORK_EVENTS}
ORDER BY moved.id
"""
_ROUTED = Rows(
    f"""
WITH moved AS (SELECT id, 0 AS claim_epoch, NULL::text AS worker, reason FROM $rows)
{EVENTS.format(event="'routed'", reason="moved.reason", at="$1")}
""",
    "id text, reason text",
)
_CALL_OFF = f"""
WITH moved AS (
    UPDATE work_item SET state = 'cancelled', completed_ms = $2, lease_ms = NULL,
        deadline_ms = NULL
    WHERE id = ANY($1) AND state IN ('pending', 'claimed') RETURNING id, claim_epoch, worker)
{EVENTS.format(event="'cancelled'", reason="''", at="$2")}
"""
_FORGET = """
WITH gone AS (
    DELETE FROM work_item WHERE n IN (
        SELECT n FROM work_item WHERE completed_ms < $1 ORDER BY completed_ms LIMIT $2)
    RETURNING id),
forgotten AS (DELETE FROM work_event WHERE item IN (SELECT id FROM gone))
SELECT count(*) FROM gone
"""
_FORGET_WORKERS = "DELETE FROM worker WHERE seen_ms < $1"


def write_work(commit: Commit) -> Iterator[Statement]:
    """Insert a turn's new items and cancel those it calls off."""
    if commit.work:
        yield _INSERT.of(
            [
                (
                    item.id,
                    item.effect,
                    item.instance,
                    item.tenant,
                    item.block,
                    item.handler,
                    item.queue,
                    item.attempt,
                    item.timeout_ms,
                    item.created_ms,
                    item.available_ms,
                    item.params,
                    item.context,
                    item.ticket,
                    item.previous,
                )
                for item in {item.id: item for item in commit.work}.values()
            ]
        )
    routed = [(item.id, item.routed) for item in commit.work if item.routed]
    if routed:
        yield _ROUTED.of(routed, commit.wall_ms)
    if commit.called_off:
        yield _CALL_OFF, [keys(commit.called_off), commit.wall_ms]


def rows(found: Any) -> list[WorkRow]:
    """Rows as the port has them."""
    return list(map(WorkRow._make, found))


def forget(session: Session, before_ms: int, limit: int) -> int:
    """Remove items that ended before an instant, and workers not seen since."""
    gone, workers = session.transact(
        [(_FORGET, [before_ms, limit]), (_FORGET_WORKERS, [before_ms])]
    )
    return int(gone.fetchall()[0][0]) + workers.rowcount
