"""Calls: those whose turn has come at a gate become ready in the same turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.inputs import GateCalled, encode_input
from detent.model.link import Submission

if TYPE_CHECKING:
    from detent.runtime.parts import Parts


def take_calls(parts: Parts, tick: int) -> None:
    """Act on other writers' mail to the gates here, then queue whoever fits now."""
    gates, queue = parts.gates, parts.queue
    gates.begin_turn(tick)
    if gates.mail:
        for id in gates.read_mail(tick):
            parts.inbox.held_ids.discard(id)
            parts.inbox.arrivals.discard(id)
    for tenant, ticket in parts.inbox.begun:
        gates.begin(tenant, ticket)
    parts.inbox.begun = []
    due = gates.next_due()
    if due is None or due > tick:
        return
    for tenant, call in gates.call(tick, parts.settings.max_instances_per_turn):
        entry = queue.get(call.instance)
        if entry is None:
            entry = queue.add(call.instance, tenant, call.priority, tick)
        told = encode_input(GateCalled(token=call.token))
        # Called anew after a commit that failed: a second call would give back what the first took.
        if all(each.body != told for each in entry.inputs):
            entry.inputs.append(Submission(call.instance, told))
