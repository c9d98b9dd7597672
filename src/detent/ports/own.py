"""What a list of the engine's own instances is asked for; the newest come first."""

from __future__ import annotations

from typing import NamedTuple


class OwnQuery(NamedTuple):
    """A filter over the engine's own instances; an empty tenant, or no state, does not filter."""

    definition: str  # hash
    tenant: str = ""
    states: tuple[str, ...] = ()
    before: int = 0  # only instances with a lower number, if above 0
    limit: int = 100
