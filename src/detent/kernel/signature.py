"""Signatures of seals and anchors: what is signed, how it is framed, and which may be missing.

A signature is one byte of version, 8 bytes of fingerprint of the public key, and 64 bytes of
Ed25519 over a message: a tag that says what is signed, then its digest. The tag keeps the signature
of a seal from being shown as that of an anchor. Nothing here knows a key: who checks a signature is
given to `Witness` as a function.

Seals are chained, so one signature covers every seal before it. Hence the rule when keys are given:
seals from before there was a key may be unsigned, but from the first signed one on all are, and
where there are seals the newest is signed. A signature taken away at the front takes no proof away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from detent.kernel.anchor import Anchor, anchor_digest
from detent.kernel.links import ChainBroken

VERSION = 1
FINGERPRINT_BYTES = 8
PROPER_BYTES = 64
_SEAL_TAG = b"detent seal v1"
_ANCHOR_TAG = b"detent anchor v1"

# (signature, message) -> what is wrong with it, empty when it is good
Check = Callable[[bytes, bytes], str]


class Signature(NamedTuple):
    """A signature taken apart."""

    fingerprint: bytes
    proper: bytes


class Signatures(Struct, frozen=True, kw_only=True):
    """What is known of signatures; fingerprints are in hex."""

    checked: bool  # they were held against public keys
    signed: int  # seals that carry a signature
    since: int  # the first of them, 0 for none
    keys: tuple[str, ...]  # who signed seals, in the order of their first
    anchor: str  # who signed the anchor; empty when it is unsigned, or there is none


def join(fingerprint: bytes, proper: bytes) -> bytes:
    """A signature as it is stored."""
    return bytes((VERSION,)) + fingerprint + proper


def split(signature: bytes) -> Signature | None:
    """A stored signature taken apart; None when it is of no version known here."""
    if len(signature) != 1 + FINGERPRINT_BYTES + PROPER_BYTES or signature[0] != VERSION:
        return None
    return Signature(signature[1 : 1 + FINGERPRINT_BYTES], signature[1 + FINGERPRINT_BYTES :])


def seal_message(digest: bytes) -> bytes:
    """What is signed of a seal."""
    return _SEAL_TAG + digest


def anchor_message(anchor: Anchor) -> bytes:
    """What is signed of an anchor: everything it says, whatever digest it claims."""
    return _ANCHOR_TAG + bytes.fromhex(anchor_digest(anchor))


class Witness:
    """Looks at every signature of a verification; without a check it only counts them."""

    __slots__ = ("_anchor", "_check", "_keys", "_seals", "_signed", "_since")

    def __init__(self, check: Check | None) -> None:
        self._check = check
        self._keys: dict[str, None] = {}
        self._seals = self._signed = self._since = 0
        self._anchor = ""

    def seal(self, n: int, digest: bytes, signature: bytes) -> None:
        """Look at the next seal."""
        self._seals = n
        if self._check is not None:
            if signature:
                self._hold(f"seal {n}", signature, seal_message(digest))
            elif self._since:
                text = f"a signature, as on seal {self._since} and all after it"
                raise ChainBroken(f"seal {n}", "signature", text, "unsigned")
        if signature:
            self._signed += 1
            self._since = self._since or n
            self._keys.setdefault(_signer(signature))

    def end_of_seals(self) -> None:
        """No further seal: where there are any, the newest must be signed."""
        if self._check is not None and self._seals and not self._signed:
            where = f"seal {self._seals}"
            raise ChainBroken(where, "signature", "one of a key that was given", "unsigned")

    def anchor(self, anchor: Anchor) -> None:
        """Look at an anchor before anything it says is believed."""
        signature = _bytes_of(anchor.signature)
        if self._check is not None:
            if not anchor.signature:
                text = "one of a key that was given"
                raise ChainBroken("anchor", "signature", text, "unsigned")
            self._hold("anchor", signature, anchor_message(anchor))
        self._anchor = _signer(signature) if signature else ""

    def report(self) -> Signatures:
        """What was found."""
        return Signatures(
            checked=self._check is not None,
            signed=self._signed,
            since=self._since,
            keys=tuple(self._keys),
            anchor=self._anchor,
        )

    def _hold(self, where: str, signature: bytes, message: bytes) -> None:
        wrong = self._check(signature, message) if self._check is not None else ""
        if wrong:
            raise ChainBroken(where, "signature", "one of a key that was given", wrong)


def _signer(signature: bytes) -> str:
    found = split(signature)
    return "unknown" if found is None else found.fingerprint.hex()


def _bytes_of(text: str) -> bytes:
    """The bytes of a signature in hex; one byte that is no signature when it is none."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return bytes(1)
