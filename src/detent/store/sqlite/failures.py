"""What SQLite says when it fails, as the errors of the port."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import apsw

from detent.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

# A write the operating system did not take: as for SQLITE_FULL, room or quota is what is missing.
_WRITE_FAILED = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_COMMIT_ATOMIC,
    }
)
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
# The row is at fault, not the disk: the caller may halve and go on with the rest.
_ROW_REFUSED = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, apsw.RangeError)


def translate(error: apsw.Error) -> StoreError:
    """The port's error for one of SQLite's; its own text is kept in the details."""
    said = f"{type(error).__name__}: {error}"
    extended = extended_code(error)
    if isinstance(error, apsw.FullError) or extended in _WRITE_FAILED:
        return StoreError("store.full", f"SQLite could not write ({said}); make room", sqlite=said)
    if isinstance(error, _DAMAGED) or extended == apsw.SQLITE_IOERR_CORRUPTFS:
        return StoreError(
            "store.corrupt",
            f"SQLite finds the file damaged, or it is no database ({said}); restore a backup",
            sqlite=said,
        )
    if isinstance(error, _ROW_REFUSED):
        return StoreError(
            "store.refused", f"SQLite cannot store a row of the transaction ({said})", sqlite=said
        )
    return StoreError("store.unavailable", f"SQLite could not do it ({said})", sqlite=said)


def translated(method: Callable[P, R]) -> Callable[P, R]:
    """Let no error of SQLite out of the adapter."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except apsw.Error as error:
            raise translate(error) from error

    return call


def extended_code(error: apsw.Error) -> int:
    """SQLite's extended result code, 0 for errors of apsw itself."""
    return int(getattr(error, "extendedresult", 0))


def refused(error: Exception) -> StoreError:
    """The port's error for a Python value that has no place in a row."""
    said = f"{type(error).__name__}: {error}"
    return StoreError("store.refused", f"a value cannot be put into a row ({said})", sqlite=said)
