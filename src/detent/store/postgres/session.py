"""One connection to PostgreSQL, made again when it was lost, and how statements go through it.

A transaction is a list of statements that travels whole, from BEGIN to COMMIT, in one pipeline:
one round trip, however many statements. No answer is looked at before the end, so a statement that
must have changed a certain number of rows says so itself and fails when it has not (`GUARD`).

When the connection is lost between COMMIT and its answer, nobody knows whether it happened, and the
statements may even still be on their way. `Doubtful` says so. Whoever committed a turn notes its
partitions with `suspect`; before anything else goes through the next connection, `cut` of these
partitions is raised: that waits for a transaction which holds the row, and fences one that has not
begun. After that, what is read is what became of it.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus

from detent.model.errors import StoreError
from detent.store.postgres.failures import (
    PASSING,
    UNFIT,
    Doubtful,
    Failed,
    refused,
    translate,
)
from detent.store.postgres.pipeline import Pipeline
from detent.store.postgres.values import ints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from detent.store.postgres.statements import Statement

    Connect = Callable[[], psycopg.Connection[Any]]

R = TypeVar("R")
# Fails with a division by zero unless the rows counted are as many as they must be.
GUARD = "SELECT 1 / (count(*) = {count})::int FROM {rows}"
_ATTEMPTS = 5  # at a transaction that met another one
_CUT = """
UPDATE partition SET cut = cut + 1 FROM unnest($1, $2) AS held(p, fence_epoch)
WHERE partition.p = held.p AND partition.fence_epoch = held.fence_epoch
RETURNING partition.p, partition.cut
"""


class Session:
    """One connection, used by one thread at a time."""

    __slots__ = ("_connect", "_connection", "_hook", "_inside", "_suspects", "changes", "cuts")

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: psycopg.Connection[Any] | None = connect()
        self._hook: Callable[[], None] | None = None
        self._inside = False
        self._suspects: dict[int, int] = {}  # p -> fence_epoch of a commit of unknown fate
        self.cuts: dict[int, int] = {}  # p -> what `cut` is, where it is not 0
        self.changes = 0  # rows written through this session

    def connection(self) -> psycopg.Connection[Any]:
        """The connection itself, for whoever makes tables."""
        return self._ready()

    # reading and single statements ---------------------------------------------------------------

    def rows(self, sql: str, values: Sequence[Any] = (), *, keep: bool = False) -> list[Any]:
        """All rows of a query; `keep` has the server keep its plan, for what every turn asks."""
        connection = self._ready()
        try:
            return self._execute(connection, sql, values, keep=keep).fetchall()
        except psycopg.OperationalError:
            if not self._lost() or self._inside:
                raise
        return self._execute(self._ready(), sql, values, keep=keep).fetchall()

    def row(self, sql: str, values: Sequence[Any] = (), *, keep: bool = False) -> Any:
        """The first row, or None."""
        found = self.rows(sql, values, keep=keep)
        return found[0] if found else None

    def change(self, sql: str, values: Sequence[Any] = (), *, keep: bool = False) -> int:
        """Run one statement that writes; the number of rows it changed."""
        return self.write(sql, values, keep=keep).rowcount

    def write(
        self, sql: str, values: Sequence[Any] = (), *, keep: bool = False
    ) -> psycopg.Cursor[Any]:
        """The same, with what it returned."""
        if self._hook is not None and not self._inside:
            try:
                return self.transact([(sql, values)])[0]
            except Failed as failed:
                raise failed.error from failed
        try:
            cursor = self._execute(self._ready(), sql, values, keep=keep)
        except psycopg.OperationalError:
            self._lost()
            raise
        self.changes += max(cursor.rowcount, 0)
        return cursor

    # transactions --------------------------------------------------------------------------------

    def transact(
        self, statements: Sequence[Statement], after: Sequence[Statement] = ()
    ) -> list[psycopg.Cursor[Any]]:
        """Run statements as one transaction, then what may be lost (`after`); their cursors.

        `Failed`: nothing was written. `Doubtful`: nobody knows.
        """
        return self.repeated(lambda: self._transact(statements, after))

    def repeated(self, act: Callable[[], R]) -> R:
        """Do it again when it met another transaction, so many times; nothing was written then."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return act()
            except PASSING:
                pass
            except Failed as failed:
                if not isinstance(failed.error, PASSING):
                    raise
        return act()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, for statements that depend on what was read before."""
        connection = self._ready()
        self._inside = True
        try:
            self._execute(connection, "BEGIN", ())
            yield
            if self._hook is not None:
                self._hook()
            self._execute(connection, "COMMIT", ())
        except psycopg.OperationalError:
            self._lost()
            raise
        finally:
            self._inside = False
            self._roll_back(connection)

    def before_commit(self, hook: Callable[[], None]) -> None:
        """Call this inside every transaction, right before its COMMIT."""
        self._hook = hook

    def suspect(self, fences: Sequence[tuple[int, int]]) -> None:
        """A commit over these (p, fence_epoch) has an unknown fate."""
        self._suspects.update(fences)

    def close(self) -> None:
        """Close the connection; twice is as good as once."""
        self._connect = _closed
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # inside --------------------------------------------------------------------------------------

    def _transact(
        self, statements: Sequence[Statement], after: Sequence[Statement]
    ) -> list[psycopg.Cursor[Any]]:
        connection = self._ready()
        sent = Pipeline(connection)
        whole = self._hook is None
        sent.send(statements, after if whole else (), commit=whole)
        if self._hook is not None and sent.error is None:
            self._hook()
            sent.send((), after, commit=True)
        if sent.committed:
            if sent.error is not None:
                self._lost()
            self.changes += sum(max(each.rowcount, 0) for each in sent.cursors)
            return sent.cursors
        error = sent.error or psycopg.InternalError("COMMIT was answered by a rollback")
        lost = self._lost()
        if lost and sent.ending is not None and not sent.refused:
            raise Doubtful(error)
        self._roll_back(connection)
        self._leave(error)
        if sent.unfit is not None:
            raise refused(sent.unfit) from sent.unfit
        raise Failed(sent.failed_at, error)

    def _execute(
        self,
        connection: psycopg.Connection[Any],
        sql: str,
        values: Sequence[Any],
        *,
        keep: bool = False,
    ) -> psycopg.Cursor[Any]:
        try:
            return connection.cursor(binary=True).execute(sql, values, prepare=keep)
        except psycopg.Error as error:
            self._leave(error)
            raise
        except UNFIT as error:
            raise refused(error) from error

    def _leave(self, error: psycopg.Error) -> None:
        """A server that takes no writes any more is left: the next connection may find another."""
        if isinstance(error, ReadOnlySqlTransaction) and self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ready(self) -> psycopg.Connection[Any]:
        """A connection that lives, as far as can be known without asking the server."""
        connection = self._connection
        if connection is not None and not _hung_up(connection):
            return connection
        if connection is not None:
            connection.close()
            self._connection = None
        if self._inside:
            raise StoreError("store.unavailable", "the connection was lost in a transaction")
        connection = self._connect()
        if self._suspects:
            try:
                self._cut(connection)
            except psycopg.Error as error:
                connection.close()
                raise translate(error) from error
        self._connection = connection
        return connection

    def _cut(self, connection: psycopg.Connection[Any]) -> None:
        held = (ints(list(self._suspects)), ints(list(self._suspects.values())))
        self.cuts.update(self._execute(connection, _CUT, held).fetchall())
        self._suspects.clear()

    def _lost(self) -> bool:
        """Whether the connection is gone; then it is forgotten."""
        connection = self._connection
        if connection is None:
            return True
        if connection.closed or connection.info.transaction_status == TransactionStatus.UNKNOWN:
            connection.close()
            self._connection = None
            return True
        return False

    def _roll_back(self, connection: psycopg.Connection[Any]) -> None:
        if connection.closed:
            return
        if connection.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                connection.cursor().execute("ROLLBACK")
        self._lost()


def _hung_up(connection: psycopg.Connection[Any]) -> bool:
    """Whether the other side has closed it, so far as the socket knows already."""
    if connection.closed:
        return True
    looked = poll()
    looked.register(connection.fileno(), POLLIN)
    try:
        while looked.poll(0):  # a farewell, and behind it the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return bool(connection.closed)


def _closed() -> psycopg.Connection[Any]:
    raise StoreError("store.unavailable", "the store is closed; open it again")
