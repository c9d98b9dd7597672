"""Countries and their holidays, which the version of a definition pins.

A country is named in a delay or a window. Its holidays are taken from the definition itself if it
brings them along (`calendars`), else from the country calendars of this machine; either way they
stand in the canonical form, so that a later release of those calendars moves nothing that runs.
"""

from __future__ import annotations

from typing import Any

from detent.calendar import country_dates
from detent.definition.places import below, quoted
from detent.definition.plain import NOT_PLAIN
from detent.definition.shapes.fields import words, wrong_type
from detent.definition.shapes.times import calendar_dates
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.errors import RequestError
from detent.model.limits import HOLIDAYS_FIRST_YEAR, HOLIDAYS_LAST_YEAR

_code = words()


def country(walk: Walk, path: str, value: Any) -> Any:
    """Check a country, "DE" or with its part "DE-BY", whose holidays are known."""
    if _code(walk, path, value) is NOTHING:
        return NOTHING
    if value not in walk.countries:
        given = walk.calendars.get(value)
        walk.countries[value] = _resolved(value) if given is None else given
    dates = walk.countries[value]
    if type(dates) is str:
        return walk.fault(path, "definition.country", dates)
    return value


def calendars(walk: Walk, path: str, value: Any) -> Any:
    """Check holidays by country that come along with the definition."""
    if type(value) is not dict:
        return wrong_type(walk, path, "an object of countries, each a list of dates", value)
    for code, dates in value.items():
        place = below(path, code)
        if dates is not NOT_PLAIN and _code(walk, place, code) is not NOTHING:
            out = calendar_dates(walk, place, dates)
            walk.calendars[code] = [] if out is NOTHING else out
    return walk.calendars


def pin_calendars(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    """Put the holidays of every country that is named into the definition, and no others."""
    pinned = {code: dates for code, dates in walk.countries.items() if type(dates) is list}
    out.pop("calendars", None)
    if pinned:
        out["calendars"] = pinned
    if type(raw.get("calendars")) is dict:
        shape = Shape("definition that names no such country", _fields(pinned))
        walk.note_unknown(below(path, "calendars"), raw["calendars"], shape)


def _fields(pinned: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(Field(code, calendar_dates) for code in pinned)


def _resolved(code: str) -> list[str] | str:
    """Give the holidays of a country, or the sentence why they cannot be found out."""
    name, dash, part = code.partition("-")
    if dash and not part:
        return f'expected a country such as "DE" or "DE-BY", found {quoted(code)}; correct it'
    try:
        dates = country_dates(name, HOLIDAYS_FIRST_YEAR, HOLIDAYS_LAST_YEAR, part)
    except RequestError as error:
        return error.message
    return sorted(set(dates))
