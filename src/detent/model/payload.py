"""Users' values as JSON bytes: which may be stored, and the place of one that may not.

Stored is whatever msgspec writes as JSON: dict, list, tuple, set, str, int, float, bool, None,
dataclasses, attrs classes, named tuples and Structs; as text also datetime, date, time, timedelta,
UUID, Decimal, Enum values and bytes (base64). Not stored, because no reader would get back what was
written: NaN and infinity (JSON has none), whole numbers beyond 64 bits, numbers as keys (1 and "1"
would be one), NUL and lone surrogates in text (databases refuse them), other objects, cycles.

The encoder is quick but silent about some of these: NaN becomes null, 2**65 becomes digits. So the
bytes are searched for what could hide one, and only a suspect is walked value by value.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import msgspec

from detent.model.errors import RequestError
from detent.model.limits import INTEGER_BITS, MESSAGE_CHARS, PAYLOAD_BYTES, PAYLOAD_DEPTH

_HIGHEST = 2 ** (INTEGER_BITS - 1) - 1
_LOWEST = -(2 ** (INTEGER_BITS - 1))
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * len(str(_HIGHEST))
_NUMBER_KEY = b'0":'

_encode = msgspec.json.Encoder().encode


def encode_payload(value: Any, *, where: str, limit: int = PAYLOAD_BYTES) -> bytes:
    """The JSON bytes of a value; `where` names the value in the sentence of a refusal."""
    if value is None:
        return b"null"
    try:
        body = _encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        _walk(value, where, "$", 0)
        raise _refusal(where, "$", str(error)) from error
    if len(body) > limit:
        raise RequestError(
            "payload.too_large",
            f"{where} must have at most {limit:,} bytes as JSON, got {len(body):,}; "
            "store it elsewhere and pass a reference",
            size=len(body),
            limit=limit,
            path="$",
        )
    if _suspicious(body):
        _walk(value, where, "$", 0)
    return body


def clean_text(text: str, limit: int = MESSAGE_CHARS) -> str:
    """A text that can be stored whatever came: no NUL, no lone surrogate, cut at the limit."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut.encode("utf-8", "replace").decode().replace("\x00", "?")


def _suspicious(body: bytes) -> bool:
    digits = body.translate(_ANY_DIGIT)
    return (
        b"null" in body
        or _NUMBER_KEY in digits
        or _LONG_NUMBER in digits
        or b"\\u0000" in body
        or b'nan":' in body
        or b'inf":' in body
        or body.count(b"{") + body.count(b"[") > PAYLOAD_DEPTH
    )


def _walk(value: Any, where: str, path: str, depth: int) -> None:
    """Raise for the first part, in order, that JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, where, path)
    elif isinstance(value, int):
        if not _LOWEST <= value <= _HIGHEST:
            expected = f"expected a whole number within signed {INTEGER_BITS} bits"
            found = f"one of {value.bit_length() + 1} bits"
            raise _refusal(where, path, f"{expected}, got {found}; write it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(where, path, f"expected a finite number, got {value}")
    elif isinstance(value, dict):
        _check_depth(where, path, depth)
        for key, member in value.items():
            _check_key(key, where, path)
            _walk(member, where, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        _check_depth(where, path, depth)
        for index, member in enumerate(value):
            _walk(member, where, f"{path}[{index}]", depth + 1)
    else:
        _walk_object(value, where, path, depth)


def _walk_object(value: Any, where: str, path: str, depth: int) -> None:
    try:
        plain = msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(value).__name__
        raise _refusal(where, path, f"expected a JSON value, got an object of {kind}") from error
    if type(plain) is not type(value):
        _walk(plain, where, path, depth)


def _check_text(text: str, where: str, path: str) -> None:
    if "\x00" in text:
        raise _refusal(where, path, "expected text without NUL characters, got one")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _refusal(where, path, "expected Unicode text, got a lone surrogate") from error


def _check_key(key: Any, where: str, path: str) -> None:
    if isinstance(key, str):
        _check_text(key, where, path)
    elif key is None or isinstance(key, int | float | Decimal | tuple | frozenset):
        raise _refusal(where, path, f"expected text as key, got {key!r}; write it as text")


def _check_depth(where: str, path: str, depth: int) -> None:
    if depth >= PAYLOAD_DEPTH:
        limit = f"expected at most {PAYLOAD_DEPTH} lists and objects within one another"
        raise _refusal(where, path[:80] + "…", f"{limit}, got more, or a cycle")


def _refusal(where: str, path: str, problem: str) -> RequestError:
    place = clean_text(path)
    return RequestError(
        "payload.invalid", f"{where}, at {place}: {clean_text(problem)}", path=place
    )
