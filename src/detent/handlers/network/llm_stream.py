"""Server-sent events: bytes in, whole events out, each within a limit. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from detent.handlers.answers import Failed
from detent.model.limits import STREAM_EVENT_CHARS

_LINE_END = re.compile(r"\r\n|\n|\r")
_LAST: Final = "[DONE]"  # the one event that is not JSON


class Events:
    """Events of one stream; what is not JSON is a failure, except for the last word."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[tuple[str, Any]]:
        """The events that this piece completes, as (name, data)."""
        text = self._text + self._decoder.decode(piece)
        half = "\r" if text.endswith("\r") else ""  # the other half of a line end may still come
        *lines, self._text = _LINE_END.split(text.removesuffix(half))
        self._text += half
        for line in lines:
            yield from self._line(line)
        if self._size + len(self._text) > STREAM_EVENT_CHARS:
            text = f"an event of the stream is larger than {STREAM_EVENT_CHARS:,} characters"
            raise Failed(text, retryable=False, code="network.too_large")

    def _line(self, line: str) -> Iterator[tuple[str, Any]]:
        if not line:
            event, data = self._event, "\n".join(self._data)
            self._event, self._data, self._size = "", [], 0
            if data:
                yield event, _read(data)
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
            self._size += len(value) + 1


def _read(data: str) -> Any:
    if data.strip() == _LAST:
        return _LAST
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        text = "an event of the stream is not JSON"
        raise Failed(text, code="model.answer") from None
