"""What a list of instances is asked for; the newest come first."""

from __future__ import annotations

from typing import NamedTuple


class ListQuery(NamedTuple):
    """A filter over instances; empty fields do not filter."""

    tenant: str = ""
    namespace: str = ""
    definitions: tuple[str, ...] = ()  # hashes
    states: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    offset: int = 0
    limit: int = 100
    before: int = 0  # only instances with a lower number, if above 0
    stored: bool = False  # only instances whose definition was not removed
