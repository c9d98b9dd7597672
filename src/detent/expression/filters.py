"""The filters of templates: `{{ path | upper | truncate(20, '…') }}`, left to right.

Arguments are checked when the template is compiled; the work is metered when it is done. Null
counts as "" for filters that make text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from detent.expression.meter import Meter, fit, oversized, spend, spend_text
from detent.expression.numeric import coerced, rounded, settled
from detent.expression.scope import Scope
from detent.expression.values import MISMATCH, kind_of, text_bytes, text_of, utf8
from detent.model.errors import ExpressionError
from detent.model.limits import TEMPLATE_RESULT_BYTES

_MOST_DIGITS = 15
# Percent encoding goes character by character in Python.
_ENCODED_CHARS_PER_OPERATION = 32


class Argument(NamedTuple):
    """One argument: its text, its typed value, and how to read it if it is a path."""

    text: str
    value: Any
    read: Callable[[Scope, Meter], Any] | None = None

    def typed(self, scope: Scope, meter: Meter) -> Any:
        """Give the value: a path's, or the literal with its type."""
        return self.value if self.read is None else self.read(scope, meter)

    def string(self, scope: Scope, meter: Meter) -> str:
        """Give the value as text."""
        return self.text if self.read is None else _text(self.read(scope, meter), meter)


Apply = Callable[[Any, Scope, Meter], Any]
Make = Callable[[tuple[Argument, ...]], Apply]


def make_filter(name: str, arguments: tuple[Argument, ...]) -> Apply:
    """Make a filter of that name, or refuse its arguments."""
    make, least, most = FILTERS[name]
    if not least <= len(arguments) <= most:
        expected = str(least) if least == most else f"{least} or {most}"
        raise _refused(name, f"takes {expected} arguments, {len(arguments)} were given")
    apply = make(arguments)

    def applied(value: Any, scope: Scope, meter: Meter) -> Any:
        result = apply(value, scope, meter)
        if isinstance(result, str) and text_bytes(result) > TEMPLATE_RESULT_BYTES:
            raise oversized()
        return result

    return applied


def _refused(name: str, why: str) -> ExpressionError:
    return ExpressionError("expression.type", f"The filter `{name}()` {why}.")


def _text(value: Any, meter: Meter) -> str:
    text = "" if value is None else text_of(value, meter)
    spend_text(meter, len(text))
    return text


def _textual(change: Callable[[str], str]) -> Make:
    return lambda _: lambda value, _scope, meter: change(_text(value, meter))


def _to_base64(text: str) -> str:
    return base64.b64encode(utf8(text)).decode("ascii")


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(utf8(text), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _refused("base64_decode", "expected base64 of a UTF-8 text") from None


def _url_encode(_: tuple[Argument, ...]) -> Apply:
    def encoded(value: Any, _scope: Scope, meter: Meter) -> str:
        text = _text(value, meter)
        spend(meter, len(text) // _ENCODED_CHARS_PER_OPERATION)
        return quote(utf8(text), safe="")

    return encoded


def _abs(_: tuple[Argument, ...]) -> Apply:
    return lambda value, _scope, _meter: _numeric("abs", value, lambda number: settled(abs(number)))


def _round(arguments: tuple[Argument, ...]) -> Apply:
    digits = arguments[0].value
    if type(digits) is not int or not 0 <= digits <= _MOST_DIGITS:
        raise _refused("round", f"expected a number of digits from 0 to {_MOST_DIGITS}")
    return lambda value, _scope, _meter: _numeric("round", value, lambda n: rounded(n, digits))


def _numeric(name: str, value: Any, compute: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    number = coerced(value)
    result = MISMATCH if number is None else compute(number)
    if result is MISMATCH:
        raise _refused(name, f"expected a number, found {kind_of(value)}")
    return result


def _default(arguments: tuple[Argument, ...]) -> Apply:
    (argument,) = arguments
    return lambda value, scope, meter: (
        argument.typed(scope, meter) if value is None or value == "" else value
    )


def _replace(arguments: tuple[Argument, ...]) -> Apply:
    old, new = arguments

    def replaced(value: Any, scope: Scope, meter: Meter) -> str:
        text, other = _text(value, meter), new.string(scope, meter)
        size = len(text) + text.count(old.text) * (len(other) - len(old.text))
        fit(size)
        spend_text(meter, size)
        return text.replace(old.text, other)

    return replaced


def _truncate(arguments: tuple[Argument, ...]) -> Apply:
    length = arguments[0].value
    if type(length) is not int or length < 0:
        raise _refused("truncate", "expected a number of characters")
    suffix = arguments[1] if len(arguments) > 1 else Argument("", "")

    def truncated(value: Any, scope: Scope, meter: Meter) -> str:
        text = _text(value, meter)
        return text if len(text) <= length else text[:length] + suffix.string(scope, meter)

    return truncated


def _join(arguments: tuple[Argument, ...]) -> Apply:
    def joined(value: Any, scope: Scope, meter: Meter) -> str:
        if not isinstance(value, list):
            return _text(value, meter)
        between = arguments[0].string(scope, meter)
        spend(meter, 1 + len(value))
        size = len(between) * len(value)
        parts: list[str] = []
        for item in value:
            parts.append(_text(item, meter))
            size += len(parts[-1])
            fit(size)
        return between.join(parts)

    return joined


def _split(arguments: tuple[Argument, ...]) -> Apply:
    if not arguments[0].text:
        raise _refused("split", "expected a separator, found an empty text")

    def divided(value: Any, scope: Scope, meter: Meter) -> list[str]:
        if value is None:
            return []
        text, between = _text(value, meter), arguments[0].string(scope, meter)
        if not between:
            raise _refused("split", "expected a separator, found an empty text")
        spend(meter, 1 + text.count(between))
        return text.split(between)

    return divided


def _hash(arguments: tuple[Argument, ...]) -> Apply:
    if arguments[0].text != "sha256":
        raise _refused("hash", f"knows sha256 only, found `{arguments[0].text}`")
    return lambda value, _scope, meter: hashlib.sha256(utf8(_text(value, meter))).hexdigest()


FILTERS: dict[str, tuple[Make, int, int]] = {
    "upper": (_textual(str.upper), 0, 0),
    "lower": (_textual(str.lower), 0, 0),
    "trim": (_textual(str.strip), 0, 0),
    "abs": (_abs, 0, 0),
    "url_encode": (_url_encode, 0, 0),
    "base64": (_textual(_to_base64), 0, 0),
    "base64_decode": (_textual(_from_base64), 0, 0),
    "default": (_default, 1, 1),
    "replace": (_replace, 2, 2),
    "truncate": (_truncate, 1, 2),
    "join": (_join, 1, 1),
    "split": (_split, 1, 1),
    "hash": (_hash, 1, 1),
    "round": (_round, 1, 1),
}
