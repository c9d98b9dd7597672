"""What PostgreSQL says when it fails, as the errors of the port.

A server says by SQLSTATE what is wrong, but for one thing: why it lets nobody in. Then there is
only its text, which is looked at for a few words; one in another language is `store.unreachable`.
"""

from __future__ import annotations

import struct
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import psycopg
from psycopg import errors as sql

from detent.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

# Nothing of the transaction was written, and the same statements may well succeed when repeated.
PASSING = (sql.SerializationFailure, sql.DeadlockDetected)
# A Python value that has no place in a row.
UNFIT = (TypeError, ValueError, OverflowError, AttributeError, struct.error)

# SQLSTATE, or its first two characters -> code and what to do
_STATES = {
    "53100": ("store.full", "make room on the server"),
    "53300": ("store.crowded", "raise max_connections, or let fewer processes use it"),
    "25006": ("store.readonly", "name the primary server, not a replica"),
    "42501": ("store.rights", "grant the role what it lacks"),
    "28": ("store.login", "check the user, the password and pg_hba.conf"),
    "3D000": ("store.address", "check the database in the URL, or create it"),
    "42P01": ("store.corrupt", "a table is missing; restore a backup"),
    "XX001": ("store.corrupt", "restore a backup"),
    "XX002": ("store.corrupt", "rebuild the index with REINDEX"),
    "22": ("store.refused", ""),
    "23": ("store.refused", ""),
    "21": ("store.refused", ""),
    "54": ("store.refused", ""),
}
_REFUSED_LOGINS = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
)
_CROWDED = ("too many clients", "remaining connection slots", "too many connections")


class Failed(Exception):
    """A statement of a transaction failed, and everything was rolled back."""

    def __init__(self, at: int, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.at = at  # which statement; -1 for COMMIT itself
        self.error = error

    @property
    def guarded(self) -> bool:
        """Whether a guard found another number of rows than it must."""
        return isinstance(self.error, sql.DivisionByZero)


class Doubtful(Exception):
    """The connection was lost after COMMIT was sent and before it was answered."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


def translate(error: psycopg.Error) -> StoreError:
    """The port's error for one of PostgreSQL's; its own text is kept in the details."""
    said = said_by(error)
    state = error.sqlstate or ""
    code, todo = _STATES.get(state) or _STATES.get(state[:2]) or ("store.unavailable", "")
    if not state and isinstance(error, psycopg.DataError):
        code = "store.refused"
    hint = f"; {todo}" if todo else ""
    return StoreError(code, f"PostgreSQL could not do it ({said}){hint}", postgres=said)


def translate_opening(error: psycopg.Error, where: str) -> StoreError:
    """The error for a connection that could not be made."""
    said = said_by(error)
    words = said.lower()
    if error.sqlstate:
        plain = translate(error)
        return StoreError(plain.code, f"{where}: {plain.message}", postgres=said)
    code, todo = "store.unreachable", "is the server running, and is this its address?"
    if "does not exist" in words and "database" in words:
        code, todo = "store.address", "check the database in the URL, or create it"
    elif any(each in words for each in _REFUSED_LOGINS) or "role" in words:
        code, todo = "store.login", "check the user, the password and pg_hba.conf"
    elif any(each in words for each in _CROWDED):
        code, todo = _STATES["53300"]
    return StoreError(code, f"{where} cannot be opened ({said}); {todo}", postgres=said)


def translated(method: Callable[P, R]) -> Callable[P, R]:
    """Let no error of PostgreSQL out of the adapter."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except psycopg.Error as error:
            raise translate(error) from error
        except Failed as failed:
            raise translate(failed.error) from failed
        except Doubtful as lost:
            raise unknown(lost) from lost

    return call


def unknown(lost: Doubtful) -> StoreError:
    """The port's error for a write of which nobody knows whether it happened."""
    said = said_by(lost.error)
    return StoreError(
        "store.unavailable",
        f"the connection was lost before PostgreSQL had answered ({said}); it may have been done: "
        "look, or send the same again",
        postgres=said,
    )


def refused(error: Exception) -> StoreError:
    """The port's error for a Python value that has no place in a row."""
    said = f"{type(error).__name__}: {error}"
    return StoreError("store.refused", f"a value cannot be put into a row ({said})", postgres=said)


def said_by(error: psycopg.Error) -> str:
    """The first line of what PostgreSQL said, with the name of the error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
