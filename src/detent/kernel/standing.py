"""What stands in an instance's row, against the snapshot it was written with."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw, Struct

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.links import ChainBroken
from detent.kernel.survey import next_due
from detent.model.snapshot import decode_snapshot

QUARANTINED = "consistency"


class Stored(Protocol):
    """An instance's row with its snapshot, read at one moment; body is None at version 0."""

    @property
    def n(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def due(self) -> int | None: ...
    @property
    def busy(self) -> bool: ...
    @property
    def priority(self) -> int: ...
    @property
    def definition(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def body(self) -> bytes | None: ...


class Labels(NamedTuple):
    """The columns of a row that are given once."""

    tenant: str
    namespace: str
    parent: str | None


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
    injected: str = ""


_listed = msgspec.json.Decoder(_Listed)


def check_row(row: Stored, labels: Labels) -> list[str]:
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
        ("tenant", listed.tenant, labels.tenant),
        ("namespace", listed.namespace, labels.namespace),
        ("definition", listed.definition, row.definition),
        ("state", listed.state, row.state),
        ("priority", listed.priority, row.priority),
        ("parent", parent, labels.parent),
        ("busy", bool(listed.effects), row.busy),
    ):
        if expected != found:
            raise ChainBroken(f"instance {row.id}", what, expected, found)
    if listed.paused_reason != QUARANTINED:
        _check_due(row, body, busy=bool(listed.effects))
    return [*listed.blobs, listed.injected] if listed.injected else listed.blobs


def _check_due(row: Stored, body: bytes, *, busy: bool) -> None:
    """A stored due tick may be too early, never too late: it would never be looked at in time."""
    if row.state in TERMINAL and not busy:
        return
    due = next_due(decode_snapshot(body), 0)
    if due is not None and (row.due is None or row.due > due) and not (due == 0 and row.due):
        raise ChainBroken(f"instance {row.id}", "due", due, row.due)
