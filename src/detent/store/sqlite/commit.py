"""The commit of a turn: fence first, then every row of the turn, then one fsync.

Call order: `commit_turn` -> `_fence` -> `_turn_rows` (instance, snapshot, journal, turn) ->
`_message_rows` (births, arrivals, taken) -> `_effect_rows` (flight, doubt, blob, seal) -> COMMIT.

No row is read to be checked: the fence, the snapshot's version and the instance's number are
conditions of the statements that write, and only the count of changed rows is looked at. When a
count is wrong everything is rolled back, and the rows are read afterwards to say which it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from detent.model.errors import invariant
from detent.ports.rows import born_row
from detent.ports.store import Committed
from detent.store.sqlite.births import INSERT_INSTANCES, Numbers, insert_missing, label
from detent.store.sqlite.blobs import INSERT_BLOB
from detent.store.sqlite.conflicts import Contradicted, conflict, fenced
from detent.store.sqlite.failures import extended_code
from detent.store.sqlite.flights import delete_flights, insert_marks, insert_tombstones
from detent.store.sqlite.gates import write_gates
from detent.store.sqlite.inbox import insert_arrivals, take_arrivals, taken_rows
from detent.store.sqlite.own_lists import write_lists
from detent.store.sqlite.statements import ManyRows, transaction
from detent.store.sqlite.work_rows import write_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import Doubt
    from detent.ports.store import Commit

_FENCE = ManyRows(
    "WITH held(p, fence_epoch, turn, tick, root, lease_until) AS (VALUES",
    "(?, ?, ?, ?, ?, ?)",
    """) UPDATE partition SET turn = held.turn + 1, tick = held.tick, root = held.root,
        lease_until = held.lease_until
    FROM held WHERE partition.p = held.p AND partition.fence_epoch = held.fence_epoch
        AND partition.turn = held.turn""",
)
_UPDATE_INSTANCES = ManyRows(
    "WITH new(n, definition, state, prio, due, busy, updated) AS (VALUES",
    "(?, ?, ?, ?, ?, ?, ?)",
    """) UPDATE instance SET definition = new.definition, state = new.state, prio = new.prio,
        due = new.due, busy = new.busy, updated = new.updated
    FROM new WHERE instance.n = new.n""",
)
_UPDATE_DUES = ManyRows(
    "WITH new(n, due) AS (VALUES",
    "(?, ?)",
    ") UPDATE instance SET due = new.due FROM new WHERE instance.n = new.n",
)
_INSERT_SNAPSHOTS = ManyRows("INSERT INTO snapshot(n, version, body) VALUES", "(?, ?, ?)")
# An upsert takes a third of the time of UPDATE FROM; `_replace_snapshots` makes sure that it
# never inserts.
_REPLACE_SNAPSHOTS = ManyRows(
    "INSERT INTO snapshot(n, version, body) VALUES",
    "(?, ?, ?)",
    """ON CONFLICT(n) DO UPDATE SET version = excluded.version, body = excluded.body
    WHERE snapshot.version = excluded.version - 1""",
)
_INSERT_JOURNAL = ManyRows(
    "INSERT INTO journal(inst, seq, turn, tick, snapshot_digest, digest, body, head, moved) VALUES",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
)
_INSERT_TURNS = ManyRows(
    "INSERT INTO turn(p, n, tick, wall_ms, heads, root) VALUES", "(?, ?, ?, ?, ?, ?)"
)
_UPSERT_DOUBT = """
INSERT INTO doubt(effect, inst, state, next_try, since, reason) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT(effect) DO UPDATE SET state = excluded.state, next_try = excluded.next_try,
    reason = excluded.reason
"""
_DELETE_DOUBT = "DELETE FROM doubt WHERE effect = ?"
_INSERT_SEAL = "INSERT INTO seal(n, tick, roots, digest, signature) VALUES (?, ?, ?, ?, ?)"


def commit_turn(connection: apsw.Connection, commit: Commit) -> Committed:
    """Write the turn whole, or raise with nothing changed."""
    turns = {turn.p: turn.turn + 1 for turn in commit.partitions}
    invariant(turns, "a commit touches at least one partition, whose row is its fence")
    places = {change.p for change in commit.changes}
    invariant(places <= turns.keys(), "every changed instance lies in a partition of the commit")
    taken = taken_rows(commit.taken, commit.tick)
    try:
        with transaction(connection):
            _fence(connection, commit)
            numbers = Numbers(connection)
            given = _turn_rows(connection, commit, turns, numbers)
            born = _message_rows(connection, commit, taken, numbers)
            marked = _effect_rows(connection, commit)
    except Contradicted as found:
        raise conflict(connection, commit, found) from found
    return Committed(given | born, marked, list(born))


def _fence(connection: apsw.Connection, commit: Commit) -> None:
    flat: list[Any] = []
    for turn in commit.partitions:
        flat += (turn.p, turn.fence_epoch, turn.turn, commit.tick, turn.root, commit.lease_until_ms)
    if _FENCE.run(connection, flat) != len(commit.partitions):
        raise fenced(connection, commit)


def _turn_rows(
    connection: apsw.Connection, commit: Commit, turns: dict[int, int], numbers: Numbers
) -> dict[str, int]:
    """Instance, snapshot and journal rows in one pass over the changes; numbers given to births."""
    given: dict[str, int] = {}
    born: list[Any] = []
    updated: list[Any] = []
    first: list[Any] = []
    later: list[Any] = []
    journal: list[Any] = []
    for change in commit.changes:
        n = change.n
        if change.birth is not None:
            n = given[change.id] = numbers.next()
            born += born_row(n, change)
        elif change.row_changed:
            updated += (n, change.definition, change.state, change.priority)
            updated += (change.due, change.busy, change.tick)
        snapshots = first if change.version == 1 else later
        snapshots += (n, change.version, change.snapshot)
        journal += (n, change.version, turns[change.p], change.tick)
        journal += (change.snapshot_digest, change.digest, change.body, change.head, change.moved)
    if born:
        _insert_births(connection, born)
        label(connection, [c.birth for c in commit.changes if c.birth is not None], given)
    if _UPDATE_INSTANCES.run(connection, updated) * 7 != len(updated):
        raise Contradicted("version")
    _move_dues(connection, commit.dues)
    _write_snapshots(connection, first, later)
    _INSERT_JOURNAL.run(connection, journal)
    _insert_turns(connection, commit)
    return given


def _insert_births(connection: apsw.Connection, born: list[Any]) -> None:
    try:
        INSERT_INSTANCES.run(connection, born)
    except apsw.ConstraintError as error:
        if extended_code(error) == apsw.SQLITE_CONSTRAINT_UNIQUE:
            raise Contradicted("birth") from error
        raise


def _move_dues(connection: apsw.Connection, dues: Sequence[tuple[int, int | None]]) -> None:
    flat: list[Any] = []
    for due in dues:
        flat += due
    if _UPDATE_DUES.run(connection, flat) != len(dues):
        raise Contradicted("version")


def _write_snapshots(connection: apsw.Connection, first: list[Any], later: list[Any]) -> None:
    try:
        _INSERT_SNAPSHOTS.run(connection, first)
    except apsw.ConstraintError as error:
        if extended_code(error) == apsw.SQLITE_CONSTRAINT_PRIMARYKEY:
            raise Contradicted("version") from error
        raise
    # The last inserted number is moved by an insert and not by an update: it tells, at no cost per
    # row, that none of the rows was missing.
    connection.set_last_insert_rowid(0)
    replaced = _REPLACE_SNAPSHOTS.run(connection, later)
    if replaced * 3 != len(later) or connection.last_insert_rowid():
        raise Contradicted("version")


def _insert_turns(connection: apsw.Connection, commit: Commit) -> None:
    flat: list[Any] = []
    for turn in commit.partitions:
        flat += (turn.p, turn.turn + 1, commit.tick, commit.wall_ms, turn.heads, turn.root)
    _INSERT_TURNS.run(connection, flat)


def _message_rows(
    connection: apsw.Connection, commit: Commit, taken: list[Any], numbers: Numbers
) -> dict[str, int]:
    born = insert_missing(connection, commit.arrivals, commit.tick, numbers)
    insert_arrivals(connection, commit.arrivals)
    take_arrivals(connection, taken)
    return born


def _effect_rows(connection: apsw.Connection, commit: Commit) -> list[str]:
    # Settled rows go first: the same key may be marked again in this very commit.
    delete_flights(connection, commit.settled)
    marked = insert_marks(connection, commit.marks)
    overtaken = insert_tombstones(connection, commit.tombstones, commit.tick)
    if overtaken:
        raise Contradicted("flight", overtaken)
    _write_doubts(connection, commit.doubts, commit.tick)
    for blob in commit.blobs:
        connection.execute(INSERT_BLOB, blob)
    if commit.gate_rows or commit.gate_dues:
        write_gates(connection, commit.gate_rows, commit.gate_dues)
    if commit.work or commit.called_off:
        write_work(connection, commit)
    if commit.events or commit.deliveries:
        write_lists(connection, commit.events, commit.deliveries)
    if commit.seal is not None:
        connection.execute(_INSERT_SEAL, commit.seal)
    return marked


def _write_doubts(
    connection: apsw.Connection, doubts: Sequence[tuple[str, Doubt]], tick: int
) -> None:
    for instance, doubt in doubts:
        if doubt.state:
            row = (doubt.effect, instance, doubt.state, doubt.next_try, tick, doubt.reason)
            connection.execute(_UPSERT_DOUBT, row)
        else:
            connection.execute(_DELETE_DOUBT, (doubt.effect,))
