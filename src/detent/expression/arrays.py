"""The functions about arrays and objects; each one is metered by what it visits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.expression.meter import keep_value, spend, spend_text
from detent.expression.numeric import Number, divide, plus
from detent.expression.values import MISMATCH, Marker, Mismatch, equal

if TYPE_CHECKING:
    from detent.expression.run import Run

# So many comparisons inside a sort cost as much as one operation of ours.
_SORT_SPEED = 4


def whole(value: Number | None) -> int | None:
    """Take a number that is an integer."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _items(value: Any, run: Run) -> list[Any] | Mismatch:
    if not isinstance(value, list):
        return MISMATCH
    spend(run.meter, 1 + len(value))
    return value


def _numbers(value: Any, run: Run) -> list[Number] | Mismatch:
    items = _items(value, run)
    if isinstance(items, Marker):
        return MISMATCH
    numbers = [number for item in items if (number := run.number(item)) is not None]
    return numbers if len(numbers) == len(items) else MISMATCH


def length(args: list[Any], _: Run) -> Any:
    """Count characters, elements or members."""
    return len(args[0]) if isinstance(args[0], (str, list, dict)) else MISMATCH


def keys(args: list[Any], run: Run) -> Any:
    """List the keys of an object in their order."""
    if not isinstance(args[0], dict):
        return MISMATCH
    spend(run.meter, 1 + len(args[0]))
    return list(args[0])


def values(args: list[Any], run: Run) -> Any:
    """List the values of an object in the order of its keys."""
    if not isinstance(args[0], dict):
        return MISMATCH
    spend(run.meter, 1 + len(args[0]))
    return list(args[0].values())


def total(args: list[Any], run: Run) -> Any:
    """Add up an array of numbers; an empty one gives 0."""
    numbers = _numbers(args[0], run)
    return numbers if isinstance(numbers, Marker) else _sum(numbers)


def _sum(numbers: list[Number]) -> Number | Mismatch:
    result: Number | Mismatch = 0
    for number in numbers:
        if isinstance(result, Marker):
            break
        result = plus(result, number)
    return result


def added(args: list[Any], run: Run) -> Any:
    """Add up the arguments."""
    return total([args], run)


def average(args: list[Any], run: Run) -> Any:
    """Give the mean of an array of numbers; an empty one has none."""
    numbers = _numbers(args[0], run)
    if isinstance(numbers, Marker):
        return MISMATCH
    if not numbers:
        return None
    result = _sum(numbers)
    return result if isinstance(result, Marker) else divide(result, len(numbers))


def smallest(args: list[Any], run: Run) -> Any:
    """Give the least of an array of numbers, or of the arguments."""
    numbers = _numbers(args[0] if len(args) == 1 else args, run)
    return numbers if isinstance(numbers, Marker) else min(numbers, default=None)


def largest(args: list[Any], run: Run) -> Any:
    """Give the greatest of an array of numbers, or of the arguments."""
    numbers = _numbers(args[0] if len(args) == 1 else args, run)
    return numbers if isinstance(numbers, Marker) else max(numbers, default=None)


def first(args: list[Any], _: Run) -> Any:
    """Give the first element, null when there is none."""
    if not isinstance(args[0], list):
        return MISMATCH
    return args[0][0] if args[0] else None


def last(args: list[Any], _: Run) -> Any:
    """Give the last element, null when there is none."""
    if not isinstance(args[0], list):
        return MISMATCH
    return args[0][-1] if args[0] else None


def part(args: list[Any], run: Run) -> Any:
    """Cut an array or string from a start to an end, both counted from the back when negative."""
    value, start = args[0], whole(run.number(args[1]))
    bounds = [bound for bound in args[2:] if bound is not None]
    end = whole(run.number(bounds[0])) if bounds else None
    if not isinstance(value, (list, str)) or start is None or (bounds and end is None):
        return MISMATCH
    cut = value[start:end]
    if isinstance(cut, str):
        spend_text(run.meter, len(cut))
    else:
        spend(run.meter, 1 + len(cut))
    return cut


def _rank(value: Any) -> tuple[int, Any]:
    """Order any two JSON values: null, booleans, numbers, strings, then the rest as they come."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, (int, float)):
        return 2, value
    return (3, value) if isinstance(value, str) else (4, 0)


def ordered(args: list[Any], run: Run) -> Any:
    """Sort an array, descending when asked for 'desc'."""
    items = _items(args[0], run)
    direction = args[1] if len(args) > 1 else "asc"
    if isinstance(items, Marker) or direction not in ("asc", "desc"):
        return MISMATCH
    spend(run.meter, len(items) * len(items).bit_length() // _SORT_SPEED)
    return sorted(items, key=_rank, reverse=direction == "desc")


def unique(args: list[Any], run: Run) -> Any:
    """Keep the first of each equal elements."""
    items = _items(args[0], run)
    if isinstance(items, Marker):
        return MISMATCH
    seen: dict[tuple[int, Any], None] = {}
    containers: list[Any] = []
    kept: list[Any] = []
    for item in items:
        if isinstance(item, (list, dict)):
            spend(run.meter, 1 + len(containers))
            if any(equal(item, other, run.meter) for other in containers):
                continue
            containers.append(item)
        else:
            key = _rank(item)
            if key in seen:
                continue
            seen[key] = None
        kept.append(item)
    return kept


def count(args: list[Any], run: Run) -> Any:
    """Count the elements of an array, or those equal to a value."""
    items = _items(args[0], run)
    if isinstance(items, Marker):
        return MISMATCH
    if len(args) == 1:
        return len(items)
    return sum(1 for item in items if equal(item, args[1], run.meter))


def merged(args: list[Any], run: Run) -> Any:
    """Merge objects, later ones win; null counts as empty."""
    result: dict[str, Any] = {}
    for arg in args:
        if arg is None:
            continue
        if not isinstance(arg, dict):
            return MISMATCH
        spend(run.meter, 1 + len(arg))
        result.update(arg)
    keep_value(run.meter, result)
    return result
