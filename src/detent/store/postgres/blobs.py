"""Blobs: bytes of an instance by their digest, written by a commit or by whoever has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.store.postgres.session import Session

INSERT_BLOBS = Rows(
    "INSERT INTO blob(inst, digest, body) SELECT * FROM $rows ON CONFLICT DO NOTHING",
    "inst text, digest text, body bytes",
)
_BLOBS = "SELECT digest, body FROM blob WHERE inst = $1 AND digest = ANY($2)"


def blobs(session: Session, instance_id: str, digests: Sequence[str]) -> dict[str, bytes]:
    """The bodies there are, by digest."""
    if not digests:
        return {}
    return dict(session.rows(_BLOBS, (instance_id, keys(digests))))


def put_blob(session: Session, instance_id: str, digest: str, body: bytes) -> None:
    """Keep bytes; twice is as good as once."""
    session.write(*INSERT_BLOBS.of([(instance_id, digest, body)]))
