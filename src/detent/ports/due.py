"""Due instances as they cross the store port: stretches of the due index, read page by page."""

from __future__ import annotations

from typing import NamedTuple


class Stretch(NamedTuple):
    """A tenant's waiting instances of one priority, and when the first of them is due."""

    tenant: str
    priority: int
    due: int


class DueQuery(NamedTuple):
    """What to read of a stretch: at most `limit` rows beyond `after`, a due tick and an id."""

    tenant: str
    priority: int
    after: tuple[int, str]
    limit: int


class Ready(NamedTuple):
    """A due instance."""

    n: int
    id: str
    p: int
    tenant: str
    priority: int
    due: int


class DuePage(NamedTuple):
    """What is due of a stretch, by due tick and id, and when more will be."""

    rows: list[Ready]
    next: int | None  # the first due tick past the one asked for; not told by a page that is full
