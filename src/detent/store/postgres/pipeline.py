"""A transaction on its way: all of its statements are sent before any answer is waited for."""

from __future__ import annotations

from select import POLLIN, POLLOUT, poll
from typing import TYPE_CHECKING, Any

import psycopg

from detent.store.postgres.failures import UNFIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.store.postgres.statements import Statement


class Pipeline:
    """Statements on their way through one pipeline, and what came back."""

    __slots__ = ("_begin", "_connection", "cursors", "ending", "error", "refused", "unfit")

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._begin = self._cursor()
        self.cursors: list[psycopg.Cursor[Any]] = []
        self.ending: psycopg.Cursor[Any] | None = None  # of COMMIT
        self.error: psycopg.Error | None = None
        self.unfit: Exception | None = None
        self.refused = False  # the server has said no: whatever follows, it was not committed

    def send(
        self, statements: Sequence[Statement], after: Sequence[Statement], *, commit: bool
    ) -> None:
        """Send everything, then wait for all answers."""
        try:
            with self._connection.pipeline() as pipeline:
                try:
                    self._queue(statements, after, commit=commit)
                    _push(self._connection)
                    pipeline.sync()
                except psycopg.Error as error:
                    self.error = error
                    # One that ends the connection may come after the commit, and is no answer.
                    self.refused = error.diag.severity_nonlocalized == "ERROR"
                except UNFIT as error:
                    self.unfit, self.refused = error, True
                    self.error = psycopg.DataError(str(error))
        except psycopg.Error as error:
            self.error = self.error or error

    def _queue(
        self, statements: Sequence[Statement], after: Sequence[Statement], *, commit: bool
    ) -> None:
        if not self.cursors:
            self._begin.execute("BEGIN", prepare=True)
        for sql, values in statements:
            cursor = self._cursor()
            self.cursors.append(cursor)
            cursor.execute(sql, values, prepare=True)
        if commit:
            self.ending = self._cursor()
            self.ending.execute("COMMIT", prepare=True)
            for sql, values in after:
                self._cursor().execute(sql, values, prepare=True)

    def _cursor(self) -> psycopg.Cursor[Any]:
        return self._connection.cursor(binary=True)

    @property
    def committed(self) -> bool:
        """Whether the server has said that it committed; on a failed one it says ROLLBACK."""
        result = self.ending.pgresult if self.ending is not None else None
        return result is not None and result.command_status == b"COMMIT"

    @property
    def failed_at(self) -> int:
        """The first statement without an answer; -1 when all have one."""
        for at, cursor in enumerate(self.cursors):
            if cursor.pgresult is None:
                return at
        return -1


def _push(connection: psycopg.Connection[Any]) -> None:
    """Hand everything that was sent to the kernel.

    A pipeline of psycopg tries once and then waits for answers, which never come when a part of the
    questions is still here: more than the buffer of a socket takes.
    """
    pgconn = connection.pgconn
    looked = poll()
    looked.register(connection.fileno(), POLLIN | POLLOUT)
    while pgconn.flush():
        for _number, event in looked.poll():
            if event & POLLIN:
                pgconn.consume_input()
