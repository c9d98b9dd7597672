"""The registry of functions an expression may call, and those about single values.

A function gets its evaluated arguments and the run; it answers `MISMATCH` to values it cannot
take. Whatever grows with the data is metered before it is done. `uuid`, `random` and `now` come
from the scope, so replay gives the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from detent.expression import arrays, dates
from detent.expression.meter import fit, spend, spend_text
from detent.expression.numeric import divide, minus, settled, times
from detent.expression.operators import holds, joined
from detent.expression.values import MISMATCH, Marker, json_text, text_of, truthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.expression.run import Run

_MANY = 10_000
_WORD = 2**64


class Function(NamedTuple):
    """A function and how many arguments it takes."""

    apply: Callable[[list[Any], Run], Any]
    least: int
    most: int


def _now(_: list[Any], run: Run) -> Any:
    return dates.instant(run.scope.now_ms) or MISMATCH


def _uuid(_: list[Any], run: Run) -> Any:
    high, low = run.scope.draw() % _WORD, run.scope.draw() % _WORD
    bits = (high << 64 | low) & ~(0xF << 76) & ~(0x3 << 62) | 0x4 << 76 | 0x2 << 62
    digits = f"{bits:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _random(args: list[Any], run: Run) -> Any:
    low, high = (arrays.whole(run.number(arg)) for arg in args)
    if low is None or high is None or low > high:
        return MISMATCH
    return low + run.scope.draw() % _WORD % (high - low + 1)


def _format_date(args: list[Any], run: Run) -> Any:
    text, pattern = args
    when = dates.moment(text) if isinstance(text, str) else None
    if when is None or not isinstance(pattern, str):
        return MISMATCH
    spend(run.meter, 1 + len(pattern))
    return dates.formatted(when, pattern)


def _day_of_week(args: list[Any], run: Run) -> Any:
    text = args[0] if args else dates.instant(run.scope.now_ms)
    when = dates.moment(text) if isinstance(text, str) else None
    return MISMATCH if when is None else when.weekday()


def _abs(args: list[Any], run: Run) -> Any:
    number = run.number(args[0])
    return MISMATCH if number is None else settled(abs(number))


def _change_pct(args: list[Any], run: Run) -> Any:
    old, new = run.number(args[0]), run.number(args[1])
    if old is None or new is None:
        return MISMATCH
    change = minus(new, old)
    percent = change if isinstance(change, Marker) else times(change, 100)
    return percent if isinstance(percent, Marker) else divide(percent, old)


def _clamp(args: list[Any], run: Run) -> Any:
    value, low, high = (run.number(arg) for arg in args)
    if value is None or low is None or high is None or low > high:
        return MISMATCH
    return min(max(value, low), high)


def _contains(args: list[Any], run: Run) -> Any:
    whole, part = args
    if isinstance(whole, list):
        return holds(whole, part, run.meter)
    if not isinstance(part, str):
        return MISMATCH
    if isinstance(whole, str):
        spend_text(run.meter, len(whole) + len(part))
        return part in whole
    return part in whole if isinstance(whole, dict) else MISMATCH


def _starts_with(args: list[Any], run: Run) -> Any:
    text, part = args
    if not isinstance(text, str) or not isinstance(part, str):
        return MISMATCH
    spend_text(run.meter, len(part))
    return text.startswith(part)


def _ends_with(args: list[Any], run: Run) -> Any:
    text, part = args
    if not isinstance(text, str) or not isinstance(part, str):
        return MISMATCH
    spend_text(run.meter, len(part))
    return text.endswith(part)


def _json(args: list[Any], run: Run) -> Any:
    return json_text(args[0], run.meter)


def _text_change(change: Callable[[str], str]) -> Callable[[list[Any], Run], Any]:
    def changed(args: list[Any], run: Run) -> Any:
        if not isinstance(args[0], str):
            return MISMATCH
        spend_text(run.meter, len(args[0]))
        text = change(args[0])
        fit(len(text))
        return text

    return changed


def _concat(args: list[Any], run: Run) -> Any:
    text = ""
    for arg in args:
        text = joined(text, "" if arg is None else text_of(arg, run.meter), run.meter)
    return text


def _coalesce(args: list[Any], _: Run) -> Any:
    return next((arg for arg in args if arg is not None), None)


def _if(args: list[Any], _: Run) -> Any:
    return args[1] if truthy(args[0]) else args[2]


def _is_blank(args: list[Any], run: Run) -> Any:
    text = args[0]
    if text is None:
        return True
    if not isinstance(text, str):
        return MISMATCH
    spend_text(run.meter, len(text))
    return not text.strip()


def _happened(kind: str) -> Callable[[list[Any], Run], Any]:
    """Look a flag `kind:step` up; `any`, or no step, asks for every step."""
    prefix = f"{kind}:"

    def happened(args: list[Any], run: Run) -> Any:
        step, events = args[0] if args else "any", run.scope.events
        if not isinstance(step, str):
            return MISMATCH
        if step != "any":
            return bool(events.get(prefix + step))
        spend(run.meter, 1 + len(events))
        return any(value and key.startswith(prefix) for key, value in events.items())

    return happened


def _call_outcome(args: list[Any], run: Run) -> Any:
    step = args[0]
    return run.scope.events.get(f"outcome:{step}") if isinstance(step, str) else MISMATCH


FUNCTIONS: dict[str, Function] = {
    "abs": Function(_abs, 1, 1),
    "len": Function(arrays.length, 1, 1),
    "json": Function(_json, 1, 1),
    "now": Function(_now, 0, 0),
    "uuid": Function(_uuid, 0, 0),
    "random": Function(_random, 2, 2),
    "format_date": Function(_format_date, 2, 2),
    "day_of_week": Function(_day_of_week, 0, 1),
    "keys": Function(arrays.keys, 1, 1),
    "values": Function(arrays.values, 1, 1),
    "contains": Function(_contains, 2, 2),
    "starts_with": Function(_starts_with, 2, 2),
    "ends_with": Function(_ends_with, 2, 2),
    "sum": Function(arrays.total, 1, 1),
    "avg": Function(arrays.average, 1, 1),
    "min": Function(arrays.smallest, 1, _MANY),
    "max": Function(arrays.largest, 1, _MANY),
    "first": Function(arrays.first, 1, 1),
    "last": Function(arrays.last, 1, 1),
    "slice": Function(arrays.part, 2, 3),
    "sort": Function(arrays.ordered, 1, 2),
    "unique": Function(arrays.unique, 1, 1),
    "count": Function(arrays.count, 1, 2),
    "change_pct": Function(_change_pct, 2, 2),
    "clamp": Function(_clamp, 3, 3),
    # workflows
    "coalesce": Function(_coalesce, 1, _MANY),
    "concat": Function(_concat, 1, _MANY),
    "add": Function(arrays.added, 2, _MANY),
    "if": Function(_if, 3, 3),
    "isNullOrWhiteSpace": Function(_is_blank, 1, 1),
    "length": Function(arrays.length, 1, 1),
    "upper": Function(_text_change(str.upper), 1, 1),
    "lower": Function(_text_change(str.lower), 1, 1),
    "trim": Function(_text_change(str.strip), 1, 1),
    "mergeObjects": Function(arrays.merged, 1, _MANY),
    # plans
    "events.hasReply": Function(_happened("reply"), 0, 1),
    "events.hasOpen": Function(_happened("open"), 0, 1),
    "events.hasClick": Function(_happened("click"), 0, 1),
    "events.hasBounce": Function(_happened("bounce"), 0, 1),
    "call.outcome": Function(_call_outcome, 1, 1),
}
