"""Orders of handlers that nobody has registered yet: parked, not failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detent.model.decision import Order


class Parking:
    """Parked orders by the handler's name, in the order they came."""

    __slots__ = ("_orders",)

    def __init__(self) -> None:
        self._orders: dict[str, list[Order]] = {}

    def add(self, order: Order) -> None:
        """Keep an order; one of the same key that is here already is replaced by it."""
        parked = self._orders.setdefault(order.handler, [])
        parked[:] = [old for old in parked if old.key != order.key]
        parked.append(order)

    def remove(self, key: str) -> Order | None:
        """Take one order out."""
        for name, parked in self._orders.items():
            for order in parked:
                if order.key == key:
                    parked.remove(order)
                    if not parked:
                        del self._orders[name]
                    return order
        return None

    def take_all(self) -> list[Order]:
        """Take everything out, to be looked at again."""
        orders = [order for parked in self._orders.values() for order in parked]
        self._orders = {}
        return orders

    def counts(self) -> dict[str, int]:
        """How many orders wait, by the handler's name; may be asked from any thread."""
        return {name: len(parked) for name, parked in sorted(self._orders.copy().items())}
