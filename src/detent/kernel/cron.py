"""A schedule as its instance keeps it: what was asked for, and what has become of it.

It lives in the instance's `kv`, which no signal can touch. Instants are epoch milliseconds. Every
setting is checked by `check`, before a start is submitted and again before a change is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args

from msgspec import Struct, convert, field, to_builtins

from detent.calendar import check_zone, parse_cron
from detent.model import limits
from detent.model.errors import RequestError

Overlap = Literal["allow", "skip", "buffer_one", "cancel_previous"]
"""What a fire does while an instance of the schedule still runs."""

Missed = Literal["one", "all", "none"]
"""Which fires are made up for that passed while nothing ran."""

_PRIORITIES = range(4)
_SHOWN = 80


class Cron(Struct, kw_only=True, omit_defaults=True):
    """One schedule: settings first, then counters and where it stands."""

    id: str
    cron_expr: str
    sequence: str
    timezone: str = "UTC"
    version: int | None = None
    definition: str | None = None  # the hash of the version that was named; else looked up
    namespace: str = "default"
    priority: int = 1
    metadata: dict[str, Any] | None = None
    data: Any = None
    config: Any = None
    overlap_policy: Overlap = "allow"
    missed_policy: Missed = "one"
    missed_limit: int = limits.CRON_MISSED
    enabled: bool = True

    fires: int = 0  # that started an instance
    skipped_fires: int = 0  # that started none: an overlap, or missed
    failed_fires: int = 0  # that could start none: no such sequence
    last_triggered_at: int | None = None
    last_skipped_at: int | None = None
    last_error: str = ""
    next_fire_at: int | None = None
    held_fire_at: int | None = None  # of buffer_one: started when the running instance ends
    running: list[str] = field(default_factory=list)  # the newest instances that have not ended
    stopping: list[str] = field(default_factory=list)  # those of them that were asked to end
    created_at: int = 0
    updated_at: int = 0


def read_cron(kept: Mapping[str, Any]) -> Cron:
    """A schedule out of `kv`, or out of the data of its start."""
    return convert(kept, Cron)


def kept_cron(cron: Cron) -> dict[str, Any]:
    """A schedule as `kv` keeps it."""
    kept: dict[str, Any] = to_builtins(cron)
    return kept


def check(settings: Mapping[str, Any], said: Mapping[str, str] | None = None) -> None:
    """Refuse settings with a value that no schedule can have; `said` holds a caller's words."""
    for name, value in settings.items():
        rule = _RULES.get(name)
        if rule is None:
            raise unknown_setting(name, _RULES)
        rule(said.get(name, name) if said else name, value)


def unknown_setting(name: str, known: Iterable[str]) -> RequestError:
    """The error for a setting that no schedule has, with the one that may have been meant."""
    names = list(known)
    near = get_close_matches(name[:_SHOWN], names, n=1, cutoff=0.7)
    advice = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
    return RequestError("request.invalid", f"a schedule has no setting {name!r}; {advice}")


def _expression(name: str, value: Any) -> None:
    _text(name, value)
    parse_cron(value)


def _zone(name: str, value: Any) -> None:  # noqa: ARG001 - the zone's own sentence says enough
    check_zone(value)


def _text(name: str, value: Any) -> None:
    if type(value) is not str or not 0 < len(value) <= limits.NAME_CHARS:
        raise _invalid(name, f"text of 1 to {limits.NAME_CHARS} characters", value)


def _hash(name: str, value: Any) -> None:
    if value is not None:
        _text(name, value)


def _flag(name: str, value: Any) -> None:
    if type(value) is not bool:
        raise _invalid(name, "True or False", value)


def _object(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, dict):
        raise _invalid(name, "an object, or nothing", value)


def _number(first: int, last: int) -> Callable[[str, Any], None]:
    def rule(name: str, value: Any) -> None:
        if type(value) is not int or not first <= value <= last:
            raise _invalid(name, f"a whole number from {first} to {last}", value)

    return rule


def _one_of(words: tuple[str, ...]) -> Callable[[str, Any], None]:
    def rule(name: str, value: Any) -> None:
        if type(value) is not str or value not in words:
            raise _invalid(name, f"one of {', '.join(words)}", value)

    return rule


def _version(name: str, value: Any) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise _invalid(name, "a whole number, or nothing", value)


def _anything(name: str, value: Any) -> None:
    """Its size and form were checked where it came in."""


_RULES: Final[dict[str, Callable[[str, Any], None]]] = {
    "cron_expr": _expression,
    "timezone": _zone,
    "enabled": _flag,
    "overlap_policy": _one_of(get_args(Overlap)),
    "missed_policy": _one_of(get_args(Missed)),
    "missed_limit": _number(1, limits.CRON_MISSED_MOST),
    "priority": _number(_PRIORITIES[0], _PRIORITIES[-1]),
    "metadata": _object,
    "data": _anything,
    "config": _anything,
    "sequence": _text,
    "version": _version,
    "definition": _hash,
}


def _invalid(name: str, expected: str, got: object) -> RequestError:
    text = repr(got)
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return RequestError("request.invalid", f"{name} must be {expected}; got {text}")
