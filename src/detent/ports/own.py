"""Lists of the engine's own instances, and of what they keep; the newest come first.

Events stand in the snapshots of correlators, deliveries are instances themselves. What lists ask of
them is written beside, in the commit that changes it, so that a list costs what it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from detent.ports.store import InstanceRow


class OwnQuery(NamedTuple):
    """A filter over the engine's own instances; an empty tenant, or no state, does not filter."""

    definition: str  # hash
    tenant: str = ""
    states: tuple[str, ...] = ()
    before: int = 0  # only instances with a lower number, if above 0
    limit: int = 100


class EventRow(NamedTuple):
    """An event of a producer, by the correlator that keeps it; without a status it is kept no more.

    Instants are epoch milliseconds.
    """

    id: str
    tenant: str
    status: str  # pending | consumed | expired
    at_ms: int
    correlator: str


class DeliveryRow(NamedTuple):
    """What a delivery is found by; `url` is a digest of it."""

    instance: str
    tenant: str
    url: str
    event_type: str
    delivered: bool
    error_class: str


class DeliveryQuery(NamedTuple):
    """A filter over deliveries; None, and an empty tenant, do not filter."""

    tenant: str = ""
    url: str | None = None
    event_type: str | None = None
    delivered: bool | None = None
    error_class: str | None = None
    limit: int = 100


class OwnStore(Protocol):
    """What a store offers for lists of the engine's own."""

    def own_instances(self, query: OwnQuery) -> list[InstanceRow]:
        """The newest of the engine's own instances of one kind, against the order of n."""

    def events(self, tenant: str, status: str, limit: int) -> list[EventRow]:
        """The newest events of a tenant, of one status or of all; of one instant by their ids."""

    def event(self, id: str) -> EventRow | None: ...
    def deliveries(self, query: DeliveryQuery) -> list[InstanceRow]:
        """The newest deliveries that pass a filter."""
