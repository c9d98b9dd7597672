"""New instance rows, and the labels that go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import Birth
    from detent.ports.store import NewArrival
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

BORN_STATE = "scheduled"

_NUMBERS = "SELECT nextval('instance_n') FROM generate_series(1, $1)"
_FIELDS = (
    "id text, p int, tenant text, ns text, definition text, state text, prio int, due int, "
    "busy bool, key text, parent text, created int, updated int, salt bytes"
)
_NAMES = ", ".join(field.split()[0] for field in _FIELDS.split(", "))
INSERT_INSTANCES = Rows(
    f"INSERT INTO instance(n, {_NAMES}) SELECT * FROM $rows", f"n int, {_FIELDS}"
)
INSERT_LABELS = Rows(
    "INSERT INTO label(tenant, name, value, n) SELECT * FROM $rows ON CONFLICT DO NOTHING",
    "tenant text, name text, value text, n int",
)
_INSERT_MISSING = Rows(
    f"""
WITH born AS (
    INSERT INTO instance({_NAMES}) SELECT * FROM $rows
    ON CONFLICT (id) DO NOTHING RETURNING id, n, tenant),
labelled AS (
    INSERT INTO label(tenant, name, value, n)
    SELECT born.tenant, label.name, label.value, born.n
    FROM unnest($1, $2, $3) AS label(id, name, value) JOIN born ON born.id = label.id
    ON CONFLICT DO NOTHING)
SELECT id, n FROM born
""",
    _FIELDS,
)


def next_numbers(session: Session, count: int) -> list[int]:
    """Numbers no instance has; one that is not used stays unused."""
    return [row[0] for row in session.rows(_NUMBERS, (count,), keep=True)] if count else []


def insert_missing(arrivals: Sequence[NewArrival], tick: int) -> Statement | None:
    """Insert the births among the arrivals as rows of version 0; returns id and n of the new."""
    rows = [
        _unborn_row(arrival, arrival.birth, tick)
        for arrival in arrivals
        if arrival.birth is not None
    ]
    if not rows:
        return None
    labels = [
        (arrival.birth.id, name, value)
        for arrival in arrivals
        if arrival.birth is not None
        for name, value in arrival.birth.labels
    ]
    return _INSERT_MISSING.of(rows, *(keys([row[at] for row in labels]) for at in range(3)))


def insert_labels(births: Sequence[tuple[Birth, int]]) -> Statement | None:
    """Insert the labels of new instances, whose numbers are known."""
    rows = [(birth.tenant, name, value, n) for birth, n in births for name, value in birth.labels]
    return INSERT_LABELS.of(rows) if rows else None


def _unborn_row(arrival: NewArrival, birth: Birth, tick: int) -> tuple[Any, ...]:
    return (
        birth.id,
        arrival.p,
        birth.tenant,
        birth.namespace,
        birth.definition,
        BORN_STATE,
        birth.priority,
        None,
        False,
        birth.key,
        birth.parent,
        tick,
        tick,
        arrival.salt,
    )
