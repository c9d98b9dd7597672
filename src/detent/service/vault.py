"""The vault: secrets sealed with AES-256-GCM, each in the place it was made for.

A sealed secret is `version ‖ key id ‖ nonce ‖ ciphertext and tag`. The place (kind, tenant, id and
field of the record) is authenticated with it, so that nobody who can write the store can move one
tenant's secret into the record of another and let the engine open it there. The first key seals;
all of them open, so a key is changed by putting a new one in front and sealing again what is old.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from typing import NamedTuple

from detent.model.errors import RequestError, StoreError
from detent.model.limits import VAULT_KEYS

KEY_BYTES = 32
_VERSION = b"\x01"
_ID_BYTES = 8
_NONCE_BYTES = 12
_HEAD = len(_VERSION) + _ID_BYTES
_URL_SAFE = str.maketrans("-_", "+/")


class Place(NamedTuple):
    """Where a sealed secret belongs: it opens nowhere else."""

    kind: str
    tenant: str
    id: str
    field: str = "value"


class Vault:
    """Seals and opens with a few keys, and never shows one."""

    __slots__ = ("_ciphers", "_first")

    def __init__(self, keys: Sequence[bytes]) -> None:
        """The first key seals; the others only open what they sealed before."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not 0 < len(keys) <= VAULT_KEYS:
            raise RequestError(
                "vault.key", f"a vault has 1 to {VAULT_KEYS} keys; got {len(keys)} of them"
            )
        for key in keys:
            _check_key(key)
        self._first = _id_of(keys[0])
        self._ciphers = {_id_of(key): AESGCM(key) for key in keys}

    def __repr__(self) -> str:
        return f"Vault({self._first.hex()}, {len(self._ciphers)} keys)"

    @property
    def keys(self) -> tuple[str, ...]:
        """Which keys these are, the one that seals first, told without telling anything of one."""
        return tuple(key.hex() for key in self._ciphers)

    @staticmethod
    def key_of(sealed: bytes) -> str:
        """Which key sealed it."""
        return sealed[len(_VERSION) : _HEAD].hex()

    def seal(self, secret: str, place: Place) -> bytes:
        """The secret as it may be stored, at this place only."""
        nonce = fresh_secret(_NONCE_BYTES)
        head = _VERSION + self._first
        proper = self._ciphers[self._first].encrypt(nonce, secret.encode(), _bound(head, place))
        return head + nonce + proper

    def open(self, sealed: bytes, place: Place) -> str:
        """The secret; `vault.locked` when its key is not here, `vault.broken` when it is not it."""
        from cryptography.exceptions import InvalidTag

        head, nonce = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE_BYTES]
        name = f"the {place.field} of {place.kind} {place.id!r}"
        if head[:1] != _VERSION or len(nonce) < _NONCE_BYTES:
            raise StoreError("vault.broken", f"{name} is no sealed secret; enter it again")
        cipher = self._ciphers.get(head[1:])
        if cipher is None:
            raise StoreError(
                "vault.locked",
                f"{name} was sealed with key {head[1:].hex()}, which is not configured; "
                "add that key behind the present one",
            )
        proper = sealed[_HEAD + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, proper, _bound(head, place)).decode()
        except InvalidTag:
            raise StoreError(
                "vault.broken", f"{name} was damaged or belongs elsewhere; enter it again"
            ) from None

    def stale(self, sealed: bytes) -> bool:
        """Whether it was sealed with another key than the one that seals now."""
        return sealed[:_HEAD] != _VERSION + self._first


class Safe(NamedTuple):
    """What secrets are kept with: the vault, if one is configured, and where they may be sent."""

    vault: Vault | None = None
    internal_urls: bool = False  # whether secrets may be sent to private addresses
    internal_hosts: tuple[str, ...] = ()  # those that they may be sent to all the same

    def seal(self, secret: str, place: Place) -> bytes:
        """Seal with the vault; `vault.locked` when there is none."""
        return self._needed(place).seal(secret, place)

    def open(self, sealed: bytes, place: Place) -> str:
        """Open with the vault; `vault.locked` when there is none."""
        return self._needed(place).open(sealed, place)

    def stale(self, sealed: bytes | None) -> bool:
        """Whether there is a vault and it would seal this with another key."""
        return sealed is not None and self.vault is not None and self.vault.stale(sealed)

    def _needed(self, place: Place) -> Vault:
        if self.vault is None:
            raise StoreError(
                "vault.locked",
                f"the {place.field} of {place.kind} {place.id!r} is a secret and needs a vault; "
                "configure a vault key of 32 bytes",
            )
        return self.vault


def fresh_secret(size: int) -> bytes:
    """Bytes that nobody can guess, also in virtual time."""
    return os.urandom(size)


def read_key(content: bytes) -> bytes | None:
    """The key out of 32 bytes, or hex or base64 text for 32 bytes; None when it is none of them."""
    if len(content) == KEY_BYTES:
        return content
    try:
        text = content.decode("ascii").strip()
    except UnicodeDecodeError:
        return None
    try:
        if len(text) == KEY_BYTES * 2:
            return bytes.fromhex(text)
        padded = text.translate(_URL_SAFE).rstrip("=") + "="
        found = base64.b64decode(padded, validate=True)
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == KEY_BYTES else None


def _check_key(key: object) -> None:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise RequestError("vault.key", f"a vault key is {KEY_BYTES} bytes; got something else")


def _id_of(key: bytes) -> bytes:
    """Which key it is, told without telling anything of it."""
    return hashlib.sha256(b"detent vault key\x00" + key).digest()[:_ID_BYTES]


def _bound(head: bytes, place: Place) -> bytes:
    return head + b"\x00".join(part.encode() for part in place)
