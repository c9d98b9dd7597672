"""IANA time zones out of the `tzdata` package, never out of the machine's own files.

So the same release of Detent with the same `tzdata` gives the same instants on every machine, and
`tzdata_version` says with which data an instant was computed.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]

from detent.model.errors import RequestError

_SHOWN = 60

# A placeholder of the data for "nobody has chosen a zone": taken as unknown, to fail closed.
_NOT_CHOSEN = "Factory"


def tzdata_version() -> str:
    """Return the version of the time zone data in use, such as `2026a`."""
    return str(tzdata.IANA_VERSION)


def check_zone(name: Any) -> str:
    """Return the name if it is a zone, else refuse it with a near match."""
    if type(name) is str and name in _names():
        return name
    shown = repr(name) if len(repr(name)) <= _SHOWN else repr(name)[:_SHOWN] + "…"
    near = _near(name) if type(name) is str else ""
    advice = f"did you mean {near}?" if near else "use a name such as Europe/Berlin or UTC"
    raise RequestError(
        "calendar.zone", f"expected an IANA time zone, found {shown}; {advice}", zone=name
    )


@cache
def rules_of(zone: str) -> ZoneInfo:
    """Return the rules of a zone, read once."""
    place = files("tzdata").joinpath("zoneinfo", *check_zone(zone).split("/"))
    with place.open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


@cache
def zone_names() -> tuple[str, ...]:
    """Return every zone name of the data, in order."""
    text = files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return tuple(sorted(name for name in text.split() if name != _NOT_CHOSEN))


@cache
def _names() -> frozenset[str]:
    return frozenset(zone_names())


def _near(name: str) -> str:
    """Find the zone somebody may have meant: another case, a city alone, a slip of a letter."""
    plain = name.casefold().replace(" ", "_")
    by_plain = {zone.casefold(): zone for zone in reversed(zone_names())}
    by_city = {zone.rpartition("/")[2]: zone for zone in by_plain}
    for known in (by_plain, {city: by_plain[zone] for city, zone in by_city.items()}):
        found = get_close_matches(plain[:_SHOWN], known, n=1, cutoff=0.8)
        if found:
            return known[found[0]]
    return ""
