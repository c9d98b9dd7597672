"""The commit of a turn: fence first, then every row of the turn, in one round trip.

Call order: `commit_turn` -> `statements_of` (everything packed, nothing sent: `_fence`,
`_turn_rows`, `_message_rows`, `_effect_rows`) -> `Session.transact` -> `_committed`.

No row is read to be checked: the fence, the snapshot's version and the instance's number are
conditions of the statements that write, and each of these fails when it has not written as many
rows as it must. Then everything is rolled back, and the rows are read to say which it was.

When the connection is lost before COMMIT is answered, the turn is looked up on the next connection
(see `session`): it is there or it is not, and nobody has to guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import errors as sql

from detent.model.errors import StoreError, invariant
from detent.ports.rows import born_row
from detent.ports.store import Committed
from detent.store.postgres.births import (
    INSERT_INSTANCES,
    insert_labels,
    insert_missing,
    next_numbers,
)
from detent.store.postgres.conflicts import conflict, fenced
from detent.store.postgres.effects import effect_rows
from detent.store.postgres.failures import Doubtful, Failed, said_by, translate
from detent.store.postgres.flights import flights
from detent.store.postgres.inbox import insert_arrivals, take_arrivals
from detent.store.postgres.session import GUARD
from detent.store.postgres.statements import Rows, Step, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from detent.ports.store import Commit
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_FENCE = Rows(
    f"""
WITH held AS (
    UPDATE partition SET turn = new.turn + 1, tick = $1, root = new.root, lease_until = $2
    FROM $rows WHERE partition.p = new.p AND partition.fence_epoch = new.fence_epoch
        AND partition.turn = new.turn AND partition.cut = new.cut
    RETURNING 1)
{GUARD.format(rows="held", count="$3")}
""",
    "p int, fence_epoch int, turn int, root bytes, cut int",
)
_UPDATE_INSTANCES = Rows(
    f"""
WITH changed AS (
    UPDATE instance SET definition = new.definition, state = new.state, prio = new.prio,
        due = new.due, busy = new.busy, updated = new.updated
    FROM $rows WHERE instance.n = new.n RETURNING 1)
{GUARD.format(rows="changed", count="$1")}
""",
    "n int, definition text, state text, prio int, due int, busy bool, updated int",
)
_UPDATE_DUES = Rows(
    f"""
WITH changed AS (
    UPDATE instance SET due = new.due FROM $rows WHERE instance.n = new.n RETURNING 1)
{GUARD.format(rows="changed", count="$1")}
""",
    "n int, due int",
)
_INSERT_SNAPSHOTS = Rows(
    "INSERT INTO snapshot(n, version, body) SELECT * FROM $rows", "n int, version int, body bytes"
)
_REPLACE_SNAPSHOTS = Rows(
    f"""
WITH changed AS (
    UPDATE snapshot SET version = new.version, body = new.body
    FROM $rows WHERE snapshot.n = new.n AND snapshot.version = new.version - 1 RETURNING 1)
{GUARD.format(rows="changed", count="$1")}
""",
    "n int, version int, body bytes",
)
_INSERT_JOURNAL = Rows(
    """
INSERT INTO journal(inst, seq, p, turn, tick, snapshot_digest, digest, body, head, moved)
SELECT * FROM $rows
""",
    "inst int, seq int, p int, turn int, tick int, snapshot_digest bytes, digest bytes, "
    "body bytes, head bytes, moved text",
)
# Read behind the fence: no later turn of these partitions gets a position up to it.
_INSERT_TURNS = Rows(
    """
INSERT INTO turn(p, n, tick, wall_ms, heads, root, pos)
SELECT new.p, new.n, $1, $2, new.heads, new.root,
    (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM journal_pos)
FROM $rows
""",
    "p int, n int, heads bytes, root bytes",
)
_SELECT_TURNS = Rows(
    """
SELECT turn.p FROM turn JOIN $rows
    ON turn.p = new.p AND turn.n = new.n AND turn.root = new.root
""",
    "p int, n int, root bytes",
)
_SELECT_BORN = """
SELECT i.id, i.n, i.salt FROM unnest($1) AS wanted(id) JOIN instance i ON i.id = wanted.id
"""


def commit_turn(session: Session, commit: Commit, after: Sequence[Statement]) -> Committed:
    """Write the turn whole, or raise with nothing changed."""
    turns = {turn.p: turn.turn + 1 for turn in commit.partitions}
    invariant(turns, "a commit touches at least one partition, whose row is its fence")
    for change in commit.changes:
        invariant(change.p in turns, "every changed instance lies in a partition of the commit")
    births = [change for change in commit.changes if change.birth is not None]
    ids = list(dict.fromkeys(change.id for change in births))  # one twice is refused by its row
    given = dict(zip(ids, next_numbers(session, len(ids)), strict=True))
    steps = list(statements_of(session, commit, given))
    try:
        cursors = session.transact([step.statement for step in steps], after)
    except Failed as failed:
        raise _explained(session, commit, steps, failed) from failed
    except Doubtful as lost:
        return _looked_up(session, commit, given, lost)
    return _committed(given, steps, cursors)


def statements_of(session: Session, commit: Commit, given: dict[str, int]) -> Iterator[Step]:
    """Every statement of the turn, in the order in which they run."""
    yield _fence(session, commit)
    yield from _turn_rows(commit, given)
    yield from _message_rows(commit)
    yield from effect_rows(commit)


def _fence(session: Session, commit: Commit) -> Step:
    cuts = session.cuts
    rows = [
        (turn.p, turn.fence_epoch, turn.turn, turn.root, cuts.get(turn.p, 0))
        for turn in commit.partitions
    ]
    more = (commit.tick, commit.lease_until_ms, len(commit.partitions))
    return Step(_FENCE.of(rows, *more), wrong="fence")


def _turn_rows(commit: Commit, given: dict[str, int]) -> Iterator[Step]:
    """Instance, snapshot, journal and turn rows, in one pass over the changes."""
    turns = {turn.p: turn.turn + 1 for turn in commit.partitions}
    born: list[Any] = []
    updated: list[Any] = []
    first: list[Any] = []
    later: list[Any] = []
    journal: list[Any] = []
    for change in commit.changes:
        n, version = change.n, change.version
        if change.birth is not None:
            n = given[change.id]
            born.append(born_row(n, change))
        elif change.row_changed:
            listed = (change.definition, change.state, change.priority, change.due, change.busy)
            updated.append((n, *listed, change.tick))
        (first if version == 1 else later).append((n, version, change.snapshot))
        place = (n, version, change.p, turns[change.p], change.tick)
        chained = (change.snapshot_digest, change.digest, change.body, change.head)
        journal.append((*place, *chained, change.moved))
    if born:
        yield Step(INSERT_INSTANCES.of(born), wrong="birth")
        births = [(c.birth, given[c.id]) for c in commit.changes if c.birth is not None]
        labels = insert_labels(births)
        if labels is not None:
            yield Step(labels)
    if updated:
        yield Step(_UPDATE_INSTANCES.of(updated, len(updated)), wrong="version")
    if commit.dues:
        yield Step(_UPDATE_DUES.of(commit.dues, len(commit.dues)), wrong="version")
    if first:
        yield Step(_INSERT_SNAPSHOTS.of(first), wrong="version")
    if later:
        yield Step(_REPLACE_SNAPSHOTS.of(later, len(later)), wrong="version")
    if journal:
        yield Step(_INSERT_JOURNAL.of(journal))
    rows = [(turn.p, turn.turn + 1, turn.heads, turn.root) for turn in commit.partitions]
    yield Step(_INSERT_TURNS.of(rows, commit.tick, commit.wall_ms))


def _message_rows(commit: Commit) -> Iterator[Step]:
    born = insert_missing(commit.arrivals, commit.tick)
    if born is not None:
        yield Step(born, returns="born")
    if commit.arrivals:
        yield Step(insert_arrivals(commit.arrivals))
    if commit.taken:
        yield Step(take_arrivals(commit.taken, commit.tick))


def _committed(
    given: dict[str, int], steps: Sequence[Step], cursors: Sequence[psycopg.Cursor[Any]]
) -> Committed:
    born: dict[str, int] = {}
    marked: list[str] = []
    for step, cursor in zip(steps, cursors, strict=True):
        if step.returns == "born":
            born = dict(cursor.fetchall())
        elif step.returns == "marked":
            marked = [row[0] for row in cursor]
    return Committed(given | born, marked, list(born))


def _explained(
    session: Session, commit: Commit, steps: Sequence[Step], failed: Failed
) -> StoreError:
    """The error of a commit that was rolled back."""
    wrong = steps[failed.at].wrong if failed.at >= 0 else ""
    contradicts = failed.guarded or isinstance(failed.error, sql.UniqueViolation)
    if not wrong or not contradicts:
        return translate(failed.error)
    if wrong == "fence":
        return fenced(session, commit)
    return conflict(session, commit, wrong)


def _looked_up(
    session: Session, commit: Commit, given: dict[str, int], lost: Doubtful
) -> Committed:
    """What the database would have answered, had its answer arrived; or that it did not happen."""
    session.suspect([(turn.p, turn.fence_epoch) for turn in commit.partitions])
    wanted = [(turn.p, turn.turn + 1, turn.root) for turn in commit.partitions]
    if len(session.rows(*_SELECT_TURNS.of(wanted))) != len(wanted):
        said = said_by(lost.error)
        raise StoreError(
            "store.unavailable",
            f"the connection was lost in a commit, which was not made ({said})",
            postgres=said,
        )
    births = {a.birth.id: a.salt for a in commit.arrivals if a.birth is not None}
    stored = session.rows(_SELECT_BORN, (keys(list(births)),)) if births else []
    # A salt is random: a row that has it was made by this very commit.
    born = {id: n for id, n, salt in stored if salt == births[id]}
    ours = {mark.effect: mark for mark in commit.marks}
    found = flights(session, list(ours))
    marked = [effect for effect, mark in ours.items() if found.get(effect) == mark]
    return Committed(given | born, marked, list(born))
