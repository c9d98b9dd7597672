"""New instance rows; their numbers are given inside the transaction, as others give them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.store.sqlite.listing import INSERT_LABELS, label_rows
from detent.store.sqlite.statements import ManyKeys, ManyRows, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.model.decision import Birth
    from detent.ports.store import NewArrival

BORN_STATE = "scheduled"

_INSERT = (
    "INSERT INTO instance(n, id, p, tenant, ns, definition, state, prio, due, busy, key, parent, "
    "created, updated, salt) VALUES"
)
_ROW = f"({', '.join('?' * 15)})"
INSERT_INSTANCES = ManyRows(_INSERT, _ROW)
_INSERT_MISSING = ManyRows(_INSERT, _ROW, "ON CONFLICT(id) DO NOTHING")
_SELECT_MADE = ManyKeys("SELECT id, n FROM instance WHERE n IN ($keys)")
_LAST_NUMBER = "SELECT coalesce(max(n), 0) FROM instance"


class Numbers:
    """Gives out the next instance numbers of one transaction; asks the store only when used."""

    __slots__ = ("_connection", "_last")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._last = -1

    def next(self) -> int:
        """A number no instance has."""
        if self._last < 0:
            self._last = row_of(self._connection, _LAST_NUMBER)[0]
        self._last += 1
        return self._last


def insert_missing(
    connection: apsw.Connection, arrivals: Sequence[NewArrival], tick: int, numbers: Numbers
) -> dict[str, int]:
    """Insert the births among the arrivals as rows of version 0; id and number of the new ones."""
    given: list[tuple[str, int]] = []
    flat: list[Any] = []
    births = [(arrival.birth, arrival) for arrival in arrivals if arrival.birth is not None]
    for birth, arrival in births:
        n = numbers.next()
        given.append((birth.id, n))
        flat += (n, birth.id, arrival.p, birth.tenant, birth.namespace)
        flat += (birth.definition, BORN_STATE, birth.priority, None, 0, birth.key, birth.parent)
        flat += (tick, tick, arrival.salt)
    # Nearly always all are new, and rows that are returned one by one take longer than the insert.
    if _INSERT_MISSING.run(connection, flat) != len(given):
        given = _SELECT_MADE.fetch(connection, [n for _, n in given])
    made = dict(given)
    label(connection, [birth for birth, _ in births], made)
    return made


def label(connection: apsw.Connection, births: Sequence[Birth], made: dict[str, int]) -> None:
    """Insert the labels of the instances that are new."""
    flat: list[Any] = []
    for birth in births:
        if birth.labels and birth.id in made:
            flat += label_rows(birth, made[birth.id])
    INSERT_LABELS.run(connection, flat)
