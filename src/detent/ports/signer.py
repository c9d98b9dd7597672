"""The signer port: who signs seals and anchors; the key itself stays behind it."""

from __future__ import annotations

from typing import Protocol


class Signer(Protocol):
    """Signs with one key."""

    @property
    def fingerprint(self) -> bytes:
        """Which key it is: 8 bytes of its public half's digest."""

    def sign(self, message: bytes) -> bytes:
        """The whole signature as it is stored: version, fingerprint, and the signature proper."""
