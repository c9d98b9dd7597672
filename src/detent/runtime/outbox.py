"""What a turn has for the rest, collected until the turn ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.link import Decided

if TYPE_CHECKING:
    from detent.model.decision import Order, Verdict


class Outbox:
    """The lists of the next `Decided`; only durable results may be put here."""

    __slots__ = (
        "acks",
        "counts",
        "dropped",
        "lost",
        "marked",
        "moved",
        "news",
        "orders",
        "recalled",
        "taken",
        "work",
    )

    def __init__(self) -> None:
        self.news = False  # something outside the lists changed: hold or lease
        self._clear()

    def _clear(self) -> None:
        self.orders: list[Order] = []
        self.marked: list[tuple[str, int]] = []
        self.lost: list[str] = []
        self.recalled: list[str] = []
        self.acks: list[tuple[int, Verdict]] = []
        self.moved: list[tuple[str, str]] = []
        self.taken: list[int] = []
        self.work: list[tuple[str, str, str]] = []
        self.dropped: list[int] = []
        self.counts: dict[str, int] = {}  # they travel with the rest, never alone

    def answer(self, ack: int, verdict: Verdict) -> None:
        """Answer a caller, if one waits; an outcome's receipt goes back whatever the answer."""
        if ack > 0:
            self.acks.append((ack, verdict))
        elif ack:
            self.taken.append(ack)

    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (
            self.news
            or self.orders
            or self.acks
            or self.moved
            or self.marked
            or self.lost
            or self.recalled
            or self.taken
            or self.work
            or self.dropped
        )

    def take(self, held: str, lease_until_ms: int) -> Decided | None:
        """Everything collected, as one message; None when there is nothing."""
        if self.empty():
            return None
        decided = Decided(
            self.orders,
            self.marked,
            self.lost,
            self.recalled,
            self.acks,
            self.moved,
            self.taken,
            held,
            lease_until_ms,
            self.work,
            self.counts,
            self.dropped,
        )
        self.news = False
        self._clear()
        return decided
