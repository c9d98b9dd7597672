"""The outside world of a simulation: what providers and people did, in one append-only record.

Nothing here belongs to the engine. A crash loses none of it, and doubles are counted here. A place
is an instance and a node path: the same in every run of one world, whatever was tried how often.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol


class Wrong(Exception):
    """Something that must hold does not."""


class Deed(NamedTuple):
    """Something that happened outside."""

    what: str  # begun | call | applied | refused | query | asked | person
    key: str  # the effect's key; for `person` what was decided on
    place: str
    handler: str
    doubt: str
    result: Any = None
    tick: int = 0  # of a call, by the world's clock
    resource: str = ""  # of a call


class Books(Protocol):
    """What providers write to, wherever it is kept."""

    def add(self, deed: Deed) -> None: ...
    def apply(self, deed: Deed) -> Any: ...
    def count(self, what: str, key: str) -> int: ...
    def happened(self, key: str) -> bool: ...
    def result(self, key: str) -> Any: ...


class Outside:
    """Providers' books and people's notes."""

    def __init__(self, deeds: Iterable[Deed] = ()) -> None:
        self.deeds: list[Deed] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._results: dict[str, Any] = {}
        for deed in deeds:
            self.add(deed)

    def add(self, deed: Deed) -> None:
        """Write one line."""
        self.deeds.append(deed)
        place = (deed.what, deed.key)
        self._counts[place] = self._counts.get(place, 0) + 1
        if deed.what == "applied":
            self._results[deed.key] = deed.result

    def count(self, what: str, key: str) -> int:
        """How often something happened to a key."""
        return self._counts.get((what, key), 0)

    def happened(self, key: str) -> bool:
        """Whether a call with this key took effect."""
        return key in self._results

    def result(self, key: str) -> Any:
        """What the effective call with this key answered."""
        return self._results[key]

    def apply(self, deed: Deed) -> Any:
        """Let a call take effect; one with a key that a keyed provider knows changes nothing."""
        if deed.doubt != "keyed" or not self.happened(deed.key):
            self.add(deed)
        return self._results[deed.key]

    def until(self, length: int) -> Outside:
        """The world as it was when its record had that length."""
        return Outside(self.deeds[:length])
