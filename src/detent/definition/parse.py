"""Where a definition comes in: text, bytes, a file or a mapping, to a checked definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from detent.definition.faults import refuse
from detent.definition.json_text import read_json
from detent.definition.normalize import normalize
from detent.definition.places import found
from detent.definition.yaml_text import read_yaml
from detent.model.limits import DEFINITION_BYTES

if TYPE_CHECKING:
    from detent.model.definition import Definition

Format = Literal["json", "yaml"]


class File(Protocol):
    """A path that can be opened, such as `pathlib.Path`; this package knows no file system."""

    @property
    def suffix(self) -> str:
        """The end of the name, with its dot."""

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """Open it for reading bytes."""


Source = str | bytes | Mapping[str, Any] | File

_SUFFIXES: dict[str, Format] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
_READERS = {"json": read_json, "yaml": read_yaml}


def parse(source: Source, *, format: Format | None = None) -> Definition:
    """Read and check a definition; without `format`, text that begins like JSON is JSON."""
    return normalize(read(source, format=format))


def read(source: Source, *, format: Format | None = None) -> Mapping[str, Any]:
    """Read the raw data of a definition without checking what it says."""
    if isinstance(source, Mapping):
        return source
    chosen = format
    if not isinstance(source, (str, bytes)):
        chosen = format or _SUFFIXES.get(source.suffix.lower())
        source = _content(source)
    text = _text(source)
    chosen = chosen or ("json" if text.lstrip()[:1] in ("{", "[") else "yaml")
    raw = _READERS[chosen](text)
    if not isinstance(raw, dict):
        message = f"expected an object with name, version and blocks or steps, found {found(raw)}"
        raise refuse("$", "definition.type", message)
    return raw


def _content(file: File) -> bytes:
    with file.open("rb") as stream:
        return stream.read(DEFINITION_BYTES + 1)  # one more than allowed shows that it is too long


def _text(source: str | bytes) -> str:
    if len(source) > DEFINITION_BYTES:
        message = f"expected at most {DEFINITION_BYTES} bytes in one definition; split it"
        raise refuse("$", "definition.size", message)
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found another byte at {error.start}; save the text as UTF-8"
        raise refuse("$", "definition.syntax", message) from None
