"""Time zones, business days, windows and cron: pure functions of instants, zones and lists.

Instants are milliseconds since 1970 in UTC; zones are IANA names, answered from the `tzdata`
package alone. Nothing here reads a clock. What the functions return is recorded as a fact with
`tzdata_version`, so that a replay is not moved by newer data.
"""

from __future__ import annotations

from detent.calendar.business import (
    business_instant,
    holidays_of,
    is_business_day,
    jittered,
    next_local_time,
)
from detent.calendar.countries import country_dates
from detent.calendar.cron import Cron
from detent.calendar.cron_text import parse_cron
from detent.calendar.local import instant_of, local_of
from detent.calendar.openings import closing, is_open, last_closing, next_opening
from detent.calendar.windows import Span, Window
from detent.calendar.zones import check_zone, tzdata_version

__all__ = [
    "Cron",
    "Span",
    "Window",
    "business_instant",
    "check_zone",
    "closing",
    "country_dates",
    "holidays_of",
    "instant_of",
    "is_business_day",
    "is_open",
    "jittered",
    "last_closing",
    "local_of",
    "next_local_time",
    "next_opening",
    "parse_cron",
    "tzdata_version",
]
