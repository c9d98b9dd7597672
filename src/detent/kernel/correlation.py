"""Correlation: events and waits of one key, and which event goes to which wait.

An event goes to the first registered wait that still wants it, and to no other; while that wait is
open the event is kept for it, and is free again when the wait is left, also when it was satisfied
at the same moment. An event that nobody wants is pending until a wait comes or its time is over.
What is settled is remembered for a while, so that the same event told twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from detent.model import limits
from detent.model.errors import RequestError

_encode = msgspec.json.Encoder().encode


class Event(Struct, kw_only=True, omit_defaults=True):
    """One event; `at` is when it came, in epoch milliseconds."""

    id: str
    name: str
    producer: str
    payload: Any = None
    at: int = 0
    size: int = 0
    wait: str = ""  # the wait it went to
    instance: str = ""  # whose wait that is
    expired: bool = False

    @property
    def status(self) -> str:
        """pending, consumed or expired."""
        if self.wait:
            return "consumed"
        return "expired" if self.expired else "pending"

    def shown(self) -> dict[str, Any]:
        """As the step that waited sees it."""
        return {
            "event_name": self.name,
            "producer_event_id": self.producer,
            "payload": self.payload,
        }


class Registered(Struct, kw_only=True, omit_defaults=True):
    """A wait for `count` events of some names; a count of 0 is one of each name."""

    wait: str
    instance: str
    token: int
    names: list[str]
    count: int = 0


class Correlation(Struct, kw_only=True, omit_defaults=True):
    """Everything that is kept of one key: events as they came, waits as they were registered."""

    key: str = ""
    events: list[Event] = field(default_factory=list)
    waits: list[Registered] = field(default_factory=list)

    def known(self, id: str) -> Event | None:
        """An event told before."""
        return next((each for each in self.events if each.id == id), None)

    def kept_for(self, wait: str) -> list[Event]:
        """The events that went to a wait, in the order in which they came."""
        return [each for each in self.events if each.wait == wait]

    def open(self, wait: str) -> bool:
        """Whether a wait is registered and not satisfied."""
        return any(each.wait == wait for each in self.waits)


def read_correlation(kept: Mapping[str, Any]) -> Correlation:
    """A correlation out of `kv`."""
    return msgspec.convert(kept, Correlation)


def kept_correlation(correlation: Correlation) -> dict[str, Any]:
    """A correlation as `kv` keeps it."""
    kept: dict[str, Any] = msgspec.to_builtins(correlation)
    return kept


def standings(correlation: Correlation) -> dict[str, tuple[str, int]]:
    """How each event stands, and when it came, by its id."""
    return {event.id: (event.status, event.at) for event in correlation.events}


def arrive(correlation: Correlation, event: Event) -> Registered | None:
    """Keep an event that is new; the wait it went to. `event.full` when there is no room."""
    event.size = len(_encode(event.payload))
    _make_room(correlation, event.size)
    correlation.events.append(event)
    return _offer(correlation, event)


def register(correlation: Correlation, wait: Registered) -> None:
    """Let a wait take what is pending; `event.full` when too many wait for the key."""
    if len(correlation.waits) >= limits.EVENT_WAITS:
        raise RequestError(
            "event.full",
            f"{limits.EVENT_WAITS} steps wait for the key {correlation.key!r} already",
        )
    correlation.waits.append(wait)
    for event in correlation.events:
        if event.status == "pending" and _wants(correlation, wait, event):
            _give(event, wait)
            if satisfied(correlation, wait):
                break


def leave(correlation: Correlation, wait: str) -> list[Event]:
    """End a wait without its events: these are offered to the others; the events set free."""
    correlation.waits = [each for each in correlation.waits if each.wait != wait]
    freed = correlation.kept_for(wait)
    for event in freed:
        event.wait = event.instance = ""
    for event in freed:
        _offer(correlation, event)
    return freed


def take_satisfied(correlation: Correlation) -> list[Registered]:
    """The waits that have everything they wait for; they are registered no longer."""
    ready = [each for each in correlation.waits if satisfied(correlation, each)]
    correlation.waits = [each for each in correlation.waits if each not in ready]
    return ready


def has_all(correlation: Correlation, wait: str) -> bool:
    """Whether a wait that events went to is satisfied, or was."""
    return all(satisfied(correlation, each) for each in correlation.waits if each.wait == wait)


def satisfied(correlation: Correlation, wait: Registered) -> bool:
    """Whether a registered wait has everything it waits for."""
    kept = correlation.kept_for(wait.wait)
    return len(kept) >= (wait.count or len(wait.names))


def sweep(correlation: Correlation, now_ms: int) -> list[Event]:
    """Let pending events expire and forget what was remembered long enough; the expired ones."""
    expired: list[Event] = []
    kept: list[Event] = []
    for event in correlation.events:
        if event.status == "pending" and event.at + limits.EVENT_TTL_MS <= now_ms:
            event.expired = True
            expired.append(event)
        remembered = event.at + limits.EVENT_REMEMBERED_MS > now_ms
        if remembered or not _settled(correlation, event):
            kept.append(event)
    correlation.events = kept
    return expired


def next_sweep(correlation: Correlation, now_ms: int) -> int | None:
    """The next instant to look at what is kept; None while nothing is."""
    return min(_sweeps(correlation, now_ms), default=None)


def _sweeps(correlation: Correlation, now_ms: int) -> Iterable[int]:
    for event in correlation.events:
        if event.status == "pending":
            yield event.at + limits.EVENT_TTL_MS
        elif _settled(correlation, event):
            yield event.at + limits.EVENT_REMEMBERED_MS
        else:
            yield now_ms + limits.EVENT_REMEMBERED_MS  # it is kept for an open wait


def _settled(correlation: Correlation, event: Event) -> bool:
    """Whether nobody waits for an event any more, and no wait can get it."""
    return event.expired or (event.wait != "" and not correlation.open(event.wait))


def _make_room(correlation: Correlation, size: int) -> None:
    """Forget settled events, the oldest first, while there is no room for one more."""
    kept = correlation.events
    total = sum(event.size for event in kept) + size
    settled = [event for event in kept if _settled(correlation, event)]
    while len(kept) >= limits.EVENTS_KEPT or total > limits.EVENTS_KEPT_BYTES:
        if not settled:
            raise RequestError(
                "event.full",
                f"the key {correlation.key!r} keeps {len(kept)} events that nobody has taken; "
                f"the limits are {limits.EVENTS_KEPT} and {limits.EVENTS_KEPT_BYTES} bytes",
            )
        oldest = settled.pop(0)
        kept.remove(oldest)
        total -= oldest.size


def _offer(correlation: Correlation, event: Event) -> Registered | None:
    """Give an event to the first wait that wants it."""
    for wait in correlation.waits:
        if _wants(correlation, wait, event):
            _give(event, wait)
            return wait
    return None


def _give(event: Event, wait: Registered) -> None:
    event.wait, event.instance, event.expired = wait.wait, wait.instance, False


def _wants(correlation: Correlation, wait: Registered, event: Event) -> bool:
    if event.name not in wait.names or satisfied(correlation, wait):
        return False
    if wait.count:
        return True
    return all(each.name != event.name for each in correlation.kept_for(wait.wait))
