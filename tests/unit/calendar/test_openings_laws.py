"""Laws that openings keep for any windows, zones and instants."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from detent.calendar import Span, Window, closing, instant_of, is_open, last_closing, next_opening
from detent.calendar.openings import _joint
from detent.calendar.zones import zone_names

START, END = (instant_of(datetime(year, 1, 1), "UTC") for year in (2000, 2041))
HOUR = 3_600_000

spans = st.builds(
    lambda day, start, length: Span(day, start, start + length),
    st.integers(0, 6),
    st.integers(0, 1439),
    st.integers(1, 1440),
)
dates = st.dates(date(2000, 1, 1), date(2041, 1, 1)).map(date.isoformat)
windows = st.lists(
    st.builds(
        Window,
        st.lists(spans, min_size=1, max_size=14).map(tuple),
        st.sampled_from(zone_names()),
        st.frozensets(dates, max_size=5),
        st.sampled_from(["next", "shift", "before"]),
        st.sampled_from(["first", "second"]),
    ),
    min_size=1,
    max_size=3,
)
instants = st.integers(START, END)
shares = st.lists(st.floats(0, 1, exclude_max=True), max_size=20)


def between(low, high, parts):
    return [low + int((high - low) * part) for part in parts if low < high]


@given(windows, instants, shares)
def test_the_next_opening_is_open_and_nothing_before_it_is(chosen, now, parts):
    opening = next_opening(chosen, now)
    if opening is None:
        assert not any(is_open(chosen, at) for at in between(now, now + 9_000 * HOUR, parts))
        return
    assert opening >= now
    assert is_open(chosen, opening)
    assert next_opening(chosen, opening) == opening
    if opening > now:
        assert not any(is_open(chosen, at) for at in (now, opening - 1))
        assert not any(is_open(chosen, at) for at in between(now, opening, parts))


@given(windows, instants, st.integers(0, 500 * HOUR))
def test_asked_later_the_next_opening_is_not_earlier(chosen, now, wait):
    first, second = next_opening(chosen, now), next_opening(chosen, now + wait)
    if first is not None and second is not None:
        assert first <= second
        assert first < now + wait or second == first


@given(windows, instants, shares)
def test_until_it_closes_it_is_open_and_then_it_is_not(chosen, now, parts):
    opening = next_opening(chosen, now)
    closes = None if opening is None else closing(chosen, opening)
    if closes is not None:
        assert closes > opening
        assert not is_open(chosen, closes)
        assert all(is_open(chosen, at) for at in between(opening, closes, parts))
        assert last_closing(chosen, closes) == closes


@given(windows, instants, shares)
def test_since_the_last_closing_nothing_was_open(chosen, now, parts):
    closed = last_closing(chosen, now)
    if closed is not None:
        assert closed <= now
        assert is_open(chosen, closed - 1)
        assert not any(is_open(chosen, at) for at in between(closed, now, parts))


@given(windows, st.lists(st.tuples(instants, st.booleans()), min_size=1, max_size=8))
def test_an_answer_does_not_depend_on_what_was_asked_before(chosen, asked):
    ask = [next_opening if forwards else last_closing for _at, forwards in asked]
    near = [START + at % (3_000 * HOUR) for at, _forwards in asked]
    together = [verb(chosen, at) for verb, at in zip(ask, near, strict=True)]
    alone = []
    for verb, at in zip(ask, near, strict=True):
        _joint.cache_clear()
        alone.append(verb(chosen, at))
    assert together == alone


def test_a_year_of_instants_agrees_with_a_plain_reading_of_the_wall_clock():
    # Without changes of offset a window is what its local minutes say.
    window = Window((Span(0, 540, 720), Span(2, 1200, 1560), Span(6, 0, 1440)), "Asia/Tokyo")
    for hours in range(0, 8_760, 5):
        local = datetime(2026, 1, 1) + timedelta(hours=hours, minutes=hours % 60)
        minute = local.weekday() * 1440 + local.hour * 60 + local.minute
        expected = any(
            0 <= (minute - span.day * 1440 - span.start) % 10_080 < span.end - span.start
            for span in window.spans
        )
        assert is_open([window], instant_of(local, "Asia/Tokyo")) == expected
