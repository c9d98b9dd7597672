"""Between instants (ms since 1970 in UTC) and what the clock on the wall shows in a zone.

Twice a year in many zones the wall clock jumps. Where it jumps forward, local times in between do
not exist (a *gap*); where it jumps back, local times happen twice (a *fold*). Every caller says
what it wants there:

- gap `next`: the first instant after the gap; `shift`: the wall time moved on by the length of the
  gap (02:30 becomes 03:30); `before`: the last whole second before the gap.
- fold `first` or `second`: which of the two.

The rules answer a local time with the offset before the change (`fold=0`) or after it (`fold=1`);
the two differ in gaps and folds only, and there the change itself lies between the two instants.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from detent.calendar.zones import rules_of
from detent.model.errors import RequestError, invariant

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

Gap = Literal["next", "shift", "before"]
Fold = Literal["first", "second"]

GAPS = ("next", "shift", "before")
FOLDS = ("first", "second")

_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def instant_of(local: datetime, zone: str, gap: Gap = "next", fold: Fold = "first") -> int:
    """Return the instant at which the wall clock of a zone shows a local time."""
    if gap not in GAPS or fold not in FOLDS:
        check_policies(gap, fold)
    if local.tzinfo is not None or local.fold:
        local = _plain(local)
    rules = rules_of(zone)
    since = local - _EPOCH
    before = _offset(rules, local)
    after = _offset(rules, local.replace(fold=1))
    if before == after:
        return (since - before) // _MS
    if before > after:
        return (since - (before if fold == "first" else after)) // _MS
    if gap == "shift":
        return (since - before) // _MS
    end = _change(rules, since - after, since - before, before) * 1000
    return end if gap == "next" else end - 1000


def local_of(ms: int, zone: str) -> datetime:
    """Return what the wall clock of a zone shows at an instant, to the millisecond."""
    seconds, rest = divmod(ms, 1000)
    return aware_of(seconds, zone).replace(microsecond=rest * 1000, tzinfo=None, fold=0)


def aware_of(seconds: int, zone: str) -> datetime:
    """Return the local time at a second, with its offset; `fold` says that it is the second one."""
    try:
        return datetime.fromtimestamp(seconds, rules_of(zone))
    except (OverflowError, ValueError, OSError) as error:
        raise RequestError(
            "calendar.date",
            f"expected an instant of the years 1 to 9999, found {seconds} s since 1970; change it",
            seconds=seconds,
        ) from error


def end_of_fold(local: datetime, zone: str) -> datetime:
    """Return the first local time after the fold that an ambiguous local time lies in."""
    rules = rules_of(zone)
    since = local - _EPOCH
    before = _offset(rules, local.replace(fold=0))
    after = _offset(rules, local.replace(fold=1))
    invariant(before > after, "only an ambiguous local time lies in a fold")
    change = _change(rules, since - before, since - after, before)
    return _EPOCH + timedelta(seconds=change) + before


def check_policies(gap: str, fold: str) -> None:
    """Refuse policies for gaps and folds that do not exist."""
    for name, value, known in (("gap", gap, GAPS), ("fold", fold, FOLDS)):
        if value not in known:
            wanted = " or ".join(known)
            raise RequestError("request.invalid", f"{name} must be {wanted}, found {value!r}")


def _plain(local: datetime) -> datetime:
    if local.tzinfo is not None:
        raise RequestError(
            "calendar.date",
            f"expected a local time without an offset, found {local.isoformat()}; leave it out",
        )
    return local.replace(fold=0)


def _offset(rules: ZoneInfo, local: datetime) -> timedelta:
    offset = rules.utcoffset(local)
    invariant(offset is not None, "every local time has an offset")
    return offset or timedelta()


def _change(rules: ZoneInfo, low: timedelta, high: timedelta, before: timedelta) -> int:
    """Return the first second after `low`, up to `high`, whose offset is not `before`."""
    early, late = low // _SECOND, -(-high // _SECOND)
    while late - early > 1:
        middle = (early + late) // 2
        if datetime.fromtimestamp(middle, rules).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late
