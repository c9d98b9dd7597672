"""The OS lock beside a store: held by its owner, freed by the kernel when the owner dies.

A lease says until when an owner may act; the lock says that it still exists. So whoever gets the
lock knows that the last owner is gone, and need not wait for its lease to run out.

The lock belongs to the open file, not to a process: an engine whose writer lives in a process of
its own takes it, hands the descriptor on, and the writer adopts it. It is free when both are gone.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_held: list[int] = []


class StoreLock:
    """An exclusive lock on a file of its own; the file stays, since removing it would race."""

    __slots__ = ("_descriptor", "_path", "adopted")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self.adopted = False  # somebody else has taken it, for us too

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor >= 0

    @property
    def descriptor(self) -> int:
        """The open file that carries the lock, for others to adopt; -1 while it is not held."""
        return self._descriptor

    def adopt(self, descriptor: int) -> None:
        """Share a lock that was taken through this open file, which is closed by `free`."""
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self.adopted = True
        _held.append(descriptor)

    def take(self) -> bool:
        """Take the lock; False when another process, or another store of this one, has it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(descriptor):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        _held.append(descriptor)
        return True

    def free(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._descriptor < 0:
            return
        with suppress(ValueError):  # a forked child has let go of it already
            _held.remove(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1
        self.adopted = False


def is_locked(store: str | Path) -> bool:
    """Whether somebody holds the lock of the store at a path; looking takes it for an instant."""
    lock = StoreLock(Path(f"{store}.lock"))
    if lock.take():
        lock.free()
        return False
    return True


def _let_go_in_child() -> None:
    # A forked child shares the lock; as long as it lived, a dead owner would seem alive.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    os.register_at_fork(after_in_child=_let_go_in_child)

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
