"""Answers of a server as values, and refusals as the errors that the engine raised."""

from __future__ import annotations

from typing import Any

import msgspec

from detent.model.errors import CODES, DetentError, StoreError, error_of

CODE = "x-detent-code"
_SHOWN = 120

# what a status means where the answer does not say it
_BY_STATUS = {
    400: ("request.invalid", "the server refused the request"),
    401: ("request.unauthorized", "the API key is missing, wrong, revoked or expired"),
    403: ("request.forbidden", "the API key does not allow that, or not for that tenant"),
    413: ("payload.too_large", "the request is larger than the server takes"),
    422: ("request.invalid", "the server could not read the request"),
    429: ("request.rate", "too many requests came at once; try again later"),
    503: ("server.unreachable", "the server is not ready; try again later"),
}
_NO_TENANT = "the call names no tenant; give the client one, or the verb"


def answer_of(body: bytes, gives: Any, url: str) -> Any:
    """The value of an answer that went well."""
    if gives is None:
        return None
    try:
        return msgspec.json.decode(body, type=gives)
    except msgspec.DecodeError as error:
        raise _strange(url, f"{error}: {_cut(body)}") from None


def error_in(status: int, headers: dict[str, str], body: bytes, url: str) -> DetentError:
    """The error that an answer tells of."""
    told = _told(body)
    code = str(told.get("code") or headers.get(CODE, ""))
    if code not in CODES:
        return _unnamed(status, code, body, url)
    sentence = str(told.get("error") or _text(body))
    details = told.get("details")
    message = _without_class(sentence) if told else sentence
    if not message:
        message = _NO_TENANT if code == "request.tenant" else _meaning(status, code)
    return error_of(code, message, details if isinstance(details, dict) else None)


def _unnamed(status: int, code: str, body: bytes, url: str) -> DetentError:
    """An answer without a code of ours: of a proxy, another program, or a later release."""
    if status not in _BY_STATUS:
        return _strange(url, f"status {status} {code} {_cut(body)}".strip())
    known, meaning = _BY_STATUS[status]
    said = _without_class(str(_told(body).get("error") or _text(body)))
    return error_of(known, f"{meaning}: {code or said}" if code or said else meaning)


def _strange(url: str, what: str) -> StoreError:
    return StoreError(
        "server.answer",
        f"{url} gave an answer that no Detent server of this release gives ({what}); check the URL",
    )


def _meaning(status: int, code: str) -> str:
    return _BY_STATUS[status][1] if status in _BY_STATUS else CODES[code]


def _told(body: bytes) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return told if isinstance(told, dict) else {}


def _without_class(sentence: str) -> str:
    """The sentence without the class of error that the contract puts before it."""
    kind, colon, rest = sentence.partition(": ")
    return rest if colon and kind in _CLASSES else sentence


_CLASSES = frozenset(
    {
        "already exists",
        "bad gateway",
        "conflict",
        "forbidden",
        "invalid argument",
        "not found",
        "payload too large",
        "rate limit exceeded",
        "unauthorized",
        "unavailable",
        "unprocessable entity",
    }
)


def _text(body: bytes) -> str:
    text = body.decode(errors="replace").strip()
    return text if len(text) <= _SHOWN * 10 else _cut(body)


def _cut(body: bytes) -> str:
    return repr(body[:_SHOWN].decode(errors="replace"))
