"""Windows as values: when, week by week, something is allowed in the local time of a zone.

A span belongs to the local date it starts on. On a date that is listed as a holiday it is closed
whole, also the part after midnight; what the evening before began goes on.

Both edges of a span are local times of that date, turned into instants by `instant_of` with the
policies of the window, and the span is open on the half-open stretch between them. So where the
wall clock jumps:
- an edge inside a gap is the end of the gap (`next`), one gap later (`shift`), or the last second
  before it (`before`); a span whose edges meet that way is closed on that date;
- an edge inside a fold is its first or its second occurrence, for the opening and the closing
  alike: with `first`, 02:15-02:45 is open for half an hour in the first pass and not again.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from detent.calendar.business import holiday_ordinals
from detent.calendar.local import Fold, Gap, check_policies
from detent.calendar.zones import check_zone
from detent.model.errors import RequestError
from detent.model.limits import WINDOW_SPANS

DAY_MINUTES = 1_440
WEEK_DAYS = 7


class Span(NamedTuple):
    """One opening: a weekday (0 is Monday) and minutes since its local midnight.

    An end beyond 1440 lies after midnight; a span lasts at most a day of the wall clock.
    """

    day: int
    start: int
    end: int


class Window(Struct, frozen=True):
    """The spans of a week in a zone, but for holidays (`YYYY-MM-DD`)."""

    spans: tuple[Span, ...]
    zone: str
    holidays: frozenset[str] = frozenset()
    gap: Gap = "next"
    fold: Fold = "first"

    def __post_init__(self) -> None:
        check_zone(self.zone)
        check_policies(self.gap, self.fold)
        holiday_ordinals(self.holidays)
        most = WINDOW_SPANS * WEEK_DAYS
        if not 1 <= len(self.spans) <= most:
            raise RequestError(
                "calendar.window",
                f"a window needs 1 to {most} spans, found {len(self.spans)}; change the spans",
            )
        for span in self.spans:
            _check(span)


def _check(span: Span) -> None:
    day, start, end = span
    if not 0 <= day < WEEK_DAYS:
        wanted = "the weekday of a span must be 0 (Monday) to 6 (Sunday)"
        raise RequestError("calendar.window", f"{wanted}, found {day}; change it")
    if not 0 <= start < DAY_MINUTES:
        wanted = f"a span must start at minute 0 to {DAY_MINUTES - 1} of its day"
        raise RequestError("calendar.window", f"{wanted}, found {start}; change it")
    if not start < end <= start + DAY_MINUTES:
        wanted = f"a span that starts at minute {start} must end after it and within a day"
        advice = "one that crosses midnight ends beyond 1440"
        raise RequestError("calendar.window", f"{wanted}, found {end}; {advice}")
