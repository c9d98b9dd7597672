"""A recording: the journal rows of one instance and all that is needed to run them again.

A journal body holds the inputs' own bytes, the facts the kernel was told and the entries it made.
`read_body` opens it; `inputs_of` puts large inputs back; `facts_of` rebuilds what `step` was told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct, field

from detent.kernel.program import Program
from detent.kernel.run import Facts
from detent.model.decision import HandlerSpec
from detent.model.errors import RequestError, StoreError

_HANDLER = "handler:"
_BLOB_START = b'{"$blob":"'
_BLOB_CHARS = 64
_DETAIL = 2  # the place of an entry's detail, after action and node


class Row(Protocol):
    """What is read of a journal row."""

    @property
    def seq(self) -> int: ...
    @property
    def tick(self) -> int: ...
    @property
    def snapshot_digest(self) -> bytes: ...
    @property
    def body(self) -> bytes | None: ...


class Timing(Struct, frozen=True, kw_only=True):
    """How ticks and instants belong together in a store."""

    epoch_ms: int = 0
    resolution_ms: int = 100

    def ms_of(self, tick: int) -> int:
        """A tick in epoch milliseconds."""
        return self.epoch_ms + tick * self.resolution_ms

    def tick_of(self, ms: int) -> int:
        """The first tick not before an instant in epoch milliseconds."""
        return -(-(ms - self.epoch_ms) // self.resolution_ms)


class Recording(Struct, frozen=True, kw_only=True):
    """One instance's journal, with its programs by definition hash and its blobs by digest."""

    rows: Sequence[Row]
    programs: Mapping[str, Program]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    timing: Timing = Timing()


class Body(Struct):
    """An opened journal body; entries are [action, node] or [action, node, detail]."""

    inputs: list[Raw] = field(name="in")
    facts: dict[str, Any]
    entries: list[list[Any]]


_decoder = msgspec.json.Decoder(Body)


def read_body(body: bytes) -> Body:
    """Open a journal body."""
    return _decoder.decode(body)


def body_of(row: Row) -> Body:
    """Open a row's body; `replay.erased` when it is gone."""
    if row.body is None:
        raise RequestError(
            "replay.erased",
            f"the body of row {row.seq} was erased; what it held is gone, only its digest is left",
            seq=row.seq,
        )
    return read_body(row.body)


def detail_of(entry: list[Any]) -> Any:
    """The detail of a journal entry; None when it has none."""
    return entry[_DETAIL] if len(entry) > _DETAIL else None


def blob_of(raw: Raw | bytes) -> str:
    """The digest of the blob an input was put into, or "" when it stands here itself."""
    text = bytes(raw)
    if len(text) != len(_BLOB_START) + _BLOB_CHARS + 2 or not text.startswith(_BLOB_START):
        return ""
    return text[len(_BLOB_START) : -2].decode()


def inputs_of(body: Body, blobs: Mapping[str, bytes]) -> list[bytes]:
    """The inputs' bytes as they were when the instance took them."""
    inputs: list[bytes] = []
    for raw in body.inputs:
        digest = blob_of(raw)
        inputs.append(blob_body(blobs, digest) if digest else bytes(raw))
    return inputs


def blob_body(blobs: Mapping[str, bytes], digest: str) -> bytes:
    """A blob's bytes; `store.corrupt` when the store has lost it."""
    try:
        return blobs[digest]
    except KeyError:
        raise StoreError(
            "store.corrupt", f"blob {digest} is missing; restore the store from a backup"
        ) from None


def facts_of(body: Body, timing: Timing) -> Facts:
    """What the kernel was told, from what the row recorded."""
    handlers: dict[str, HandlerSpec] = {}
    given: dict[str, Any] = {}
    for key, value in body.facts.items():
        if key.startswith(_HANDLER):
            spec = msgspec.convert(value, HandlerSpec)
            handlers[spec.name] = spec
        else:
            given[key] = value
    return Facts(
        handlers=handlers,
        given=given,
        epoch_ms=timing.epoch_ms,
        resolution_ms=timing.resolution_ms,
    )


def program_of(programs: Mapping[str, Program], digest: str) -> Program:
    """The program of a definition; `definition.unknown` when nobody has it."""
    try:
        return programs[digest]
    except KeyError:
        raise RequestError(
            "definition.unknown",
            f"the instance ran definition {digest}, which is not stored here; store it again first",
            definition=digest,
        ) from None
