"""Whose turn it is in a pool: weighted round robin as a counter over a fixed, smooth order.

The order spreads each resource evenly by its weight (with weights 3 and 1: a a b a) and depends on
the configuration alone, so one number per pool is all there is to remember.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import gcd

from detent.kernel.gate.config import Pool

LONGEST = 10_000  # places in one round; larger weights are scaled down to fit


class Rotation:
    """The order of one pool."""

    __slots__ = ("order",)

    def __init__(self, pool: Pool) -> None:
        weights = {id: each.weight for id, each in pool.resources.items() if each.enabled}
        self.order = _smooth(
            dict.fromkeys(weights, 1) if pool.strategy == "round_robin" else weights
        )

    def pick(self, counter: int, free: Callable[[str], bool]) -> tuple[str, int] | None:
        """The first free resource from the counter on, and the counter after it."""
        order = self.order
        tried: dict[str, None] = {}
        for step in range(len(order)):
            at = (counter + step) % len(order)
            id = order[at]
            if id in tried:
                continue
            if free(id):
                return id, (at + 1) % len(order)
            tried[id] = None
        return None

    def chance(self, seed: str, free: Callable[[str], bool]) -> tuple[str, int] | None:
        """A free resource drawn by weight; the same seed draws the same one."""
        if not self.order:
            return None
        drawn = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
        found = self.pick(drawn % len(self.order), free)
        return None if found is None else (found[0], 0)


def _smooth(weights: dict[str, int]) -> tuple[str, ...]:
    """Each resource as often as its weight, as evenly spread as can be."""
    common = gcd(*weights.values()) if weights else 1
    weights = {id: weight // common for id, weight in weights.items()}
    total = sum(weights.values())
    if total > LONGEST:
        weights = {id: max(1, weight * LONGEST // total) for id, weight in weights.items()}
        total = sum(weights.values())
    if total == len(weights):
        return tuple(weights)
    places = [
        ((2 * nth + 1) * total, weight, index, id)
        for index, (id, weight) in enumerate(weights.items())
        for nth in range(weight)
    ]
    places.sort(key=lambda place: (place[0] / (2 * place[1]), place[2]))
    return tuple(place[3] for place in places)
