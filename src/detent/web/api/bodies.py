"""Bodies and query strings as values: strict about JSON, exact about types.

What JSON lets pass in silence is refused: repeated keys, NaN and infinity, numbers beyond 64 bits,
text that is no Unicode, nesting without end. A text that is no JSON is 400; JSON of another shape
than asked for is 422, as existing clients expect.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from detent.model.limits import DURATION_MS, INTEGER_BITS, PAYLOAD_DEPTH
from detent.service.arguments import invalid, storable
from detent.web.api.refusals import Refusal

T = TypeVar("T")
Q = TypeVar("Q", bound=msgspec.Struct)

BODY_BYTES = 10 * 1024 * 1024
_DIGITS = 20  # of a number that 64 bits can hold, with its sign
_MOST = 2 ** (INTEGER_BITS - 1)
_SYNTAX = "payload.invalid"


async def read_bytes(request: Request, most: int = BODY_BYTES) -> bytes:
    """The raw body, refused as soon as it is longer than allowed."""
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdecimal() and int(told[:_DIGITS]) > most:
        raise _too_long(most)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise _too_long(most)
            parts.append(part)
    except ClientDisconnect:
        raise Refusal(400, "the client went away before its body was complete") from None
    return b"".join(parts)


def check_json_type(request: Request) -> None:
    """A JSON body says that it is one."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json" and not (
        given.startswith("application/") and given.endswith("+json")
    ):
        raise Refusal(
            415, "Expected request with `Content-Type: application/json`", "request.invalid"
        )


def read_json(body: bytes, depth: int = PAYLOAD_DEPTH) -> Any:
    """One JSON document, with nothing in it that a store could not give back."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8", _SYNTAX) from None
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise Refusal(400, f"the body is not JSON: {error.msg} at {place}", _SYNTAX) from None
    except RecursionError:
        raise _deep(depth) from None
    if "\\u" in text or body.count(b"[") + body.count(b"{") > depth:
        _walk(value, depth)
    return value


def shaped(value: Any, shape: type[T]) -> T:
    """A decoded body as the struct a route takes."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise Refusal(422, f"Failed to deserialize the JSON body: {error}") from None


def aware(at: dt.datetime | None) -> dt.datetime | None:
    """A timestamp of a body; one without an offset is in UTC."""
    return at.replace(tzinfo=dt.UTC) if at is not None and at.tzinfo is None else at


def queried(request: Request, shape: type[Q]) -> Q:
    """The query string as the struct a route takes; unknown names are ignored."""
    given = dict(request.query_params)
    fields = msgspec.structs.fields(shape)
    for field in fields:
        if field.required and field.encode_name not in given:
            raise Refusal(
                400, f"Failed to deserialize query string: missing field `{field.encode_name}`"
            )
    known = {field.encode_name for field in fields}
    named = {name: value for name, value in given.items() if name in known}
    for name, value in named.items():
        check_word(name, value)
    try:
        made = msgspec.convert(named, shape, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"Failed to deserialize query string: {error}") from None
    for name in shape.__struct_fields__:
        number = getattr(made, name)
        if isinstance(number, int) and not -_MOST <= number < _MOST:
            raise Refusal(400, f"Failed to deserialize query string: {name} is out of range")
    return made


def check_word(name: str, text: str) -> None:
    """Refuse text of a path or a query that no store can hold."""
    if not storable(text):
        raise Refusal(400, f"`{name[:80]}` holds a NUL or half of a surrogate pair")


def milliseconds(name: str, seconds: float) -> int:
    """Seconds of a body as whole milliseconds."""
    if not abs(seconds) <= DURATION_MS / 1000:
        raise invalid(name, "a number of seconds, of 100 years at most", seconds)
    return round(seconds * 1000)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Refusal(400, f"the key {twice[:80]!r} stands twice in one object", _SYNTAX)
    return members


def _constant(name: str) -> Any:
    raise Refusal(400, f"{name} is not JSON; leave it out or write null", _SYNTAX)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS or not -_MOST <= (value := int(digits)) < _MOST:
        raise Refusal(
            400, f"{digits[:24]}… is beyond {INTEGER_BITS} bits; write it as text", _SYNTAX
        )
    return value


def _real(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise Refusal(400, f"{digits[:24]} is beyond what a number can hold", _SYNTAX)
    return value


def _walk(value: Any, left: int) -> None:
    """Refuse nesting without end, NUL, and half of a surrogate pair, anywhere."""
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        _check_depth(left)
        for key, member in value.items():
            _check_text(key)
            _walk(member, left - 1)
    elif isinstance(value, list):
        _check_depth(left)
        for member in value:
            _walk(member, left - 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise Refusal(400, "the body holds a NUL character", _SYNTAX)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise Refusal(400, "the body holds half of a surrogate pair", _SYNTAX)


def _check_depth(left: int) -> None:
    if left <= 0:
        raise _deep(PAYLOAD_DEPTH)


def _deep(most: int) -> Refusal:
    return Refusal(400, f"the body nests more than {most} lists and objects", _SYNTAX)


def _too_long(most: int) -> Refusal:
    return Refusal(413, f"the body is longer than {most:,} bytes", "payload.too_large")


_decoder = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_constant, parse_int=_whole, parse_float=_real
)
