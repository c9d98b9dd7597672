"""Keys: Ed25519 key files read and made, and what signs and checks with them.

A file holds PEM, or the 32 bytes of a key and nothing else. A private key is only ever behind a
`SealSigner`; settings, links and logs carry the path of its file, the store its fingerprint.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from detent.kernel.signature import FINGERPRINT_BYTES, Check, join, split
from detent.model.errors import RequestError
from detent.model.limits import KEY_FILE_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

KEY_BYTES = 32
PUBLIC_SUFFIX = ".pub"
_PEM = b"-----BEGIN "


class SealSigner:
    """Signs with one private key, and never shows it."""

    __slots__ = ("_key", "fingerprint")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.fingerprint = fingerprint_of(key.public_key())

    def sign(self, message: bytes) -> bytes:
        """The signature as it is stored."""
        return join(self.fingerprint, self._key.sign(message))

    def __repr__(self) -> str:
        return f"SealSigner({self.fingerprint.hex()})"


def fingerprint_of(key: Ed25519PublicKey) -> bytes:
    """Which key it is: the beginning of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).digest()[:FINGERPRINT_BYTES]


def signer_of(path: str | Path | None) -> SealSigner | None:
    """The signer of a key file, where one is set."""
    return None if path is None else read_signer(path)


def read_signer(path: str | Path) -> SealSigner:
    """The signer of a private key file; `request.invalid` when it holds none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    what = "private"
    body = _content(path, what)
    if len(body) == KEY_BYTES:
        return SealSigner(Ed25519PrivateKey.from_private_bytes(body))
    if not body.lstrip().startswith(_PEM):
        raise _no_key(path, what, f"it holds {len(body)} bytes of something else")
    if b" PUBLIC KEY-----" in body:
        raise _no_key(path, what, "it holds the public half; name the file without .pub")
    try:
        key = load_pem_private_key(body, password=None)
    except TypeError:
        raise _no_key(path, what, "it is locked by a password; unlock it first") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _no_key(path, what, "its PEM cannot be read") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, what, "its key is of another kind")
    return SealSigner(key)


def read_check(public_keys: str | Path | Sequence[str | Path]) -> Check:
    """What checks signatures against these public key files; any one of the keys will do."""
    from cryptography.exceptions import InvalidSignature

    paths = [public_keys] if isinstance(public_keys, str | Path) else _listed(public_keys)
    found = [_public_key(path) for path in paths]
    keys = {fingerprint_of(key): key for key in found}

    def check(signature: bytes, message: bytes) -> str:
        parts = split(signature)
        if parts is None:
            return f"{len(signature)} bytes that are no signature of a known version"
        name = parts.fingerprint.hex()
        key = keys.get(parts.fingerprint)
        if key is None:
            return f"a signature of another key, {name}"
        try:
            key.verify(parts.proper, message)
        except InvalidSignature:
            return f"a bad signature in the name of key {name}"
        return ""

    return check


def write_keys(path: str | Path) -> SealSigner:
    """Make a key: the private half for its owner only, the public one beside it as FILE.pub."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private, public = Path(path), Path(f"{path}{PUBLIC_SUFFIX}")
    if os.path.lexists(public):  # before anything is written; `_create` looks once more
        raise _exists(public)
    key = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    _create(private, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), 0o600)
    shown = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        _create(public, shown, 0o644)
    except RequestError:
        private.unlink()
        raise
    return SealSigner(key)


def _public_key(path: str | Path) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    what = "public"
    body = _content(path, what)
    if len(body) == KEY_BYTES:
        return Ed25519PublicKey.from_public_bytes(body)
    if b" PRIVATE KEY-----" in body:
        raise _no_key(path, what, f"it holds the private half; name its {PUBLIC_SUFFIX} file")
    if not body.lstrip().startswith(_PEM):
        raise _no_key(path, what, f"it holds {len(body)} bytes of something else")
    try:
        key = load_pem_public_key(body)
    except (ValueError, UnsupportedAlgorithm):
        raise _no_key(path, what, "its PEM cannot be read") from None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, what, "its key is of another kind")
    return key


def _content(path: object, what: str) -> bytes:
    """The bytes of a key file; never a part of them in an error."""
    if not isinstance(path, str | Path) or not str(path) or "\x00" in str(path):
        raise RequestError(
            "request.invalid", f"a {what} key is named by the path of its file; got {path!r}"
        )
    try:
        with Path(path).open("rb") as file:
            body = file.read(KEY_FILE_BYTES + 1)
    except OSError as error:
        raise _no_key(path, what, f"it cannot be read ({error.strerror})") from None
    if len(body) > KEY_FILE_BYTES:
        raise _no_key(path, what, f"it is larger than {KEY_FILE_BYTES:,} bytes")
    return body


def _listed(paths: object) -> list[str | Path]:
    if not isinstance(paths, list | tuple) or not paths:
        raise RequestError(
            "request.invalid", f"public_key is a path, or a list of them; got {paths!r}"
        )
    return list(paths)


def _create(path: Path, body: bytes, mode: int) -> None:
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _not_written(path, error) from None
    try:
        with os.fdopen(number, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(number)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise _not_written(path, error) from None


def _no_key(path: str | Path, what: str, why: str) -> RequestError:
    return RequestError(
        "request.invalid",
        f"{path} must hold an Ed25519 {what} key, but {why}; `detent audit keygen FILE` makes one",
    )


def _exists(path: Path) -> RequestError:
    return RequestError(
        "file.exists", f"{path} is there already and was left as it is; name another file"
    )


def _not_written(path: Path, error: OSError) -> RequestError:
    return RequestError(
        "request.invalid", f"{path} cannot be written ({error.strerror}); name another file"
    )
