"""Arguments at the engine's doors: what is no proper text, flag, list or instant is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.model import limits
from detent.model.errors import RequestError

_SHOWN = 80


def storable(value: object) -> bool:
    """Whether a value is text that every store can hold: no NUL, no lone surrogate."""
    if type(value) is not str or "\x00" in value:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in value) if not value.isascii() else True


def check_text(name: str, value: object, most: int) -> None:
    """Refuse what is no text of 1 to `most` characters."""
    if not storable(value) or not 0 < len(str(value)) <= most:
        expected = f"text of 1 to {most} characters without NUL and lone surrogates"
        raise invalid(name, expected, value)


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if type(value) is not bool:
        raise invalid(name, "True or False", value)


def check_instance(instance: object) -> None:
    """An id that is no text is nobody's."""
    if not storable(instance) or len(str(instance)) > limits.KEY_CHARS:
        raise unknown_instance(instance)


def unknown_instance(instance: object) -> RequestError:
    """The error for an id nobody knows."""
    named = shown(instance)
    return RequestError(
        "instance.not_found", f"there is no instance {named}", instance=str(instance)[:_SHOWN]
    )


def wanted_states(state: Any) -> frozenset[str]:
    """The states a caller waits for: one, several, or by default any terminal one."""
    if state is None:
        return TERMINAL
    named = [state] if isinstance(state, str) else state
    if not isinstance(named, list | tuple | set | frozenset) or not named:
        raise invalid("state", f"one or several of {', '.join(INSTANCE)}", state)
    for each in named:
        if not isinstance(each, str) or each not in INSTANCE:
            raise invalid("state", f"one or several of {', '.join(INSTANCE)}", each)
    return frozenset(named)


def reference(text: str) -> tuple[str, int | None]:
    """Name and version out of `name` or `name@version`."""
    name, at, version = text.partition("@")
    if at and not (version.isascii() and version.isdecimal()):
        raise invalid("a definition", "a name or name@version with a whole number", text)
    return name, int(version) if at else None


def listed(name: str, items: Any) -> list[Any]:
    """The items of a list; a text or an object is none."""
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise invalid(name, "a list", items)
    return list(items)


def span_ms(name: str, span: Any) -> int:
    """A span as milliseconds, not longer than any duration may be."""
    if isinstance(span, dt.timedelta):
        span = span // dt.timedelta(milliseconds=1)
    if type(span) is not int or abs(span) > limits.DURATION_MS:
        raise invalid(name, "a timedelta, or whole milliseconds, of 100 years at most", span)
    return span


def instant_ms(name: str, at: Any) -> int:
    """An instant as Unix milliseconds; it must say its time zone."""
    if not isinstance(at, dt.datetime) or at.tzinfo is None:
        raise invalid(name, "a datetime with a time zone, e.g. datetime(..., tzinfo=UTC)", at)
    return int(at.timestamp() * 1000)


def invalid(name: str, expected: str, got: object) -> RequestError:
    """The refusal of one argument."""
    return RequestError("request.invalid", f"{name} must be {expected}; got {shown(got)}")


def shown(value: object) -> str:
    """What came, cut to what a sentence can hold."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
