"""Moving the WAL into the database file without making the writer wait for it.

When the WAL has grown past a limit, a thread with a connection of its own copies it in a few
passes, each over what was committed during the one before. A pass never blocks the writer and so
never ends level with a busy one; a blocking checkpoint would have to win the write lock from a
writer that hardly lets go of it (it was seen to wait more than a second, the WAL growing all the
while). So the writer itself copies the short rest, between two commits, and the WAL starts again
from its beginning: reusing its pages is cheaper than growing the file.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import apsw

CHECKPOINT_PAGES = 4_000
_PASSES = 3
_LEVEL_PAGES = 64  # so few pages were committed during a pass that another one gains nothing

_IDLE, _COPYING, _READY = range(3)


class Checkpointer:
    """Watches the WAL of one writer connection and copies it in a thread of its own."""

    __slots__ = ("_closing", "_due", "_filename", "_limit", "_phase", "_thread", "_writer")

    def __init__(self, writer: apsw.Connection, limit: int = CHECKPOINT_PAGES) -> None:
        self._writer = writer
        self._filename = writer.filename
        self._limit = limit
        self._phase = _IDLE
        self._closing = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="detent-checkpoint", daemon=True)
        writer.wal_autocheckpoint(0)
        writer.set_wal_hook(self._watch)
        self._thread.start()

    def finish(self) -> None:
        """Called by the writer after a commit: copy the rest, if the thread has done its part."""
        if self._phase == _READY:
            self._phase = _IDLE
            # The commit is durable in the WAL whatever happens here.
            with suppress(apsw.Error):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        """End the thread; its connection closes with it."""
        self._writer.set_wal_hook(None)
        self._closing = True
        self._due.set()
        self._thread.join()

    def _watch(self, _writer: apsw.Connection, _name: str, pages: int) -> int:
        if pages >= self._limit and self._phase == _IDLE:
            self._phase = _COPYING
            self._due.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        while self._due.wait() and not self._closing:
            self._due.clear()
            try:
                if connection is None:
                    connection = open_copier(self._filename)
                copy_wal(connection)
                self._phase = _READY
            except apsw.Error:  # the disk may be full: tried again after the next commit
                self._phase = _IDLE
        if connection is not None:
            connection.close()


def open_copier(filename: str) -> apsw.Connection:
    """A connection that only checkpoints."""
    connection = apsw.Connection(filename, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.wal_autocheckpoint(0)
    # Before its first read a connection does not know that there is a WAL, and copies nothing.
    connection.execute("PRAGMA user_version").fetchall()
    return connection


def copy_wal(connection: apsw.Connection) -> int:
    """Copy what is committed, then what was committed meanwhile; the number of pages copied."""
    level = 0
    for _ in range(_PASSES):
        _pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if copied - level < _LEVEL_PAGES:
            return copied
        level = copied
    return level
