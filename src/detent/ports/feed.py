"""The change feed as it crosses the store port: journal rows in which a tenant's instances moved.

A position is a place in a *lane*, a stretch of the journal for which one order holds: the whole
journal where a store commits one transaction at a time, else a partition, which one writer has.
Time orders nothing: clocks of two writers disagree, and what is committed later may be dated before
what was read already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class FeedRow(NamedTuple):
    """A journal row that may tell of changes; body is None once erased."""

    lane: str
    pos: int
    instance: str
    seq: int
    tick: int
    snapshot_digest: bytes
    body: bytes | None


class FeedQuery(NamedTuple):
    """The rows of a tenant after a position in each lane; a lane not named begins at its start."""

    tenant: str
    after: Mapping[str, int]
    limit: int = 100


class FeedPage(NamedTuple):
    """Rows in the order of their lanes, how far they reach, and whether there are more."""

    rows: list[FeedRow]
    at: dict[str, int]
    more: bool
