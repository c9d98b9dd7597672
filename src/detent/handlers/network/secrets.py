"""Secrets of one call: hidden in whatever the other side, or a library, says about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

HIDDEN: Final = "[REDACTED]"
_SHORTEST: Final = 8  # a shorter text is part of too many others


class Secrets:
    """Values that must not be stored; each text is searched for all of them."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[str | None]) -> None:
        known = {value for value in values if value is not None and len(value) >= _SHORTEST}
        self._values = sorted(known, key=lambda value: (-len(value), value))

    def hide(self, text: str) -> str:
        """The text without the secrets."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """The JSON value without the secrets, in keys too."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide(key): self.hide_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        return value

    def open_end(self, text: str) -> int:
        """How many characters at the end of the text may be the beginning of a secret."""
        return max((_overlap(text, value) for value in self._values), default=0)


class Flow:
    """Text that arrives in pieces; a secret is hidden even when it is cut in two."""

    __slots__ = ("_held", "_secrets")

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def push(self, piece: str) -> str:
        """What can be shown now."""
        text = self._secrets.hide(self._held + piece)
        kept = self._secrets.open_end(text)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, value: str) -> int:
    most = min(len(text), len(value) - 1)
    return next((size for size in range(most, 0, -1) if text.endswith(value[:size])), 0)
