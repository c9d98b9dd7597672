"""Work items on one PostgreSQL connection: every change is one guarded statement or transaction.

A poll that finds nothing writes nothing, but for the note that its worker was seen, and that only
now and then: idle workers must not cost the disk. Two that poll at once pass over what the other
has locked, and never wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from detent.model import limits
from detent.ports.work import HELD_MS, Claim, Claimed, WorkerRow, WorkEvent
from detent.store.postgres.failures import Doubtful, Failed, translated
from detent.store.postgres.inbox import insert_arrivals
from detent.store.postgres.session import GUARD
from detent.store.postgres.statements import Rows, keys
from detent.store.postgres.work_rows import COLUMNS, EVENTS, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detent.ports.store import NewArrival
    from detent.ports.work import Beat, GivenBack, PushClaim, Report, WorkQuery, WorkRow
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement
    from detent.store.postgres.waking import Waker

_LOOK = """
SELECT seen_ms, version, (
        SELECT available_ms FROM work_item WHERE {chosen} ORDER BY available_ms, n LIMIT 1)
FROM (SELECT $1::text AS handler) AS asked LEFT JOIN worker
    ON worker.tenant = $4 AND worker.id = $5 AND worker.handler = $1 AND worker.queue = $6
"""
_CLAIM = f"""
WITH found AS (
    SELECT n, {{when}} AS had_ms FROM work_item WHERE {{chosen}} AND {{when}} <= $5
    ORDER BY {{when}}, n LIMIT $7 FOR UPDATE SKIP LOCKED),
moved AS (
    UPDATE work_item SET state = 'claimed', worker = $4, claim_epoch = claim_epoch + 1,
        claimed_ms = $5, heartbeat_ms = $5, deadline_ms = $5 + timeout_ms,
        lease_ms = least($6, $5 + timeout_ms)
    FROM found WHERE work_item.n = found.n RETURNING {{columns}}, found.had_ms),
noted AS ({EVENTS.format(event="'claimed'", reason="''", at="$5")})
SELECT {COLUMNS} FROM moved ORDER BY had_ms, n
"""
_PUSHED = "greatest(available_ms, push_ms)"  # as the index has it
_PENDING_PUSHES = (
    "state = 'pending' AND queue <> '' AND tenant = $1 AND queue = $2 AND handler <> ALL($3)"
)
_LOOK_FOR_PUSHES = f"""
SELECT EXISTS (SELECT 1 FROM work_item WHERE {_PENDING_PUSHES} AND {_PUSHED} <= $4), (
    SELECT {_PUSHED} FROM work_item WHERE {_PENDING_PUSHES} AND {_PUSHED} > $4
    ORDER BY {_PUSHED}, n LIMIT 1)
"""
_HELD = "id = $1 AND state = 'claimed' AND worker = $2 AND claim_epoch = $3"
# Nothing is kept unless the checkpoint that is to be replaced is the one that is stored.
_BEAT = f"""
WITH held AS (SELECT n, tenant, checkpoint_seq FROM work_item WHERE {_HELD} FOR UPDATE),
moved AS (
    UPDATE work_item SET heartbeat_ms = $4, lease_ms = least($5, deadline_ms),
        checkpoint = coalesce($6::bytea, checkpoint),
        checkpoint_seq = work_item.checkpoint_seq + ($6::bytea IS NOT NULL)::int,
        lost = CASE WHEN $6::bytea IS NULL THEN lost ELSE 0 END
    FROM held WHERE work_item.n = held.n AND ($6::bytea IS NULL OR held.checkpoint_seq = $7)
    RETURNING work_item.checkpoint_seq),
seen AS (
    UPDATE worker SET seen_ms = $4 FROM held, moved
    WHERE worker.id = $2 AND worker.seen_ms < $8 AND worker.tenant IN ('', held.tenant))
SELECT held.checkpoint_seq, moved.checkpoint_seq FROM held LEFT JOIN moved ON true
"""
_SETTLE = f"""
WITH moved AS (
    UPDATE work_item SET state = $4, completed_ms = $5, output = $6, error = $7, retryable = $8,
        logs = $9, lease_ms = NULL, deadline_ms = NULL
    WHERE {_HELD} AND (NOT $10 OR lease_ms <= $5) RETURNING 1)
{GUARD.format(rows="moved", count="1")}
"""
_SETTLED = """
SELECT 1 FROM work_item
WHERE id = $1 AND worker = $2 AND claim_epoch = $3 AND state = $4 AND completed_ms = $5
"""
_CALLED_OFF = """
SELECT 1 FROM work_item WHERE id = $1 AND state = 'cancelled' AND worker = $2 AND claim_epoch = $3
"""
_NOTE = f"""
WITH moved AS (SELECT $1::text AS id, $2::bigint AS claim_epoch, $3::text AS worker)
{EVENTS.format(event="$4", reason="$5", at="$6")}
"""
_FREE = """state = 'pending', worker = NULL, claimed_ms = NULL, heartbeat_ms = NULL,
        lease_ms = NULL, deadline_ms = NULL"""
# Items put back to pending. One that an instance is told of is held back until that one says so,
# and the arrival that tells it is left in the same statement, for what was put back by it alone.
_PUT_BACK = f"""
WITH moved AS (
    UPDATE work_item SET state = 'pending', worker = NULL, claimed_ms = NULL, heartbeat_ms = NULL,
        lease_ms = NULL, deadline_ms = NULL, {{more}},
        available_ms = CASE WHEN new.told IS NULL THEN available_ms ELSE {HELD_MS} END
    FROM $rows WHERE work_item.id = new.id AND state = 'claimed'
        AND work_item.claim_epoch = new.claim_epoch AND {{held}}
    RETURNING new.*, handler, queue, tenant),
noted AS ({EVENTS.format(event="{event}", reason="moved.reason", at="$1")}),
left_behind AS (
    INSERT INTO arrival(id, p, inst, body, tenant)
    SELECT told, p, inst, body,
        coalesce((SELECT i.tenant FROM instance i WHERE i.id = moved.inst), '')
    FROM moved WHERE told IS NOT NULL ORDER BY id ON CONFLICT (id) DO NOTHING)
SELECT id, handler, queue, tenant FROM moved
"""
_BACK = (
    "id text, claim_epoch int, worker text, reason text, told text, p int, inst text, body bytes"
)
_RECLAIM = Rows(
    _PUT_BACK.format(
        more="lost = lost + 1, pushes = 0, push_ms = 0",
        held="lease_ms <= $1",
        event="'reclaimed'",
    ),
    _BACK,
)
_GIVE_BACK = Rows(
    _PUT_BACK.format(
        more="pushes = pushes + 1, push_ms = $2",
        held="work_item.worker = new.worker",
        event="'push_failed'",
    ),
    _BACK,
)
_OVERDUE = f"""
SELECT {COLUMNS} FROM work_item
WHERE state = 'claimed' AND lease_ms <= $1 ORDER BY lease_ms LIMIT $2
"""
_NEXT_LEASE = "SELECT min(lease_ms) FROM work_item WHERE state = 'claimed'"
_SEE = """
INSERT INTO worker(tenant, id, handler, queue, version, seen_ms) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, id, handler, queue) DO UPDATE SET version = excluded.version,
    seen_ms = excluded.seen_ms
"""
_EVENTS = """
SELECT n, item, claim_epoch, worker, event, reason, at_ms FROM work_event
WHERE item = $1 ORDER BY n LIMIT $2
"""
_LOGS = """
SELECT block, logs FROM work_item WHERE instance = $1 AND logs IS NOT NULL ORDER BY n LIMIT $2
"""
_CLAIMED_COLUMNS = ", ".join(f"work_item.{name}" for name in COLUMNS.split(", "))


class PostgresWork:
    """The work items of a store, used by one thread."""

    __slots__ = ("_session", "_waker")

    def __init__(self, session: Session, waker: Waker) -> None:
        self._session = session
        self._waker = waker

    # moving

    @translated
    def claim(self, claim: Claim) -> Claimed:
        """Give pending items to a worker; without any, say when there will be one."""
        session, (chosen, whose) = self._session, _pending(claim)
        which = (claim.handler, claim.queue, whose)
        tenant, queue = claim.tenant or "", claim.queue or ""
        look = _LOOK.format(chosen=chosen)
        seen_ms, version, first = session.row(
            look, (*which, tenant, claim.worker, queue), keep=True
        )
        lately = claim.now_ms - limits.WORKER_NOTED_MS
        if seen_ms is None or version != claim.version or seen_ms <= lately:
            row = (tenant, claim.worker, claim.handler, queue, claim.version, claim.now_ms)
            session.write(_SEE, row, keep=True)
        if first is None or first > claim.now_ms:
            return Claimed([], _unless_held(first))
        given = self._give(chosen, "available_ms", which, claim)
        if given:
            return Claimed(given, None)
        return Claimed([], claim.now_ms)  # another one was quicker; there may be more

    @translated
    def claim_pushes(self, claim: PushClaim) -> Claimed:
        """Give pending items of a queue to who pushes them; when the next one may be pushed."""
        which = (claim.tenant, claim.queue, keys(claim.barred))
        ready, later = self._session.row(_LOOK_FOR_PUSHES, (*which, claim.now_ms), keep=True)
        given: list[WorkRow] = []
        if ready and claim.limit:
            given = self._give(_PENDING_PUSHES, _PUSHED, which, claim)
        return Claimed(given, _unless_held(later))

    def _give(
        self, chosen: str, when: str, which: tuple[Any, ...], claim: Claim | PushClaim
    ) -> list[WorkRow]:
        sql = _CLAIM.format(chosen=chosen, when=when, columns=_CLAIMED_COLUMNS)
        until = claim.now_ms + claim.stale_ms
        more = (claim.worker, claim.now_ms, until, claim.limit)
        return rows(self._session.write(sql, (*which, *more), keep=True))

    @translated
    def give_back(self, given: GivenBack) -> bool:
        """Put an item back to pending, and say in its history why."""
        asked = (given.id, given.epoch, given.worker, given.reason, *_left(given.told))
        statement = _GIVE_BACK.of([asked], given.now_ms, given.push_ms)
        moved = self._session.write(*statement).fetchall()
        if given.told is None:
            self._tell(
                self._waker.work(
                    [(handler, queue, tenant) for _id, handler, queue, tenant in moved]
                )
            )
        elif moved:
            self._tell(self._waker.arrivals([given.told.p]))
        return bool(moved)

    def _tell(self, wakes: Sequence[Statement]) -> None:
        """Wake others; what is committed stays so when the word is lost."""
        for statement in wakes:
            self._session.rows(*statement, keep=True)

    @translated
    def beat(self, beat: Beat) -> tuple[Literal["kept", "lost", "seq"], int]:
        """Keep a claim alive, and its checkpoint if the number is right."""
        until = beat.now_ms + beat.stale_ms
        held = (beat.id, beat.worker, beat.epoch, beat.now_ms, until)
        more = (beat.checkpoint, beat.seq, beat.now_ms - limits.WORKER_NOTED_MS)
        found = self._session.write(_BEAT, (*held, *more), keep=True).fetchall()
        if not found:
            return "lost", 0
        stored, kept = found[0]
        return ("seq", stored) if kept is None else ("kept", kept)

    @translated
    def settle(self, report: Report) -> Literal["settled", "ignored", "lost"]:
        """End a claim and leave its arrival; a wrong claim leaves a line in the item's history."""
        held = (report.id, report.worker, report.epoch)
        ended = (report.state, report.now_ms, report.output, report.error, report.retryable)
        statements = [
            (_SETTLE, (*held, *ended, report.logs, report.overdue)),
            self._note(report, report.event, report.error or ""),
            insert_arrivals([report.arrival]),
        ]
        try:
            self._session.transact(statements, self._waker.arrivals([report.arrival.p]))
        except Failed as failed:
            if not failed.guarded:
                raise
        except Doubtful:
            if self._session.row(_SETTLED, (*held, report.state, report.now_ms)) is None:
                raise
            return "settled"
        else:
            return "settled"
        if self._session.row(_CALLED_OFF, held) is not None:
            return "ignored"
        if not report.overdue:
            text = f"{report.event} refused"
            self._session.write(*self._note(report, "stale_mutation_rejected", text))
        return "lost"

    def _note(self, report: Report, event: str, reason: str) -> Statement:
        who = (report.id, report.epoch, report.worker)
        return _NOTE, (*who, event, reason, report.now_ms)

    @translated
    def reclaim(
        self, overdue: Sequence[WorkRow], now_ms: int, told: Mapping[str, NewArrival]
    ) -> list[WorkRow]:
        """Put items back to pending, where the lease is still over; those told of are held."""
        if not overdue:
            return []
        asked = [_reclaiming(row, told.get(row.id)) for row in overdue]
        back = {row[0] for row in self._session.write(*_RECLAIM.of(asked, now_ms))}
        found = [row for row in overdue if row.id in back]
        held = [told[row.id].p for row in found if row.id in told]
        free = [(r.handler, r.queue, r.tenant) for r in found if r.id not in told]
        self._tell([*self._waker.arrivals(held), *self._waker.work(free)])
        return found

    # looking

    @translated
    def overdue(self, now_ms: int, limit: int) -> list[WorkRow]:
        """Claimed items whose lease is over."""
        return rows(self._session.rows(_OVERDUE, (now_ms, limit)))

    @translated
    def next_lease(self) -> int | None:
        """When the first lease of a claimed item is over."""
        found: int | None = self._session.row(_NEXT_LEASE)[0]
        return found

    @translated
    def item(self, id: str) -> WorkRow | None:
        """One item."""
        found = rows(self._session.rows(f"SELECT {COLUMNS} FROM work_item WHERE id = $1", (id,)))
        return found[0] if found else None

    @translated
    def items(self, query: WorkQuery) -> list[WorkRow]:
        """Items that pass the filter, the newest first."""
        where, values = _filter(query)
        count = len(values)
        sql = f"""SELECT {COLUMNS} FROM work_item WHERE {where}
            ORDER BY n DESC LIMIT ${count + 1} OFFSET ${count + 2}"""
        return rows(self._session.rows(sql, (*values, query.limit, query.offset)))

    @translated
    def counts(self, tenant: str | None) -> list[tuple[str, str, int]]:
        """How many items of each handler are in each state."""
        where, values = _of(tenant)
        sql = f"""SELECT handler, state, count(*) FROM work_item
            WHERE {where} GROUP BY handler, state ORDER BY handler, state"""
        return self._session.rows(sql, values)

    @translated
    def holders(self, tenant: str | None) -> dict[str, int]:
        """How many claimed items each worker holds."""
        where, values = _of(tenant)
        sql = f"""SELECT worker, count(*) FROM work_item
            WHERE state = 'claimed' AND {where} GROUP BY worker ORDER BY worker"""
        return dict(self._session.rows(sql, values))

    @translated
    def events(self, id: str, limit: int) -> list[WorkEvent]:
        """The history of an item, the oldest first."""
        return [WorkEvent._make(row) for row in self._session.rows(_EVENTS, (id, limit))]

    @translated
    def workers(self, tenant: str | None, seen_ms: int, limit: int) -> list[WorkerRow]:
        """Who polled since an instant, by id."""
        where, values = _of(tenant)
        count = len(values)
        sql = f"""SELECT tenant, id, handler, queue, version, seen_ms FROM worker
            WHERE {where} AND seen_ms >= ${count + 1}
            ORDER BY id, handler, queue, tenant LIMIT ${count + 2}"""
        found = self._session.rows(sql, (*values, seen_ms, limit))
        return [WorkerRow._make(row) for row in found]

    @translated
    def logs(self, instance: str, limit: int) -> list[tuple[str, bytes]]:
        """What workers wrote down for an instance, the oldest first."""
        return self._session.rows(_LOGS, (instance, limit))


def _pending(claim: Claim) -> tuple[str, Any]:
    """The condition of the pending items a claim may have, and whose: each has its index."""
    queue = "$2::text IS NULL" if claim.queue is None else "queue <> '' AND queue = $2"
    chosen = f"state = 'pending' AND handler = $1 AND {queue}"
    if claim.tenant is not None:
        return f"{chosen} AND tenant = $3", claim.tenant
    if claim.barred:
        return f"{chosen} AND tenant <> ALL($3)", keys(claim.barred)
    return f"{chosen} AND $3::text IS NULL", None


def _unless_held(when: int | None) -> int | None:
    """When an item can be had; what is held back has no such instant."""
    return None if when is None or when >= HELD_MS else when


def _reclaiming(row: WorkRow, told: NewArrival | None) -> tuple[Any, ...]:
    reason = f"no heartbeat from {row.worker} since {row.heartbeat_ms} ms"
    return (row.id, row.claim_epoch, row.worker, reason, *_left(told))


def _left(told: NewArrival | None) -> tuple[Any, ...]:
    return (None,) * 4 if told is None else (told.id, told.p, told.instance, told.body)


def _of(tenant: str | None) -> tuple[str, tuple[Any, ...]]:
    return ("true", ()) if tenant is None else ("tenant = $1", (tenant,))


def _filter(query: WorkQuery) -> tuple[str, tuple[Any, ...]]:
    where, found = _of(query.tenant)
    values = list(found)
    for column, value in (
        ("handler", query.handler),
        ("worker", query.worker),
        ("queue", query.queue),
    ):
        if value:
            values.append(value)
            where += f" AND {column} = ${len(values)}"
    if query.states:
        values.append(keys(query.states))
        where += f" AND state = ANY(${len(values)})"
    return where, tuple(values)
