"""Instants in words, and a schedule that stands still: what `explain` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.model.snapshot import Wait

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(ms: int) -> str:
    """An instant for people: UTC, to the millisecond."""
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return "an instant after the year 9999"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def schedule_words(
    kept: Mapping[str, Any], wait: Wait, due: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """What a schedule waits for, and what would let it go on."""
    freed: tuple[str, ...]
    label = f"schedule {kept['id']!r}"
    match wait.name:
        case "disabled":
            return f"{label} is disabled and fires nothing", ("enabling it",)
        case "over":
            waits, freed = "has no time left at which it fires", ("another expression for it",)
        case _:
            waits, freed = "waits for its next fire", (*due, "a change of the schedule")
    held = kept.get("held_fire_at")
    if held is None:
        return f"{label} {waits}", freed
    text = f"{label} holds its fire of {instant(held)} while an earlier one runs, and {waits}"
    return text, ("the end of what it has started", *freed)
