"""Permits: what was granted to calls that have not begun.

A limit is one on calls, and a grant is not a call yet: its handler may not be registered, no worker
may come for it, or the process may die. So a grant is a permit first. A permit counts on its limits
and its resource without end, until its call begins, which counts from that tick on, or until it is
given back. However late a call begins, no window ever sees one too many.
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


_decoder = msgspec.json.Decoder(Permit)
_encode = msgspec.json.Encoder().encode


class Permits:
    """The permits of one tenant, by the ticket they were granted to."""

    __slots__ = ("_limits", "_resources", "_rows", "held")

    def __init__(self) -> None:
        self.held: dict[str, Permit] = {}
        self._limits: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._rows: dict[RowKey, bytes | None] = {}

    def on_limit(self, key: str) -> int:
        """How many count on a limit."""
        return self._limits.get(key, 0)

    def on_resource(self, pool: str, id: str) -> int:
        """How many count on a resource."""
        return self._resources.get(place_of(pool, id), 0)

    def add(self, ticket: str, permit: Permit) -> None:
        """Something was granted."""
        self._count(ticket, permit)
        self._rows[("permit", ticket, 0)] = _encode(permit)

    def end(self, ticket: str) -> Permit | None:
        """Its call begins, or it is given back; None when that was so already."""
        permit = self.held.pop(ticket, None)
        if permit is None:
            return None
        for key in permit.limits:
            _less(self._limits, key)
        if permit.resource:
            _less(self._resources, place_of(permit.pool, permit.resource))
        self._rows[("permit", ticket, 0)] = None
        return permit

    def read(self, ticket: str, body: bytes) -> None:
        """Know a stored one."""
        self._count(ticket, _decoder.decode(body))

    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._rows)

    def take_rows(self) -> dict[RowKey, bytes | None]:
        """The rows changed since the last time; None removes one."""
        rows, self._rows = self._rows, {}
        return rows

    def _count(self, ticket: str, permit: Permit) -> None:
        self.held[ticket] = permit
        for key in permit.limits:
            self._limits[key] = self._limits.get(key, 0) + 1
        if permit.resource:
            place = place_of(permit.pool, permit.resource)
            self._resources[place] = self._resources.get(place, 0) + 1


def place_of(pool: str, id: str) -> str:
    """A resource among all of the tenant's: ids are unique within a pool only."""
    return f"{len(pool)}:{pool}:{id}"


def _less(counts: dict[str, int], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
