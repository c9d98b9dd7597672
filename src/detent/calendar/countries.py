"""Public holidays of countries, from the optional package `holidays`.

Its data changes from release to release, so the dates are resolved once, when a definition is
registered, and kept with its version; nothing looks them up while an instance runs.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from detent.model.errors import RequestError
from detent.model.limits import COUNTRY_YEARS

_CODE = re.compile(r"[A-Z]{2}", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1, 9999


def country_dates(
    country: str, first_year: int, last_year: int, subdivision: str = ""
) -> tuple[str, ...]:
    """Return the public holidays of a country as sorted dates `YYYY-MM-DD`, both years included.

    The country is an ISO code such as `DE`; its part may follow as in `DE-BY`.
    """
    code, _, part = str(country).partition("-")
    part = subdivision or part
    if not _CODE.fullmatch(code):
        raise _unknown(country, "expected a country as two letters such as DE, or DE-BY")
    years = range(first_year, last_year + 1)
    if not 1 <= len(years) <= COUNTRY_YEARS or first_year < _FIRST_YEAR or last_year > _LAST_YEAR:
        wanted = f"the years of a country's holidays must be 1 to {COUNTRY_YEARS} in a row"
        raise RequestError("calendar.country", f"{wanted}, found {first_year} to {last_year}")
    library = _library()
    try:
        with warnings.catch_warnings():
            # It warns of years for which it knows only the fixed dates of a country; take those.
            warnings.simplefilter("ignore")
            found = library.country_holidays(code, subdiv=part or None, years=years)
    except NotImplementedError as error:
        where = f"{code}-{part}" if part else code
        raise _unknown(
            where, "expected a country, or a part of one, with known holidays"
        ) from error
    first, last = f"{first_year:04d}-01-01", f"{last_year:04d}-12-31"
    dates = sorted(day.isoformat() for day in found)
    return tuple(day for day in dates if first <= day <= last)


def _library() -> Any:
    try:
        import holidays
    except ImportError as error:
        raise RequestError(
            "calendar.country",
            "country calendars need the package holidays, which is not installed; "
            "install it with pip install 'detent[holidays]', or list the dates themselves",
        ) from error
    return holidays


def _unknown(country: object, expected: str) -> RequestError:
    shown = repr(country)[:40]
    return RequestError("calendar.country", f"{expected}, found {shown}; change it")
