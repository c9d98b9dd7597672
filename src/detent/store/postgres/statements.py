"""Statements over many rows at once: a column is one parameter, packed before anything is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.store.postgres.failures import UNFIT, refused
from detent.store.postgres.values import Column, bools, byte_strings, ints, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PACK: dict[str, Callable[[Sequence[Any]], Column]] = {
    "bool": bools,
    "bytes": byte_strings,
    "int": ints,
    "text": texts,
}
Statement = tuple[str, "Sequence[Any]"]
_HERE = re.compile(r"\$(\d+)")


class Step(NamedTuple):
    """One statement of a commit."""

    statement: Statement
    returns: str = ""  # born | marked: what its rows are
    wrong: str = ""  # fence | version | birth | flight: what contradicts the store when it fails


class Rows:
    """A statement in which `$rows` stands for rows of the columns named, in the order given.

    The columns come first among the parameters; `$1` and so on in the text are those that follow.
    """

    __slots__ = ("_packers", "sql")

    def __init__(self, sql: str, columns: str) -> None:
        pairs = [column.split() for column in columns.split(",")]
        self._packers = [_PACK[kind] for _name, kind in pairs]
        count = len(pairs)
        shifted = _HERE.sub(lambda found: f"${int(found[1]) + count}", sql)
        holders = ", ".join(f"${at + 1}" for at in range(count))
        names = ", ".join(name for name, _kind in pairs)
        self.sql = shifted.replace("$rows", f"unnest({holders}) AS new({names})")

    def of(self, rows: Sequence[Sequence[Any]], *more: Any) -> Statement:
        """The statement over these rows, of which there must be one at least."""
        try:
            columns = zip(self._packers, zip(*rows, strict=True), strict=True)
            return self.sql, [*(pack(column) for pack, column in columns), *more]
        except UNFIT as error:
            raise refused(error) from error


def keys(values: Sequence[Any], kind: str = "text") -> Column:
    """A list of keys as one parameter, for `= ANY($1)`."""
    try:
        return _PACK[kind](values)
    except UNFIT as error:
        raise refused(error) from error
