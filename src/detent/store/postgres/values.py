"""Values on their way to PostgreSQL and back, all in its binary format.

Many rows go as one array per column, packed here: psycopg would call into Python for every element
of a list. A value of the wrong type is found while it is packed, before anything is sent.

A text of PostgreSQL cannot hold the character U+0000, and the engine's can: names and messages are
users' own. It is written as U+0001 U+0001, and U+0001 as U+0001 U+0002; the order stays the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.bool import BoolBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg.adapt import AdaptersMap, Buffer

_BOOL, _BYTEA, _INT8, _TEXT = 16, 17, 20, 25  # object ids of types, and of their arrays
_BOOLS, _BYTEAS, _INT8S, _TEXTS = 1000, 1001, 1016, 1009

_head = struct.Struct(">IIIII").pack  # dimensions, may hold nulls, element, length, first index
_empty = struct.Struct(">III").pack
_length = struct.Struct(">i").pack
_integer = struct.Struct(">iq").pack
_NULL = _length(-1)
_FLAGS = {False: b"\x00\x00\x00\x01\x00", True: b"\x00\x00\x00\x01\x01"}
_LENGTHS = [_length(size) for size in range(4_096)]
_KEPT_PACKERS = 512  # a turn has no more rows
_packers: dict[int, Callable[..., bytes]] = {}


class Column:
    """A packed column."""

    __slots__ = ("data",)

    def __init__(self, element: int, size: int, pieces: list[bytes]) -> None:
        head = _head(1, 1, element, size, 1) if size else _empty(0, 0, element)
        pieces.insert(0, head)
        self.data = b"".join(pieces)


class Bools(Column):
    """A packed column of yes and no."""

    __slots__ = ()


class Bytes(Column):
    """A packed column of byte strings."""

    __slots__ = ()


class Ints(Column):
    """A packed column of 64-bit integers."""

    __slots__ = ()


class Texts(Column):
    """A packed column of texts."""

    __slots__ = ()


def bools(values: Sequence[Any]) -> Bools:
    """Pack a column of yes and no."""
    try:
        pieces = [_FLAGS[value] for value in values]
    except KeyError as error:
        raise TypeError(f"yes or no was expected, got {error}") from None
    return Bools(_BOOL, len(values), pieces)


def ints(values: Sequence[Any]) -> Ints:
    """Pack a column of integers; None stands for no value."""
    size = len(values)
    if None in values:
        pieces = [_NULL if value is None else _integer(8, value) for value in values]
    else:
        flat = [8] * (2 * size)  # each after its length
        flat[1::2] = values
        pieces = [_packer(size)(*flat)]
    return Ints(_INT8, size, pieces)


def byte_strings(values: Sequence[Any]) -> Bytes:
    """Pack a column of byte strings; None stands for no value."""
    return Bytes(_BYTEA, len(values), _with_lengths(values))


def texts(values: Sequence[Any]) -> Texts:
    """Pack a column of texts; None stands for no value."""
    if None in values:
        encoded = [None if value is None else escaped(value).encode() for value in values]
        return Texts(_TEXT, len(values), _with_lengths(encoded))
    whole = "".join(values)
    if "\x00" in whole or "\x01" in whole:
        values = [escaped(value) for value in values]
    return Texts(_TEXT, len(values), _with_lengths([value.encode() for value in values]))


def escaped(text: str) -> str:
    """A text as it is stored."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return text


def unescaped(text: str) -> str:
    """A stored text as it was."""
    if "\x01" in text:
        return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
    return text


def _packer(size: int) -> Callable[..., bytes]:
    known = _packers.get(size)
    if known is not None:
        return known
    made = struct.Struct(">" + "iq" * size).pack
    if size <= _KEPT_PACKERS:
        _packers[size] = made
    return made


def _with_lengths(values: Sequence[Any]) -> list[bytes]:
    pieces: list[bytes] = []
    lengths, known = _LENGTHS, len(_LENGTHS)
    for value in values:
        if value is None:
            pieces.append(_NULL)
        else:
            size = len(value)
            pieces += (lengths[size] if size < known else _length(size), value)
    return pieces


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer:
        packed: bytes = obj.data
        return packed


class _BoolsDumper(_Packed):
    oid = _BOOLS


class _BytesDumper(_Packed):
    oid = _BYTEAS


class _IntsDumper(_Packed):
    oid = _INT8S


class _TextsDumper(_Packed):
    oid = _TEXTS


class _TextDumper(Dumper):
    format = Format.BINARY
    oid = _TEXT

    def dump(self, obj: Any) -> Buffer:
        return escaped(obj).encode()


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return unescaped(str(data, "utf-8"))


def register(adapters: AdaptersMap) -> None:
    """Have a connection send and read values as this module says."""
    for kind, dumper in (
        (bool, BoolBinaryDumper),
        (bytes, BytesBinaryDumper),
        (int, Int8BinaryDumper),
        (str, _TextDumper),
        (Bools, _BoolsDumper),
        (Bytes, _BytesDumper),
        (Ints, _IntsDumper),
        (Texts, _TextsDumper),
    ):
        adapters.register_dumper(kind, dumper)
    adapters.register_loader(_TEXT, _TextLoader)
