"""The vault's keys: read from text or from files, and never told to anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from detent.model.errors import RequestError
from detent.model.limits import KEY_FILE_BYTES
from detent.service.vault import KEY_BYTES, Vault, read_key


def vault_of(key: str | None, old_keys: Sequence[str] = ()) -> Vault | None:
    """The vault of a key, where one is set; each key is text for 32 bytes, or a file's path."""
    if key is None:
        if old_keys:
            raise RequestError(
                "vault.key", "old keys open secrets but seal none; give vault_key beside them"
            )
        return None
    return Vault([_key(each) for each in (key, *old_keys)])


def _key(given: str) -> bytes:
    """A key; nothing of what was given is told, as it may be a key that was mistyped."""
    found = None if len(given) == KEY_BYTES else read_key(given.encode("utf-8", "replace"))
    if found is not None:
        return found
    try:
        with Path(given).open("rb") as file:
            content = file.read(KEY_FILE_BYTES)
    except (OSError, ValueError):
        raise _no_key("it is no key, and no file of that name can be read") from None
    found = read_key(content)
    if found is None:
        raise _no_key("the file holds something else")
    return found


def _no_key(why: str) -> RequestError:
    return RequestError(
        "vault.key",
        f"a vault key is {KEY_BYTES} bytes as hex or base64 text, or a file with them; {why}; "
        "`openssl rand -hex 32` makes one",
    )
