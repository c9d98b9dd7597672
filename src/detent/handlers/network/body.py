"""Bodies of answers: unpacked piece by piece, and never beyond the limit."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Mapping
from typing import Final

from detent.handlers.answers import Failed

_GZIP: Final = zlib.MAX_WBITS | 16
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


class Unpacker:
    """Counts and unpacks a body; a bomb is stopped when it passes the limit, not after."""

    __slots__ = ("_left", "_limit", "_zip")

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = self._left = limit
        names = [name.strip().lower() for name in encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if names not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            text = f"the answer is packed as {encoding!r:.60}, which was not asked for"
            raise Failed(text, retryable=False, code="network.protocol")
        self._zip = None
        if names:
            self._zip = zlib.decompressobj(zlib.MAX_WBITS if names == ["deflate"] else _GZIP)

    def feed(self, piece: bytes) -> bytes:
        """The next piece, unpacked."""
        if self._zip is not None:
            piece = self._unpacked(piece)
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._limit)
        return piece

    def _unpacked(self, piece: bytes) -> bytes:
        if self._zip is None or self._zip.eof:
            return b""
        try:
            return self._zip.decompress(piece, self._left + 1)
        except zlib.error:
            text = "the answer says that it is packed and cannot be unpacked"
            raise Failed(text, code="network.protocol") from None


def too_large(limit: int) -> Failed:
    """The failure of an answer beyond the limit."""
    text = f"the answer is larger than {limit:,} bytes"
    return Failed(text, retryable=False, code="network.too_large")


def text_of(body: bytes, headers: Mapping[str, str]) -> str:
    """The body as text; bytes that are none are replaced, never a failure."""
    named = _CHARSET.search(headers.get("content-type", ""))
    try:
        name = codecs.lookup(named[1]).name if named else "utf-8"
        return body.decode(name, errors="replace")
    except (LookupError, UnicodeError, ValueError):
        return body.decode("utf-8", errors="replace")
