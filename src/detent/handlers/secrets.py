"""Secrets on the way to a handler: references become values just before the call, and only there.

A string parameter `credentials://<id>` or `credentials://<id>/<field>` is a reference, and so it is
behind `Bearer `, as tokens are sent. The request as it is stored, shown and proved keeps it; the
dispatcher replaces it in the arguments of one call.
What comes back, as a result or in the text of an error, is searched for the values that were handed
out, also as base64, percent-encoded or escaped, and they are replaced by `[REDACTED]` before
anything is stored.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Raw, structs

from detent.model import limits
from detent.model.errors import DetentError, RequestError
from detent.model.inputs import decode_input, encode_input
from detent.model.payload import clean_text

if TYPE_CHECKING:
    from detent.model.decision import Order

SCHEME = "credentials://"
REDACTED = "[REDACTED]"
BEARER = "Bearer "
_MARKS = tuple(f'"{before}{SCHEME}'.encode() for before in ("", BEARER))
_REFERENCE = re.compile(
    r"credentials://(?P<id>[A-Za-z0-9._-]{1,255})(?:/(?P<field>.+))?", re.DOTALL
)
_CUT = "…"  # where `clean_text` and its like have cut a text
_OUTCOMES = ("result", "message", "details", "reason")  # fields of an outcome that handlers fill

# The secrets in the params of the call that is being performed, for whoever keeps what it brings.
GIVEN: ContextVar[tuple[str, ...]] = ContextVar("detent_given_secrets", default=())

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Secrets(Protocol):
    """Who knows the values."""

    def value(self, id: str, tenant: str) -> str:
        """The secret of a credential, which may block; `credential.unusable` where there is none.

        One whose time is over, and that can be renewed, is named as `credential` in the error.
        """

    def renew(self, id: str) -> Future[None]:
        """Have a value renewed, once for all who ask meanwhile; does not block."""


class Resolved(NamedTuple):
    """Params with values in the place of references, and every text in them that is secret."""

    params: Any
    secrets: tuple[str, ...] = ()


class Opened(NamedTuple):
    """An order with its secrets in it."""

    order: Order
    secrets: tuple[str, ...]


class Opener(NamedTuple):
    """Opens orders; of an error that a renewal may cure, gives the renewal."""

    open: Callable[[Order], Opened]
    renewal: Callable[[DetentError], Future[None] | None]


def refers(request: Raw) -> bool:
    """Whether an encoded request holds a reference."""
    body = bytes(request)
    return any(mark in body for mark in _MARKS)


def open_order(order: Order, secrets: Secrets | None) -> Opened:
    """The order as its handler gets it."""
    if secrets is None:
        raise _unusable("params name a credential, and no credentials are configured here")
    found = resolve(_decode(order.request), lambda name: secrets.value(name, order.tenant))
    return Opened(structs.replace(order, request=Raw(_encode(found.params))), found.secrets)


def resolve(params: Any, find: Callable[[str], str]) -> Resolved:
    """Replace every reference in params by what `find` tells of its id."""
    known: dict[str, str] = {}
    secrets: dict[str, None] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(BEARER + SCHEME):
            return BEARER + _token(walk(value.removeprefix(BEARER)), value)
        if isinstance(value, str) and value.startswith(SCHEME):
            id, field = _parts(value)
            if id not in known:
                if len(known) == limits.SECRETS_PER_STEP:
                    most = f"name at most {limits.SECRETS_PER_STEP} credentials"
                    raise _unusable(f"params must {most}; got more")
                known[id] = find(id)
            given = _field(known[id], id, field)
            _note(given, known[id] if field is None else "", secrets)
            return given
        if isinstance(value, dict):
            return {key: walk(member) for key, member in value.items()}
        return [walk(member) for member in value] if isinstance(value, list) else value

    return Resolved(walk(params), tuple(secrets))


def hide_outcome(body: bytes, secrets: Sequence[str]) -> bytes:
    """An encoded outcome without the secrets that went into the call."""
    told = decode_input(body)
    found = {name: getattr(told, name) for name in _OUTCOMES if hasattr(told, name)}
    hidden = {name: hide(value, secrets) for name, value in found.items()}
    changed = {name: value for name, value in hidden.items() if value != found[name]}
    return encode_input(structs.replace(told, **changed)) if changed else body


def hide_bytes(body: bytes, secrets: Sequence[str]) -> bytes:
    """Bytes with `[REDACTED]` wherever one of the secrets stands in them."""
    forms = {form for text in secrets for form in _forms(text) if len(form) >= limits.SECRET_CHARS}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        body = body.replace(form.encode(), REDACTED.encode())
    return body


def hide(value: Any, secrets: Sequence[str]) -> Any:
    """A value of JSON with `[REDACTED]` wherever one of the secrets stands in it."""
    forms = sorted({form for text in secrets for form in _forms(text)}, key=len, reverse=True)
    return _hidden(value, forms) if forms else value


def _hidden(value: Any, forms: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _hidden_text(value, forms)
    if isinstance(value, dict):
        return {_hidden_text(key, forms): _hidden(each, forms) for key, each in value.items()}
    if isinstance(value, list):
        return [_hidden(each, forms) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        return REDACTED if len(text) >= limits.SECRET_CHARS and text in forms else value
    return value


def _hidden_text(text: str, forms: Sequence[str]) -> str:
    for form in forms:
        if len(form) >= limits.SECRET_CHARS:
            text = text.replace(form, REDACTED)
        elif text == form:
            return REDACTED
    return _without_beginnings(text, forms) if _CUT in text else text


def _without_beginnings(text: str, forms: Sequence[str]) -> str:
    """Where a text was cut, the beginning of a secret may have been left standing."""
    *cut, last = text.split(_CUT)
    return _CUT.join([*(_without_beginning(part, forms) for part in cut), last])


def _without_beginning(part: str, forms: Sequence[str]) -> str:
    for form in forms:
        for size in range(min(len(form) - 1, len(part)), limits.SECRET_CHARS - 1, -1):
            if part.endswith(form[:size]):
                return part[:-size] + REDACTED
    return part


def _forms(text: str) -> set[str]:
    """A secret as it may turn up: plain, in a header, an address, a log line, a file's text."""
    raw = text.encode("utf-8", "replace")
    plain = base64.b64encode(raw).decode().rstrip("=")
    return {
        text,
        clean_text(text, len(text)),
        plain,
        plain.replace("+", "-").replace("/", "_"),
        quote(text, safe=""),
        quote(text),
        quote_plus(text),
        repr(text)[1:-1],
        _encode(text).decode()[1:-1],
        json.dumps(text)[1:-1],
        raw.hex(),
    } - {""}


def _token(given: Any, reference: str) -> str:
    if not isinstance(given, str) or not given:
        raise _unusable(f"{reference.removeprefix(BEARER)!r} must be a text to be sent as a token")
    return given


def _parts(reference: str) -> tuple[str, str | None]:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        expected = "credentials://<id> or credentials://<id>/<field>"
        raise _unusable(f"a reference must be {expected}; got {clean_text(reference, 80)!r}")
    return match["id"], match["field"]


def _field(value: str, id: str, field: str | None) -> Any:
    """The value as JSON where it is that, or one field of it."""
    try:
        parsed = _decode(value)
    except (msgspec.MsgspecError, RecursionError):
        parsed = value
    if field is None:
        return parsed
    if not isinstance(parsed, dict) or field not in parsed:
        raise _unusable(f"credential {id!r} has no field {clean_text(field, 80)!r}")
    return parsed[field]


def _note(value: Any, whole: str, secrets: dict[str, None]) -> None:
    """Remember every text of a value that was handed out."""
    if whole:
        secrets[whole] = None
    if isinstance(value, str):
        if value:
            secrets[value] = None
    elif isinstance(value, dict):
        for each in value.values():
            _note(each, "", secrets)
    elif isinstance(value, list):
        for each in value:
            _note(each, "", secrets)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        secrets[str(value)] = None


def _unusable(message: str) -> RequestError:
    return RequestError("credential.unusable", message)
