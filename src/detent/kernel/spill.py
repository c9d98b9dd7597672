"""Large values: kept beside the snapshot as blobs, by digest, so that turns stay small.

A value over BLOB_BYTES in data, outputs, the key/value state or a request is replaced by
{"$blob": digest}; the snapshot lists its digests, and only listed ones are ever put back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from detent.model import limits
from detent.model.snapshot import Snapshot, encode_snapshot

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def pack(snapshot: Snapshot) -> tuple[bytes, dict[str, bytes]]:
    """The stored bytes and the blobs they need."""
    body = encode_snapshot(snapshot)
    if len(body) <= limits.BLOB_BYTES:
        return body, {}
    blobs: dict[str, bytes] = {}
    for section in _sections(snapshot):
        for name, value in section.items():
            raw = _encode(value)
            if len(raw) > limits.BLOB_BYTES:
                section[name] = {"$blob": _keep(raw, blobs)}
    for effect in snapshot.effects:
        if len(effect.request) > limits.BLOB_BYTES:
            effect.request = Raw(_encode({"$blob": _keep(bytes(effect.request), blobs)}))
    if not blobs:
        return body, {}
    snapshot.blobs = sorted(blobs)
    return encode_snapshot(snapshot), blobs


def unpack(snapshot: Snapshot, blobs: Mapping[str, bytes]) -> None:
    """Put the listed blobs back where they belong."""
    listed = dict.fromkeys(snapshot.blobs)
    for section in _sections(snapshot):
        for name, value in section.items():
            digest = _reference(value, listed)
            if digest:
                section[name] = _decode(blobs[digest])
    for effect in snapshot.effects:
        if bytes(effect.request).startswith(b'{"$blob"'):
            digest = _reference(_decode(effect.request), listed)
            if digest:
                effect.request = Raw(blobs[digest])
    snapshot.blobs = []


def pack_input(body: bytes, blobs: dict[str, bytes]) -> bytes:
    """An input's bytes for the journal: itself, or a reference to its blob."""
    if len(body) <= limits.BLOB_BYTES:
        return body
    return b'{"$blob":"%b"}' % _keep(body, blobs).encode()


def _sections(snapshot: Snapshot) -> list[dict[str, Any]]:
    sections = (snapshot.data, snapshot.config, snapshot.outputs, snapshot.kv, snapshot.cache)
    return [section for section in sections if isinstance(section, dict)]


def _reference(value: Any, listed: Mapping[str, None]) -> str:
    if isinstance(value, dict) and len(value) == 1 and value.get("$blob") in listed:
        return str(value["$blob"])
    return ""


def _keep(raw: bytes, blobs: dict[str, bytes]) -> str:
    digest = hashlib.sha256(raw).hexdigest()
    blobs[digest] = raw
    return digest
