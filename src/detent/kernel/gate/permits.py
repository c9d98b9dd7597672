"""Permits: what was granted to calls that have not begun.

A limit is one on calls, and a grant is not a call yet: its handler may not be registered, no worker
may come for it, or the process may die. So a grant is a permit first. A permit counts on its limits
and its resource without end, until its call begins, which counts from that tick on, or until it is
given back. However late a call begins, no window ever sees one too many.

Permits come and go with every limited call, so they are stored by the sheet: those of one turn, a
few dozen to a row. Most of them begin together, and then their row goes at once.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

RowKey = tuple[str, str, int]


class Permit(NamedTuple):
    """What one call may use: limits, and a resource of a pool."""

    limits: tuple[str, ...]
    pool: str = ""
    resource: str = ""


SHEET = 32  # permits to a row

_decoder = msgspec.json.Decoder(dict[str, Permit])
_encode = msgspec.json.Encoder().encode


class Permits:
    """The permits of one tenant, by the ticket they were granted to."""

    __slots__ = ("_changed", "_limits", "_open", "_resources", "_sheets", "_where")

    def __init__(self) -> None:
        self._sheets: dict[int, dict[str, Permit]] = {}
        self._where: dict[str, int] = {}  # ticket -> its sheet
        self._open = 0  # the sheet that the next one goes to
        self._changed: dict[int, None] = {}  # sheets whose row is another by now
        self._limits: dict[str, int] = {}
        self._resources: dict[str, int] = {}

    def on_limit(self, key: str) -> int:
        """How many count on a limit."""
        return self._limits.get(key, 0)

    def on_resource(self, pool: str, id: str) -> int:
        """How many count on a resource."""
        return self._resources.get(place_of(pool, id), 0)

    def tickets(self) -> list[str]:
        """Whom they were granted to."""
        return list(self._where)

    def add(self, ticket: str, permit: Permit) -> None:
        """Something was granted."""
        sheet = self._sheets.setdefault(self._open, {})
        self._put(self._open, sheet, ticket, permit)
        self._changed[self._open] = None
        if len(sheet) == SHEET:
            self._open += 1

    def end(self, ticket: str) -> Permit | None:
        """Its call begins, or it is given back; None when that was so already."""
        n = self._where.pop(ticket, None)
        if n is None:
            return None
        permit = self._sheets[n].pop(ticket)
        self._changed[n] = None
        for key in permit.limits:
            self._limits[key] -= 1
        if permit.resource:
            self._resources[place_of(permit.pool, permit.resource)] -= 1
        return permit

    def read(self, sheet: str, body: bytes) -> None:
        """Know the permits of a stored sheet."""
        n = int(sheet)
        self._open = max(self._open, n + 1)
        kept = self._sheets[n] = {}
        for ticket, permit in _decoder.decode(body).items():
            self._put(n, kept, ticket, permit)

    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._changed)

    def take_rows(self) -> dict[RowKey, bytes | None]:
        """The rows changed since the last time; None removes one."""
        rows: dict[RowKey, bytes | None] = {}
        for n in self._changed:
            sheet = self._sheets.get(n)
            rows[("permit", str(n), 0)] = _encode(sheet) if sheet else None
            if not sheet:
                self._sheets.pop(n, None)
        self._changed = {}
        if self._open in self._sheets:
            self._open += 1
        return rows

    def _put(self, n: int, sheet: dict[str, Permit], ticket: str, permit: Permit) -> None:
        sheet[ticket] = permit
        self._where[ticket] = n
        for key in permit.limits:
            self._limits[key] = self._limits.get(key, 0) + 1
        if permit.resource:
            place = place_of(permit.pool, permit.resource)
            self._resources[place] = self._resources.get(place, 0) + 1


def place_of(pool: str, id: str) -> str:
    """A resource among all of the tenant's: ids are unique within a pool only."""
    return f"{len(pool)}:{pool}:{id}"
