"""Blobs: bytes of an instance by their digest, written by a commit or by whoever has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.store.sqlite.statements import row_of, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

INSERT_BLOB = "INSERT INTO blob(inst, digest, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_BLOB = "SELECT body FROM blob WHERE inst = ? AND digest = ?"


def blobs(
    connection: apsw.Connection, instance_id: str, digests: Sequence[str]
) -> dict[str, bytes]:
    """The bodies there are, by digest."""
    found: dict[str, bytes] = {}
    for digest in digests:
        row = row_of(connection, _BLOB, (instance_id, digest))
        if row is not None:
            found[digest] = row[0]
    return found


def put_blob(connection: apsw.Connection, instance_id: str, digest: str, body: bytes) -> None:
    """Keep bytes; twice is as good as once."""
    with transaction(connection):
        connection.execute(INSERT_BLOB, (instance_id, digest, body))
