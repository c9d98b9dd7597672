"""What lists of events and deliveries are asked by, laid out for the commit that changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.definition.system import WEBHOOK
from detent.kernel.webhooks import found_by
from detent.model.inputs import Started, decode_input
from detent.model.snapshot import decode_snapshot
from detent.ports.own import DeliveryRow, EventRow

if TYPE_CHECKING:
    from detent.model.decision import Decision, Message
    from detent.runtime.batch import Batch
    from detent.runtime.cache import Hot


def add_standing(batch: Batch, hot: Hot, decision: Decision) -> None:
    """How the events of a correlator, or a delivery itself, stand after a decision."""
    batch.events += [
        EventRow(event.id, hot.tenant, event.status, event.at_ms, hot.id)
        for event in decision.events
    ]
    if decision.definition == WEBHOOK.hash:
        snapshot = decode_snapshot(decision.snapshot)
        if isinstance(snapshot.data, dict) and "url" in snapshot.data:
            row = DeliveryRow(hot.id, hot.tenant, *found_by(snapshot.data, snapshot))
            batch.deliveries.append(row)


def add_birth(batch: Batch, message: Message) -> None:
    """A delivery is listed from the commit on in which it is born."""
    if message.start is not None and message.start.definition == WEBHOOK.hash:
        told = decode_input(message.body)
        if isinstance(told, Started) and isinstance(told.data, dict):
            row = DeliveryRow(message.to, message.start.tenant, *found_by(told.data))
            batch.deliveries.append(row)
