"""What stands in an instance's row, against the snapshot it was written with."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.links import ChainBroken
from detent.kernel.survey import next_due
from detent.model.snapshot import decode_snapshot

QUARANTINED = "consistency"


class Stored(NamedTuple):
    """An instance's row and its snapshot, as stored; body is None while its version is 0."""

    n: int
    id: str
    tenant: str
    namespace: str
    definition: str
    state: str
    priority: int
    due: int | None
    busy: bool
    parent: str | None
    version: int
    body: bytes | None


class _Listed(Struct):
    """The part of a snapshot that its row repeats."""

    id: str
    version: int = 0
    tenant: str = "default"
    namespace: str = "default"
    definition: str = ""
    state: str = "scheduled"
    priority: int = 1
    parent: Any = None
    paused_reason: str = ""
    effects: list[Raw] = msgspec.field(default_factory=list)
    blobs: list[str] = msgspec.field(default_factory=list)


_listed = msgspec.json.Decoder(_Listed)


def check_row(row: Stored) -> list[str]:
    """Compare the row with its snapshot; the digests of the blobs that the snapshot needs."""
    body = row.body or b""
    try:
        listed = _listed.decode(body)
    except msgspec.MsgspecError:
        if row.state == "paused":
            return []  # quarantined because of that; its bytes match their digest
        raise ChainBroken(
            f"instance {row.id}", "snapshot", "a snapshot", "unreadable bytes"
        ) from None
    parent = listed.parent.get("instance") if isinstance(listed.parent, dict) else None
    for what, expected, found in (
        ("id", listed.id, row.id),
        ("version", listed.version, row.version),
        ("tenant", listed.tenant, row.tenant),
        ("namespace", listed.namespace, row.namespace),
        ("definition", listed.definition, row.definition),
        ("state", listed.state, row.state),
        ("priority", listed.priority, row.priority),
        ("parent", parent, row.parent),
        ("busy", bool(listed.effects), row.busy),
    ):
        if expected != found:
            raise ChainBroken(f"instance {row.id}", what, expected, found)
    if listed.paused_reason != QUARANTINED:
        _check_due(row, body, busy=bool(listed.effects))
    return listed.blobs


def _check_due(row: Stored, body: bytes, *, busy: bool) -> None:
    """A stored due tick may be too early, never too late: it would never be looked at in time."""
    if row.state in TERMINAL and not busy:
        return
    due = next_due(decode_snapshot(body), 0)
    if due is not None and (row.due is None or row.due > due) and not (due == 0 and row.due):
        raise ChainBroken(f"instance {row.id}", "due", due, row.due)
