"""Work items on one SQLite connection: every change is one guarded transaction.

A poll that finds nothing writes nothing, but for the note that its worker was seen, and that only
now and then: idle workers must not cost the disk.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from detent.model import limits
from detent.ports.work import HELD_MS, Claim, Claimed, WorkerRow, WorkEvent
from detent.store.sqlite.failures import translated
from detent.store.sqlite.inbox import leave
from detent.store.sqlite.statements import change, row_of, rows_of, transaction
from detent.store.sqlite.work_rows import COLUMNS, add_event, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import apsw

    from detent.ports.store import NewArrival
    from detent.ports.work import Beat, GivenBack, PushClaim, Report, WorkQuery, WorkRow
    from detent.store.sqlite.wake import Waker

_CLAIM = f"""
UPDATE work_item SET state = 'claimed', worker = ?, claim_epoch = claim_epoch + 1, claimed_ms = ?,
    heartbeat_ms = ?, deadline_ms = ? + timeout_ms, lease_ms = min(?, coalesce(? + timeout_ms, ?))
WHERE n = ? RETURNING {COLUMNS}
"""
_HELD = "id = ? AND state = 'claimed' AND worker = ? AND claim_epoch = ?"
_BEAT = f"""
UPDATE work_item SET heartbeat_ms = ?, lease_ms = min(?, coalesce(deadline_ms, ?)) WHERE {_HELD}
"""
_CHECKPOINT = "UPDATE work_item SET checkpoint = ?, checkpoint_seq = ?, lost = 0 WHERE id = ?"
_SEQ = f"SELECT checkpoint_seq FROM work_item WHERE {_HELD}"
_SETTLE = f"""
UPDATE work_item SET state = ?, completed_ms = ?, output = ?, error = ?, retryable = ?, logs = ?,
    lease_ms = NULL, deadline_ms = NULL
WHERE {_HELD} AND (NOT ? OR lease_ms <= ?)
"""
_CALLED_OFF = """
SELECT 1 FROM work_item WHERE id = ? AND state = 'cancelled' AND worker = ? AND claim_epoch = ?
"""
_GIVE_BACK = f"""
UPDATE work_item SET state = 'pending', worker = NULL, claimed_ms = NULL, heartbeat_ms = NULL,
    lease_ms = NULL, deadline_ms = NULL, pushes = pushes + 1, push_ms = ?,
    available_ms = coalesce(?, available_ms)
WHERE {_HELD}
"""
_PUSHED = "max(available_ms, push_ms)"  # as the index has it
_PENDING_PUSHES = """
SELECT n FROM work_item INDEXED BY work_push
WHERE state = 'pending' AND queue <> '' AND tenant = ? AND queue = ?
    AND handler NOT IN (SELECT value FROM json_each(?))
"""
_RECLAIM = """
UPDATE work_item SET state = 'pending', worker = NULL, claimed_ms = NULL, heartbeat_ms = NULL,
    lease_ms = NULL, deadline_ms = NULL, lost = lost + 1, pushes = 0, push_ms = 0,
    available_ms = coalesce(?, available_ms)
WHERE id = ? AND state = 'claimed' AND claim_epoch = ? AND lease_ms <= ?
"""
_OVERDUE = f"""
SELECT {COLUMNS} FROM work_item INDEXED BY work_lease
WHERE state = 'claimed' AND lease_ms <= ? ORDER BY lease_ms LIMIT ?
"""
_NEXT_LEASE = """
SELECT min(lease_ms) FROM work_item INDEXED BY work_lease WHERE state = 'claimed'
"""
_SEEN = (
    "SELECT seen_ms, version FROM worker WHERE tenant = ? AND id = ? AND handler = ? AND queue = ?"
)
_SEE = """
INSERT INTO worker(tenant, id, handler, queue, version, seen_ms) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, seen_ms = excluded.seen_ms
"""
_SEE_AGAIN = "UPDATE worker SET seen_ms = ? WHERE id = ? AND seen_ms < ? AND tenant IN ('', ?)"
_EVENTS = """
SELECT n, item, claim_epoch, worker, event, reason, at_ms FROM work_event
WHERE item = ? ORDER BY n LIMIT ?
"""
_LOGS = """
SELECT block, logs FROM work_item INDEXED BY work_logs
WHERE instance = ? AND logs IS NOT NULL ORDER BY n LIMIT ?
"""


class SqliteWork:
    """The work items of a store, used by one thread."""

    __slots__ = ("_connection", "_waker")

    def __init__(self, connection: apsw.Connection, waker: Waker) -> None:
        self._connection = connection
        self._waker = waker

    # moving

    @translated
    def claim(self, claim: Claim) -> Claimed:
        """Give pending items to a worker; without any, say when there will be one."""
        connection = self._connection
        chosen, values = _pending(claim)
        now = f"{chosen} AND available_ms <= ? ORDER BY available_ms, n LIMIT ?"
        seen = self._seen_lately(claim)
        if not seen or rows_of(connection, now, (*values, claim.now_ms, 1)):
            with transaction(connection):
                found = rows_of(connection, now, (*values, claim.now_ms, claim.limit))
                given = [self._give(n, claim) for (n,) in found]
                if not seen:
                    _see(connection, claim)
            if given:
                return Claimed(given, None)
        return Claimed([], self._first(chosen, values, "available_ms", claim.now_ms))

    @translated
    def claim_pushes(self, claim: PushClaim) -> Claimed:
        """Give pending items of a queue to who pushes them; when the next one may be pushed."""
        connection = self._connection
        values = (claim.tenant, claim.queue, json.dumps(claim.barred))
        now = f"{_PENDING_PUSHES} AND {_PUSHED} <= ? ORDER BY {_PUSHED}, n LIMIT ?"
        given: list[WorkRow] = []
        if claim.limit and rows_of(connection, now, (*values, claim.now_ms, 1)):
            with transaction(connection):
                found = rows_of(connection, now, (*values, claim.now_ms, claim.limit))
                given = [self._give(n, claim) for (n,) in found]
        return Claimed(given, self._first(_PENDING_PUSHES, values, _PUSHED, claim.now_ms))

    @translated
    def give_back(self, given: GivenBack) -> bool:
        """Put an item back to pending, and say in its history why."""
        connection = self._connection
        until = None if given.told is None else HELD_MS
        held = (given.push_ms, until, given.id, given.worker, given.epoch)
        wakes: list[str] = []
        with transaction(connection):
            if not change(connection, _GIVE_BACK, held):
                return False
            line = (given.id, given.epoch, given.worker, "push_failed", given.reason, given.now_ms)
            add_event(connection, line)
            wakes = [] if given.told is None else leave(connection, given.told)
        self._waker.wake(wakes)
        return True

    def _first(self, chosen: str, values: tuple[Any, ...], when: str, now_ms: int) -> int | None:
        """When the first of the chosen items can be had, of those that cannot be yet."""
        asked = chosen.replace("SELECT n", f"SELECT {when}")
        later = f"{asked} AND {when} > ? ORDER BY {when}, n LIMIT 1"
        found = row_of(self._connection, later, (*values, now_ms))
        first: int = HELD_MS if found is None else found[0]
        return first if first < HELD_MS else None

    def _give(self, n: int, claim: Claim | PushClaim) -> WorkRow:
        now, until = claim.now_ms, claim.now_ms + claim.stale_ms
        values = (claim.worker, now, now, now, until, now, until, n)
        (given,) = rows([row_of(self._connection, _CLAIM, values)])
        line = (given.id, given.claim_epoch, claim.worker, "claimed", "", now)
        add_event(self._connection, line)
        return given

    def _seen_lately(self, claim: Claim) -> bool:
        key = (claim.tenant or "", claim.worker, claim.handler, claim.queue or "")
        found = row_of(self._connection, _SEEN, key)
        if found is None or found[1] != claim.version:
            return False
        return bool(found[0] > claim.now_ms - limits.WORKER_NOTED_MS)

    @translated
    def beat(self, beat: Beat) -> tuple[Literal["kept", "lost", "seq"], int]:
        """Keep a claim alive, and its checkpoint if the number is right."""
        connection, until = self._connection, beat.now_ms + beat.stale_ms
        held = (beat.id, beat.worker, beat.epoch)
        with transaction(connection):
            stored = row_of(connection, _SEQ, held)
            if stored is None:
                return "lost", 0
            seq: int = stored[0]
            if beat.checkpoint is not None:
                if beat.seq != seq:
                    return "seq", seq
                seq += 1
                connection.execute(_CHECKPOINT, (beat.checkpoint, seq, beat.id))
            connection.execute(_BEAT, (beat.now_ms, until, until, *held))
            self._see_again(beat.id, beat.worker, beat.now_ms)
        return "kept", seq

    def _see_again(self, item: str, worker: str, now_ms: int) -> None:
        tenant = row_of(self._connection, "SELECT tenant FROM work_item WHERE id = ?", (item,))[0]
        values = (now_ms, worker, now_ms - limits.WORKER_NOTED_MS, tenant)
        self._connection.execute(_SEE_AGAIN, values)

    @translated
    def settle(self, report: Report) -> Literal["settled", "ignored", "lost"]:
        """End a claim and leave its arrival; a wrong claim leaves a line in the item's history."""
        connection = self._connection
        held = (report.id, report.worker, report.epoch)
        ended = (report.state, report.now_ms, report.output, report.error, report.retryable)
        guard = (*ended, report.logs, *held, report.overdue, report.now_ms)
        with transaction(connection):
            if not change(connection, _SETTLE, guard):
                if row_of(connection, _CALLED_OFF, held) is not None:
                    return "ignored"
                if not report.overdue:
                    text = f"{report.event} refused"
                    self._note(report, "stale_mutation_rejected", text)
                return "lost"
            self._note(report, report.event, report.error or "")
            wakes = leave(connection, report.arrival)
        self._waker.wake(wakes)
        return "settled"

    def _note(self, report: Report, event: str, reason: str) -> None:
        line = (report.id, report.epoch, report.worker, event, reason, report.now_ms)
        add_event(self._connection, line)

    @translated
    def reclaim(
        self, overdue: Sequence[WorkRow], now_ms: int, told: Mapping[str, NewArrival]
    ) -> list[WorkRow]:
        """Put items back to pending, where the lease is still over; those told of are held."""
        connection = self._connection
        back: list[WorkRow] = []
        wakes: list[str] = []
        with transaction(connection):
            for row in overdue:
                arrival = told.get(row.id)
                held = None if arrival is None else HELD_MS
                if change(connection, _RECLAIM, (held, row.id, row.claim_epoch, now_ms)):
                    wakes += [] if arrival is None else leave(connection, arrival)
                    reason = f"no heartbeat from {row.worker} since {row.heartbeat_ms} ms"
                    line = (row.id, row.claim_epoch, row.worker, "reclaimed", reason, now_ms)
                    add_event(connection, line)
                    back.append(row)
        self._waker.wake(wakes)
        return back

    # looking

    @translated
    def overdue(self, now_ms: int, limit: int) -> list[WorkRow]:
        """Claimed items whose lease is over."""
        return rows(rows_of(self._connection, _OVERDUE, (now_ms, limit)))

    @translated
    def next_lease(self) -> int | None:
        """When the first lease of a claimed item is over."""
        found: int | None = row_of(self._connection, _NEXT_LEASE)[0]
        return found

    @translated
    def item(self, id: str) -> WorkRow | None:
        """One item."""
        sql = f"SELECT {COLUMNS} FROM work_item WHERE id = ?"
        found = rows(rows_of(self._connection, sql, (id,)))
        return found[0] if found else None

    @translated
    def items(self, query: WorkQuery) -> list[WorkRow]:
        """Items that pass the filter, the newest first."""
        where, values = _filter(query)
        sql = f"SELECT {COLUMNS} FROM work_item WHERE {where} ORDER BY n DESC LIMIT ? OFFSET ?"
        return rows(rows_of(self._connection, sql, (*values, query.limit, query.offset)))

    @translated
    def counts(self, tenant: str | None) -> list[tuple[str, str, int]]:
        """How many items of each handler are in each state."""
        where, values = _of(tenant)
        sql = f"""SELECT handler, state, count(*) FROM work_item INDEXED BY work_counts
            WHERE {where} GROUP BY handler, state ORDER BY handler, state"""
        return rows_of(self._connection, sql, values)

    @translated
    def holders(self, tenant: str | None) -> dict[str, int]:
        """How many claimed items each worker holds."""
        where, values = _of(tenant)
        sql = f"""SELECT worker, count(*) FROM work_item INDEXED BY work_held
            WHERE state = 'claimed' AND {where} GROUP BY worker ORDER BY worker"""
        return dict(rows_of(self._connection, sql, values))

    @translated
    def events(self, id: str, limit: int) -> list[WorkEvent]:
        """The history of an item, the oldest first."""
        return [WorkEvent._make(row) for row in rows_of(self._connection, _EVENTS, (id, limit))]

    @translated
    def workers(self, tenant: str | None, seen_ms: int, limit: int) -> list[WorkerRow]:
        """Who polled since an instant, by id."""
        where, values = _of(tenant)
        sql = f"""SELECT tenant, id, handler, queue, version, seen_ms FROM worker
            WHERE {where} AND seen_ms >= ? ORDER BY id, handler, queue, tenant LIMIT ?"""
        found = rows_of(self._connection, sql, (*values, seen_ms, limit))
        return [WorkerRow._make(row) for row in found]

    @translated
    def logs(self, instance: str, limit: int) -> list[tuple[str, bytes]]:
        """What workers wrote down for an instance, the oldest first."""
        return rows_of(self._connection, _LOGS, (instance, limit))


def _pending(claim: Claim) -> tuple[str, tuple[Any, ...]]:
    """The pending items a claim may have: the query up to the instant, and its values."""
    index = "work_poll" if claim.queue is None else "work_queue"
    where, values = "", [claim.handler]
    if claim.queue is not None:
        where += " AND queue <> '' AND queue = ?"
        values.append(claim.queue)
    if claim.tenant is None:
        index += "_all"
        if claim.barred:
            where += " AND tenant NOT IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(claim.barred))
    else:
        where += " AND tenant = ?"
        values.append(claim.tenant)
    sql = f"""SELECT n FROM work_item INDEXED BY {index}
        WHERE state = 'pending' AND handler = ?{where}"""
    return sql, tuple(values)


def _see(connection: apsw.Connection, claim: Claim) -> None:
    key = (claim.tenant or "", claim.worker, claim.handler, claim.queue or "")
    connection.execute(_SEE, (*key, claim.version, claim.now_ms))


def _of(tenant: str | None) -> tuple[str, tuple[Any, ...]]:
    return ("1", ()) if tenant is None else ("tenant = ?", (tenant,))


def _filter(query: WorkQuery) -> tuple[str, tuple[Any, ...]]:
    where, found = _of(query.tenant)
    values = list(found)
    if query.states:
        where += f" AND state IN ({', '.join('?' * len(query.states))})"
        values += query.states
    for column, value in (
        ("handler", query.handler),
        ("worker", query.worker),
        ("queue", query.queue),
    ):
        if value:
            where += f" AND {column} = ?"
            values.append(value)
    return where, tuple(values)
