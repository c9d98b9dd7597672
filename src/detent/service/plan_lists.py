"""Lists of runs: by status, plan, contact and time of start, in pages, with their number.

Rows are narrowed down by labels and states of the core; what only a snapshot knows (whether a run
has started, and when) is looked up for those that are left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from msgspec import Struct

from detent.model import limits
from detent.model.snapshot import decode_snapshot
from detent.ports.listing import ListQuery
from detent.service.arguments import check_text, instant_ms, invalid
from detent.service.plans import LABEL, STATUSES, RunView, status_of, view_of
from detent.service.reading import check_tenant, timing_of

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.model.snapshot import Snapshot
    from detent.ports.store import InstanceRow, Store

_AT_ONCE = 500
_PLAIN = ("WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED")  # told by the row alone


class RunFilter(TypedDict, total=False):
    """Which runs are wanted; what is left out does not filter."""

    status: str
    plan: str
    contact: str
    started_after: dt.datetime
    started_before: dt.datetime


class RunList(Struct, frozen=True, kw_only=True):
    """A page of runs, the newest first; `next` is the cursor of the page that follows."""

    items: tuple[RunView, ...]
    next: int | None
    total: int


class _Wanted(NamedTuple):
    status: str
    after_ms: int | None
    before_ms: int | None

    @property
    def by_row(self) -> bool:
        """Whether the row alone tells if a run is wanted."""
        untimed = self.after_ms is None and self.before_ms is None
        return untimed and (not self.status or self.status in _PLAIN)


class RunPage(NamedTuple):
    """Which page of the list, for whom, and now."""

    tenant: str | None
    limit: int
    cursor: int | None
    tick: int


def list_runs(store: Store, given: RunFilter, page: RunPage) -> RunList:
    """The runs that pass a filter."""
    query, wanted = _query(given, page), _wanted(given)
    total = 0
    found: list[InstanceRow] = []
    for row in _matching(store, query, wanted):
        total += 1
        below = page.cursor is None or row.n < page.cursor
        if below and len(found) <= page.limit:
            found.append(row)
    shown = found[: page.limit]
    return RunList(
        items=tuple(view_of(store, row, page.tick) for row in shown),
        next=shown[-1].n if len(found) > page.limit else None,
        total=total,
    )


def _matching(store: Store, query: ListQuery, wanted: _Wanted) -> Iterator[InstanceRow]:
    timing = timing_of(store)
    while rows := store.recent_instances(query):
        loaded = {} if wanted.by_row else store.load([row.id for row in rows])
        for row in rows:
            body = None if wanted.by_row else loaded[row.id].body
            snapshot = None if body is None else decode_snapshot(body)
            if wanted.by_row or _fits(snapshot, wanted, timing):
                yield row
        query = query._replace(before=rows[-1].n)


def _fits(snapshot: Snapshot | None, wanted: _Wanted, timing: Timing) -> bool:
    if snapshot is None:  # it waits to be taken in
        return wanted.status == "PENDING" and wanted.after_ms is None and wanted.before_ms is None
    if wanted.status and status_of(snapshot) != wanted.status:
        return False
    if wanted.after_ms is None and wanted.before_ms is None:
        return True
    if snapshot.started is None:
        return False
    started = timing.ms_of(snapshot.started)
    late = wanted.after_ms is None or started >= wanted.after_ms
    return late and (wanted.before_ms is None or started < wanted.before_ms)


def _query(given: RunFilter, page: RunPage) -> ListQuery:
    check_tenant(page.tenant)
    if type(page.limit) is not int or not 0 < page.limit <= limits.RUNS_LISTED:
        raise invalid("limit", f"a whole number from 1 to {limits.RUNS_LISTED}", page.limit)
    if page.cursor is not None and (type(page.cursor) is not int or page.cursor < 1):
        raise invalid("cursor", "the `next` of a page before", page.cursor)
    for name in given:
        if name not in RunFilter.__optional_keys__:
            names = ", ".join(sorted(RunFilter.__optional_keys__))
            raise invalid("a filter", f"one of {names}", name)
    labels = [LABEL]
    for name, value in (("plan", given.get("plan")), ("contact", given.get("contact"))):
        if value is not None:
            check_text(name, value, limits.NAME_CHARS)
            labels.append((name, value))
    states: tuple[str, ...] = ()
    status: Any = given.get("status")
    if status is not None:
        if status not in STATUSES:
            raise invalid("status", f"one of {', '.join(STATUSES)}", status)
        states = STATUSES[status]
    return ListQuery(tenant=page.tenant or "", labels=tuple(labels), states=states, limit=_AT_ONCE)


def _wanted(given: RunFilter) -> _Wanted:
    after, before = given.get("started_after"), given.get("started_before")
    return _Wanted(
        given.get("status") or "",
        None if after is None else instant_ms("started_after", after),
        None if before is None else instant_ms("started_before", before),
    )
