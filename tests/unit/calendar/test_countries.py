"""Holidays of countries come from an optional package and are resolved to dates."""

from __future__ import annotations

import sys

import pytest

from detent.calendar import country_dates
from detent.model.errors import RequestError
from detent.model.limits import COUNTRY_YEARS


@pytest.mark.req("SEQ-TIM-2")
def test_the_holidays_of_a_country_are_sorted_dates_of_the_years_asked_for():
    dates = country_dates("DE", 2026, 2027)
    assert {"2026-01-01", "2026-05-25", "2026-12-25", "2027-12-26"} <= set(dates)
    assert list(dates) == sorted(set(dates))
    assert {date[:4] for date in dates} == {"2026", "2027"}
    assert "2026-06-04" not in dates


def test_a_part_of_a_country_adds_its_own():
    # Corpus Christi is a holiday in Bavaria.
    assert "2026-06-04" in country_dates("DE", 2026, 2026, "BY")
    assert country_dates("DE-BY", 2026, 2026) == country_dates("DE", 2026, 2026, "BY")


def test_years_that_a_country_knows_only_in_part_give_what_is_known():
    # The dates of India's lunar holidays are not known for all years.
    assert "2039-01-26" in country_dates("IN", 2020, 2040)


@pytest.mark.parametrize(
    ("country", "part"),
    [("XX", ""), ("de", ""), ("", ""), ("DEU", ""), ("DE", "ZZ"), ("DE-ZZ", ""), (None, "")],
)
def test_an_unknown_country_or_part_is_refused(country, part):
    with pytest.raises(RequestError, match="expected a country") as refused:
        country_dates(country, 2026, 2026, part)
    assert refused.value.code == "calendar.country"


def test_the_years_have_a_limit():
    assert country_dates("DE", 1950, 1950 + COUNTRY_YEARS - 1)
    for first, last in [(1950, 1950 + COUNTRY_YEARS), (2027, 2026), (0, 1), (9999, 10_000)]:
        with pytest.raises(RequestError, match="years") as refused:
            country_dates("DE", first, last)
        assert refused.value.code == "calendar.country"


def test_without_the_package_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(RequestError, match=r"pip install 'detent\[holidays\]'") as refused:
        country_dates("DE", 2026, 2026)
    assert refused.value.code == "calendar.country"
