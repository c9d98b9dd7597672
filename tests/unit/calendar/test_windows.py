"""A window is checked when it is made."""

from __future__ import annotations

import pytest

from detent.calendar import Span, Window
from detent.model.errors import RequestError
from detent.model.limits import WINDOW_SPANS

DAILY = Span(0, 540, 1020)


@pytest.mark.parametrize(
    "span", [Span(0, 0, 1), Span(6, 1439, 1440), Span(3, 1439, 2879), Span(0, 0, 1440)]
)
def test_a_span_lasts_from_a_minute_to_a_day(span):
    assert Window((span,), "UTC").spans == (span,)


@pytest.mark.parametrize(
    ("span", "sentence"),
    [
        (Span(-1, 0, 60), "weekday"),
        (Span(7, 0, 60), "weekday"),
        (Span(0, -1, 60), "start at minute"),
        (Span(0, 1440, 1500), "start at minute"),
        (Span(0, 540, 540), "end after it"),
        (Span(0, 540, 480), "end after it"),
        (Span(0, 540, 1981), "within a day"),
    ],
)
def test_a_span_that_is_empty_too_long_or_on_no_weekday_is_refused(span, sentence):
    with pytest.raises(RequestError, match=sentence) as refused:
        Window((DAILY, span), "UTC")
    assert refused.value.code == "calendar.window"


def test_the_number_of_spans_has_limits():
    most = 7 * WINDOW_SPANS
    assert Window((DAILY,) * most, "UTC")
    for spans in ((), (DAILY,) * (most + 1)):
        with pytest.raises(RequestError, match="1 to 336 spans") as refused:
            Window(spans, "UTC")
        assert refused.value.code == "calendar.window"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"zone": "Europe/Berln"}, "calendar.zone"),
        ({"holidays": frozenset({"2026-13-01"})}, "calendar.date"),
        ({"gap": "skip"}, "request.invalid"),
        ({"fold": "both"}, "request.invalid"),
    ],
)
def test_zone_holidays_and_policies_are_checked(changed, code):
    with pytest.raises(RequestError) as refused:
        Window(**({"spans": (DAILY,), "zone": "UTC"} | changed))
    assert refused.value.code == code


def test_equal_windows_are_one_key():
    assert len({Window((DAILY,), "UTC"), Window((DAILY,), "UTC")}) == 1
    assert Window((DAILY,), "UTC") != Window((DAILY,), "UTC", fold="second")
