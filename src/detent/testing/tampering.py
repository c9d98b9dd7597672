"""Random harm to a store file: one covered byte, row or order changed, as an intruder would.

`tamper(path, seed)` does one thing and says what it did. Everything it does must be found by
`verify`, so it never touches what the chain does not cover (wall times, leases, arrivals, marks).
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw

# table -> columns that the chain, or a digest in it, covers
COVERED = {
    "journal": ("seq", "turn", "tick", "inst", "snapshot_digest", "digest", "body", "head"),
    "turn": ("p", "n", "tick", "heads", "root"),
    "snapshot": ("version", "body"),
    "instance": ("id", "p", "tenant", "ns", "definition", "state", "prio", "busy", "salt"),
    "seal": ("n", "tick", "roots", "digest"),
    "partition": ("turn", "root"),
    "definition": ("body",),
    "blob": ("body",),
}
# Seals are checked against one another and the turns; only an anchor knows how many there were.
ORDERED = ("journal", "turn")


def tamper(path: str | Path, seed: int) -> str:
    """Change one thing in the store at `path`; what it was, in words."""
    chance = random.Random(seed)
    connection = apsw.Connection(str(path))
    try:
        while True:
            act = chance.choice((_flip, _flip, _flip, _delete, _insert, _swap, _remove_instance))
            done = act(connection, chance)
            if done:
                return f"seed {seed}: {done}"
    finally:
        connection.close()


def tamper_signatures(path: str | Path, seed: int) -> str:
    """Change what only a public key can tell in a store whose seals are all signed."""
    chance = random.Random(seed)
    connection = apsw.Connection(str(path))
    try:
        act = chance.choice((_flip_signature, _swap_signatures, _remove_signatures))
        return f"seed {seed}: {act(connection, chance)}"
    finally:
        connection.close()


def _flip(connection: apsw.Connection, chance: random.Random) -> str | None:
    table = chance.choice(list(COVERED))
    row = _row(connection, table, chance)
    if row is None:
        return None
    column = chance.choice(COVERED[table])
    value = _one(connection, f"SELECT {column} FROM {table} WHERE rowid = ?", row)
    changed = 1 - value if column == "busy" else _changed(value, chance)
    if changed is None or changed == value:
        return None
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))
    except apsw.ConstraintError:
        return None
    return f"{table}.{column} of row {row} from {value!r} to {changed!r}"


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bytes):
        if not value:
            return None
        at = chance.randrange(len(value))
        return value[:at] + bytes([value[at] ^ (1 << chance.randrange(8))]) + value[at + 1 :]
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 1000, -1000))
    if isinstance(value, str):
        at = chance.randrange(len(value))
        return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
    return None


def _delete(connection: apsw.Connection, chance: random.Random) -> str | None:
    table = chance.choice((*ORDERED, "snapshot", "instance"))
    row = _row(connection, table, chance)
    connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
    return f"deleted {table} row {row}"


def _insert(connection: apsw.Connection, chance: random.Random) -> str | None:
    """A copy of a row, put at the end or in the place of a later one."""
    row = _row(connection, "journal", chance)
    columns = "inst, seq, turn, tick, snapshot_digest, digest, body, head"
    shift = chance.choice((0, 1))
    connection.execute(
        f"INSERT INTO journal({columns}) SELECT inst, seq + ?, turn, tick, snapshot_digest, "
        "digest, body, head FROM journal WHERE pos = ?",
        (shift, row),
    )
    return f"inserted a copy of journal row {row} with seq + {shift}"


def _swap(connection: apsw.Connection, chance: random.Random) -> str | None:
    """Two rows change places: all but the key of each is the other's."""
    a, b = (_row(connection, "journal", chance) for _ in range(2))
    what = chance.choice(("pos", "body", "head", "digest"))
    if a == b:
        return None
    one, two = (_one(connection, f"SELECT {what} FROM journal WHERE pos = ?", x) for x in (a, b))
    if one == two or (what == "pos" and _partition(connection, a) != _partition(connection, b)):
        return None  # positions order rows within a partition; between two they say nothing
    if what == "pos":
        connection.execute("UPDATE journal SET pos = -1 WHERE pos = ?", (a,))
        connection.execute("UPDATE journal SET pos = ? WHERE pos = ?", (a, b))
        connection.execute("UPDATE journal SET pos = ? WHERE pos = -1", (b,))
    else:
        connection.execute(f"UPDATE journal SET {what} = ? WHERE pos = ?", (two, a))
        connection.execute(f"UPDATE journal SET {what} = ? WHERE pos = ?", (one, b))
    return f"swapped {what} of journal rows {a} and {b}"


def _remove_instance(connection: apsw.Connection, chance: random.Random) -> str | None:
    n = _row(connection, "instance", chance)
    connection.execute("DELETE FROM journal WHERE inst = ?", (n,))
    connection.execute("DELETE FROM snapshot WHERE n = ?", (n,))
    connection.execute("DELETE FROM instance WHERE n = ?", (n,))
    return f"removed instance {n} whole"


def _flip_signature(connection: apsw.Connection, chance: random.Random) -> str | None:
    row = _row(connection, "seal", chance)
    value = _one(connection, "SELECT signature FROM seal WHERE n = ?", row)
    _sign(connection, row, _changed(value, chance))
    return f"signature of seal {row}"


def _swap_signatures(connection: apsw.Connection, chance: random.Random) -> str | None:
    rows = [row[0] for row in connection.execute("SELECT n FROM seal ORDER BY n")]
    a, b = chance.sample(rows, 2)
    one, two = (_one(connection, "SELECT signature FROM seal WHERE n = ?", x) for x in (a, b))
    _sign(connection, a, two)
    _sign(connection, b, one)
    return f"signatures of seals {a} and {b} swapped"


def _remove_signatures(connection: apsw.Connection, chance: random.Random) -> str | None:
    """All from some seal on; those before it alone would take nothing from the proof."""
    first = _row(connection, "seal", chance)
    connection.execute("UPDATE seal SET signature = x'' WHERE n >= ?", (first,))
    return f"signatures from seal {first} on removed"


def _sign(connection: apsw.Connection, n: int | None, signature: bytes) -> None:
    connection.execute("UPDATE seal SET signature = ? WHERE n = ?", (signature, n))


def _partition(connection: apsw.Connection, pos: int | None) -> Any:
    sql = "SELECT p FROM instance WHERE n = (SELECT inst FROM journal WHERE pos = ?)"
    return _one(connection, sql, pos)


def _row(connection: apsw.Connection, table: str, chance: random.Random) -> int | None:
    rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    return chance.choice(rows) if rows else None


def _one(connection: apsw.Connection, sql: str, row: int | None) -> Any:
    return connection.execute(sql, (row,)).fetchall()[0][0]
