"""A disk that can lose power: it records what is written through SQLite, and what was synced.

`Disk` is a VFS. It hands everything on to the ordinary one and keeps a list of every write,
truncation, sync and deletion, in order. Power going at an operation means that all before it were
asked for; `survivors` then says what each file holds when power is back. What was followed by a
sync of its file is there. Of the rest a disk may keep whatever it likes: nothing, all, a beginning
that ends within a write, some writes and not those before them, or single sectors of any.

SQLite assumes that a write leaves the bytes beside it alone (its POWERSAFE_OVERWRITE), and
so does this. A new file is there once it was synced: SQLite syncs its directory with it, and by
that every deletion before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import apsw

Keep = Literal["nothing", "all", "beginning", "some", "sectors"]
KEEPS: tuple[Keep, ...] = ("nothing", "all", "beginning", "some", "sectors")
SECTORS = (512, 4_096)
SUFFIXES = ("", "-wal", "-journal")


class Operation(NamedTuple):
    """One thing asked of the disk; `moment` is what the observer said just before it."""

    kind: Literal["write", "truncate", "sync", "delete", "delete_synced"]
    file: str  # one of SUFFIXES
    offset: int = 0
    data: bytes = b""
    moment: Any = None


class Loss(NamedTuple):
    """What a disk keeps of unsynced writes when power goes."""

    keep: Keep
    sector: int


class Disk(apsw.VFS):
    """The VFS of one store; open a connection with `vfs=disk.name`, and `close` it at the end."""

    def __init__(self, path: Path, observe: Callable[[], Any]) -> None:
        self.name = f"detent-disk-{id(self):x}"
        super().__init__(self.name, "")
        self.operations: list[Operation] = []
        self._path = str(path)
        self._observe = observe

    def close(self) -> None:
        """Forget the VFS; no connection may use it any more."""
        self.unregister()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's names
        """Open a file whose writes are recorded."""
        filename = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        return _File(self, filename, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file."""
        self.record("delete_synced" if syncdir else "delete", filename)
        super().xDelete(filename, syncdir)

    def record(self, kind: Any, filename: str, offset: int = 0, data: bytes = b"") -> None:
        """Add one operation to the list."""
        file = filename.removeprefix(self._path)
        self.operations.append(Operation(kind, file, offset, data, self._observe()))


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, filename: str, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._filename = filename

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.record("write", self._filename, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.record("truncate", self._filename, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        # Not handed on: the real disk keeps its power, and would take a millisecond each time.
        self._disk.record("sync", self._filename)


Files = dict[str, bytes]


def read_files(path: Path) -> Files:
    """The files of a store as they are now, by suffix."""
    found = {suffix: Path(f"{path}{suffix}") for suffix in SUFFIXES}
    return {suffix: file.read_bytes() for suffix, file in found.items() if file.exists()}


def write_files(path: Path, files: Mapping[str, bytes]) -> None:
    """Put files where a store will be opened; there must be none yet."""
    for suffix, content in files.items():
        Path(f"{path}{suffix}").write_bytes(content)


def survivors(
    before: Mapping[str, bytes], done: Iterable[Operation], loss: Loss, rng: Random
) -> Files:
    """What the files hold after power went, `done` being all that was asked for by then."""
    synced: dict[str, bytearray | None] = dict.fromkeys(SUFFIXES)
    synced |= {file: bytearray(body) for file, body in before.items()}
    pending: dict[str, list[Operation]] = {file: [] for file in SUFFIXES}
    for operation in done:
        file = operation.file
        pending[file].append(operation)
        if operation.kind in ("sync", "delete_synced"):
            if synced[file] is None:
                _sync_directory(synced, pending)
            synced[file] = _applied(synced[file], pending[file])
            pending[file] = []
    for file, waiting in pending.items():
        kept = list(_kept(waiting, loss, rng))
        if kept:
            synced[file] = _applied(synced[file], kept)
    return {file: bytes(body) for file, body in synced.items() if body is not None}


def _sync_directory(
    synced: dict[str, bytearray | None], pending: dict[str, list[Operation]]
) -> None:
    for file, waiting in pending.items():
        for place in reversed(range(len(waiting))):
            if waiting[place].kind == "delete":
                synced[file] = None
                pending[file] = waiting[place + 1 :]
                break


def _applied(body: bytearray | None, operations: Iterable[Operation]) -> bytearray | None:
    for operation in operations:
        if operation.kind in ("delete", "delete_synced"):
            body = None
            continue
        if body is None:
            body = bytearray()
        end = operation.offset + len(operation.data)
        if operation.kind == "truncate":
            del body[end:]
        if operation.kind != "sync" and len(body) < end:
            body.extend(bytes(end - len(body)))
        if operation.kind == "write":
            body[operation.offset : end] = operation.data
    return body


def _kept(waiting: list[Operation], loss: Loss, rng: Random) -> Iterator[Operation]:
    match loss.keep:
        case "nothing":
            return
        case "all":
            yield from waiting
        case "beginning":
            whole = rng.randint(0, len(waiting))
            yield from waiting[:whole]
            if whole < len(waiting):
                parts = _sectors(waiting[whole], loss.sector)
                yield from parts[: rng.randrange(len(parts))]
        case "some":
            yield from (each for each in waiting if rng.random() < 0.5)
        case "sectors":
            for each in waiting:
                yield from (part for part in _sectors(each, loss.sector) if rng.random() < 0.5)


def _sectors(operation: Operation, size: int) -> list[Operation]:
    """A write cut at the borders of sectors; anything else whole."""
    if operation.kind != "write":
        return [operation]
    data, start = operation.data, operation.offset
    end = start + len(data)
    borders = [start, *range(start - start % size + size, end, size), end]
    return [
        operation._replace(offset=one, data=data[one - start : two - start])
        for one, two in pairwise(borders)
    ]
