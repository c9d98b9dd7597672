"""The rows of a commit beside its turns: marks, doubts, blobs, gates, work, lists, and the seal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.store.postgres.blobs import INSERT_BLOBS
from detent.store.postgres.flights import delete_flights, insert_marks, insert_tombstones
from detent.store.postgres.gates import write_gates
from detent.store.postgres.own_lists import write_lists
from detent.store.postgres.statements import Rows, Step, keys
from detent.store.postgres.work_rows import write_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detent.model.decision import Doubt
    from detent.ports.store import Commit

_UPSERT_DOUBTS = Rows(
    """
INSERT INTO doubt(effect, inst, state, next_try, since, reason)
SELECT effect, inst, state, next_try, $1, reason FROM $rows
ON CONFLICT (effect) DO UPDATE SET state = excluded.state, next_try = excluded.next_try,
    reason = excluded.reason
""",
    "effect text, inst text, state text, next_try int, reason text",
)
_DELETE_DOUBTS = "DELETE FROM doubt WHERE effect = ANY($1)"
_INSERT_SEAL = "INSERT INTO seal(n, tick, roots, digest, signature) VALUES ($1, $2, $3, $4, $5)"


def effect_rows(commit: Commit) -> Iterator[Step]:
    """The statements, in the order in which they run."""
    # Settled rows go first: the same key may be marked again in this very commit.
    if commit.settled:
        yield Step(delete_flights(commit.settled))
    if commit.marks:
        yield Step(insert_marks(commit.marks), returns="marked")
    if commit.tombstones:
        inserted, none_marked = insert_tombstones(commit.tombstones, commit.tick)
        yield Step(inserted)
        yield Step(none_marked, wrong="flight")
    if commit.doubts:
        yield from _doubt_rows(commit.doubts, commit.tick)
    if commit.blobs:
        yield Step(INSERT_BLOBS.of(commit.blobs))
    if commit.gate_rows or commit.gate_dues:
        yield from map(Step, write_gates(commit.gate_rows, commit.gate_dues))
    if commit.work or commit.called_off:
        yield from map(Step, write_work(commit))
    if commit.events or commit.deliveries:
        yield from map(Step, write_lists(commit.events, commit.deliveries))
    if commit.seal is not None:
        yield Step((_INSERT_SEAL, commit.seal))


def _doubt_rows(doubts: Sequence[tuple[str, Doubt]], tick: int) -> Iterator[Step]:
    """Of several of one effect the last counts; what was removed before it begins anew."""
    over = [doubt.effect for _instance, doubt in doubts if not doubt.state]
    if over:
        yield Step((_DELETE_DOUBTS, [keys(over)]))
    last = {doubt.effect: (instance, doubt) for instance, doubt in doubts}
    rows = [
        (doubt.effect, instance, doubt.state, doubt.next_try, doubt.reason)
        for instance, doubt in last.values()
        if doubt.state
    ]
    if rows:
        yield Step(_UPSERT_DOUBTS.of(rows, tick))
