"""Anchors: the heads of all chains at one moment, small enough to keep somewhere else.

A chain proves that nothing in its middle was changed; it cannot prove that it has no longer tail.
An anchor kept elsewhere can: every root it names must still be found at its turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from detent.model.errors import RequestError

_encode = msgspec.json.Encoder().encode


class AnchoredRoot(Struct, frozen=True, kw_only=True):
    """The root of one partition after a turn, in hex."""

    p: int
    turn: int
    root: str


class Anchor(Struct, frozen=True, kw_only=True):
    """The newest seal and the root of every partition; `digest` covers all of it.

    `signature` is in hex and stands outside the digest; empty when nobody signed.
    """

    store: str
    tick: int
    seal: int
    seal_digest: str
    roots: tuple[AnchoredRoot, ...]
    digest: str
    signature: str = ""


def anchor_of(
    store: str, tick: int, seal: tuple[int, bytes], heads: Iterable[tuple[int, int, bytes]]
) -> Anchor:
    """The anchor over a seal (number, digest) and heads (partition, turn, root)."""
    roots = tuple(AnchoredRoot(p=p, turn=turn, root=root.hex()) for p, turn, root in heads)
    bare = Anchor(
        store=store, tick=tick, seal=seal[0], seal_digest=seal[1].hex(), roots=roots, digest=""
    )
    return msgspec.structs.replace(bare, digest=anchor_digest(bare))


def anchor_digest(anchor: Anchor) -> str:
    """SHA-256 over everything an anchor says, in hex."""
    bare = msgspec.structs.replace(anchor, digest="", signature="")
    return hashlib.sha256(_encode(bare)).hexdigest()


def with_signature(anchor: Anchor, signature: bytes) -> Anchor:
    """The same anchor, signed."""
    return msgspec.structs.replace(anchor, signature=signature.hex())


def read_anchor(text: bytes | str) -> Anchor:
    """Read an exported anchor; `request.invalid` when it is none, or was changed."""
    try:
        anchor = msgspec.json.decode(text, type=Anchor)
    except msgspec.MsgspecError as error:
        raise RequestError(
            "request.invalid", f"expected an exported anchor (JSON), got something else: {error}"
        ) from None
    if anchor_digest(anchor) != anchor.digest:
        raise RequestError(
            "request.invalid",
            "the anchor does not match its own digest: it was changed after it was made; "
            "use another copy",
        )
    return anchor
