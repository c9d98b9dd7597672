"""Blocks that were put into one instance while it lived, after those of its definition."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Raw, Struct

from detent.model.definition import Block


class Injected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Checked blocks in their order, and the holidays of the countries that they name."""

    blocks: tuple[Block, ...] = ()
    calendars: dict[str, tuple[str, ...]] = {}


_decoder = msgspec.json.Decoder(Injected)
_encoder = msgspec.json.Encoder(order="deterministic")


def decode_injected(body: bytes | Raw) -> Injected:
    """Read injected blocks from their stored bytes."""
    return _decoder.decode(body)


def encode_injected(injected: Injected) -> tuple[str, bytes]:
    """The digest that names them, and the bytes to keep."""
    body = _encoder.encode(injected)
    return hashlib.sha256(body).hexdigest(), body
