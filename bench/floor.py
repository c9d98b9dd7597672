"""The floor: how fast SQLite on this disk takes the rows of a step, with no engine at all.

The workload is fixed by the design and never changes with the engine's layout: per step one
snapshot upsert (about 600 bytes), one effect insert, one effect update and two chained audit rows
(about 150 bytes, SHA-256 over the head before and the row); 500 instances share a commit; three
steps take six commits. The engine's figures are quoted as a share of this one, so the script is
written in the plain fast way and must stay honest: never slow it down, shrink its rows or change
their number to flatter the engine.

Call order: `main` -> `measure` -> `_open`, `_batch` -> (`_plan`, `_settle`: a commit each) x 3.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INSTANCES_PER_COMMIT = 500
STEPS = 3
SNAPSHOT_BYTES = 600
EFFECT_BYTES = 120
AUDIT_BYTES = 150
AUTOCHECKPOINT_PAGES = 4_000
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")

SCHEMA = """
CREATE TABLE snapshot(n INTEGER PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE effect(
    n INTEGER PRIMARY KEY, inst INTEGER NOT NULL, state INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE audit(
    pos INTEGER PRIMARY KEY, inst INTEGER NOT NULL, body BLOB NOT NULL, head BLOB NOT NULL);
"""
UPSERT_SNAPSHOT = (
    "INSERT INTO snapshot(n, version, body) VALUES (?, ?, ?) "
    "ON CONFLICT(n) DO UPDATE SET version = excluded.version, body = excluded.body"
)
INSERT_EFFECT = "INSERT INTO effect(n, inst, state, body) VALUES (?, ?, 0, ?)"
UPDATE_EFFECT = "UPDATE effect SET state = 1 WHERE n = ?"
INSERT_AUDIT = "INSERT INTO audit(inst, body, head) VALUES (?, ?, ?)"

Row = tuple[object, ...]


def measure(instances: int = 10_000, directory: Path | None = None) -> float:
    """Run that many three-step instances, in whole commits, and return steps per second."""
    batches = -(-instances // INSTANCES_PER_COMMIT)
    directory = directory or disk_directory()
    with tempfile.TemporaryDirectory(dir=directory, prefix="detent-floor-") as place:
        connection = _open(Path(place) / "floor.db")
        try:
            head = _batch(connection, 0, bytes(32))  # pages, plans and the file's first growth
            began = time.perf_counter()
            for number in range(1, batches + 1):
                head = _batch(connection, number, head)
            elapsed = time.perf_counter() - began
        finally:
            connection.close()
    return batches * INSTANCES_PER_COMMIT * STEPS / elapsed


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", AUTOCHECKPOINT_PAGES)
    connection.execute(SCHEMA)
    return connection


def _batch(connection: apsw.Connection, number: int, head: bytes) -> bytes:
    first = number * INSTANCES_PER_COMMIT
    instances = range(first, first + INSTANCES_PER_COMMIT)
    for step in range(STEPS):
        head = _plan(connection, instances, step, head)
        head = _settle(connection, instances, step, head)
    return head


def _plan(connection: apsw.Connection, instances: Sequence[int], step: int, head: bytes) -> bytes:
    snapshots = [(n, step, _body(n, step, SNAPSHOT_BYTES)) for n in instances]
    effects = [(n * STEPS + step, n, _body(n, step, EFFECT_BYTES)) for n in instances]
    audit, head = _chain(instances, step, head)
    _commit(
        connection, ((UPSERT_SNAPSHOT, snapshots), (INSERT_EFFECT, effects), (INSERT_AUDIT, audit))
    )
    return head


def _settle(connection: apsw.Connection, instances: Sequence[int], step: int, head: bytes) -> bytes:
    effects = [(n * STEPS + step,) for n in instances]
    audit, head = _chain(instances, step, head)
    _commit(connection, ((UPDATE_EFFECT, effects), (INSERT_AUDIT, audit)))
    return head


def _commit(connection: apsw.Connection, writes: Iterable[tuple[str, Sequence[Row]]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement, rows in writes:
        connection.executemany(statement, rows)
    connection.execute("COMMIT")


def _chain(instances: Sequence[int], step: int, head: bytes) -> tuple[list[Row], bytes]:
    rows: list[Row] = []
    for n in instances:
        body = _body(n, step, AUDIT_BYTES)
        head = hashlib.sha256(head + body).digest()
        rows.append((n, body, head))
    return rows, head


def _body(n: int, step: int, size: int) -> bytes:
    return b"%016d%04d" % (n, step) + b"x" * (size - 20)


def disk_directory() -> Path:
    """Return the first of the temporary and the present directory that is not kept in memory."""
    candidates = (Path(tempfile.gettempdir()), Path.cwd())
    for candidate in candidates:
        if file_system(candidate) not in MEMORY_FILE_SYSTEMS:
            return candidate
    sys.exit("the floor needs a real disk, found only memory file systems; name one with --dir")


def file_system(directory: Path) -> str:
    """Return the type of the file system that holds a directory, or "unknown"."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return "unknown"
    place = directory.resolve()
    found, depth = "unknown", -1
    for line in mounts.read_text(encoding="utf-8").splitlines():
        point, kind = line.split()[1:3]
        mounted = Path(point.replace("\\040", " "))
        if place.is_relative_to(mounted) and len(mounted.parts) >= depth:
            found, depth = kind, len(mounted.parts)
    return found


def main() -> None:
    """Measure once and print one JSON object."""
    parser = argparse.ArgumentParser(description="Measure the fixed SQLite floor.")
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--dir", type=Path, default=None, help="a directory on a real disk")
    arguments = parser.parse_args()
    directory = arguments.dir or disk_directory()
    value = measure(arguments.instances, directory)
    print(
        json.dumps(
            {
                "figure": "floor",
                "value": round(value),
                "unit": "steps/s",
                "instances": arguments.instances,
                "sqlite": apsw.sqlite_lib_version(),
                "file_system": file_system(directory),
            }
        )
    )


if __name__ == "__main__":
    main()
