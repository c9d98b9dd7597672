"""Routing rules: which queue a new work item goes to, whatever queue its step names.

A rule is an operator's, changes while instances run, and decides nothing that an instance can see:
so it is no fact of a decision. It is asked for when the item is written, by the rules of that
moment, and where the item went stands in the item's own history.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

RULE = "routing_rule"  # the kind of its record


class RoutingRule(Struct, frozen=True, kw_only=True):
    """Tasks of a handler go into a queue: all of them, or those whose step names another queue.

    `queue_override` is another name of `queue_name`. An empty `match_queue` is a step that names
    none.
    """

    handler_name: str
    queue_name: str = ""
    queue_override: str = ""
    match_queue: str | None = None
    tenant_id: str = ""
    name: str = ""
    priority: int = 0
    enabled: bool = True

    @property
    def queue(self) -> str:
        """Where tasks go."""
        return self.queue_name or self.queue_override


read_rule = msgspec.json.Decoder(RoutingRule).decode


def owner_of(tenant: str, handler: str) -> str:
    """What the rules for a tenant's handler are found by."""
    return f"{tenant}\x1f{handler}"


def chosen(rules: Iterable[tuple[str, RoutingRule]], queue: str) -> tuple[str, RoutingRule] | None:
    """The rule that counts for an item whose step names this queue, with its id; None: no rule.

    Of several the highest priority, then the one that names the step's queue, then the oldest;
    `rules` come in the order of their making.
    """
    fitting = [each for each in rules if each[1].enabled and each[1].match_queue in (None, queue)]
    return max(
        fitting, key=lambda each: (each[1].priority, each[1].match_queue is not None), default=None
    )
