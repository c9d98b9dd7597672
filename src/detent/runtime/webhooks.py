"""Webhooks: the commit in which something happens also gives birth to its deliveries.

A delivery is an instance of the engine's own, one per URL, whose id derives from the journal entry
it tells: however often a turn is tried again, it is born once. It is a message of the turn and no
part of the origin's decision, so the origin's record is the same with or without webhooks. Nothing
is told of the engine's own instances, nor of dry runs.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import TYPE_CHECKING

from detent.definition.system import WEBHOOK
from detent.kernel.places import Places
from detent.kernel.recording import read_body
from detent.kernel.webhooks import BREACHED, MARKS, Happened, happened
from detent.model.decision import Birth, Message
from detent.model.ids import SYSTEM, derived_id
from detent.model.inputs import Started, encode_input
from detent.model.snapshot import decode_snapshot
from detent.ports.definitions import DefinitionQuery

if TYPE_CHECKING:
    from detent.model.decision import Decision
    from detent.model.webhook import Webhook
    from detent.runtime.parts import Parts

_PRIORITY = 1


def announce(parts: Parts, decision: Decision) -> None:
    """Add the deliveries of what a decision tells, if anybody is to be told."""
    if not any(mark in decision.journal for mark in MARKS):
        return
    told = list(happened(read_body(decision.journal).entries))
    if not told or parts.programs.get(decision.definition).definition.name.startswith(f"{SYSTEM}."):
        return
    snapshot = decode_snapshot(decision.snapshot)
    if snapshot.dry_run:
        return
    decision.messages = [
        *decision.messages,
        *(
            _delivery(parts, decision, snapshot.tenant, hook, each)
            for hook in parts.settings.webhooks
            if hook.tenant in (None, snapshot.tenant)
            for each in told
            if not hook.events or each.event_type in hook.events
        ),
    ]


def _delivery(
    parts: Parts, decision: Decision, tenant: str, hook: Webhook, told: Happened
) -> Message:
    digest = hashlib.sha256(hook.url.encode()).hexdigest()
    source = f"{decision.instance}:{decision.version}:{told.place}:{digest}"
    id = derived_id(tenant, "webhook", source)
    definition = parts.programs.keep(WEBHOOK, parts.clock)
    data = {
        "url": hook.url,
        "event_type": told.event_type,
        "instance_id": decision.instance,
        "timestamp": _instant(parts, decision.tick),
        "data": told.data,
    }
    if told.event_type == BREACHED:
        data["data"] = {**told.data, **_about(parts, decision, tenant, told.node)}
    started = Started(
        instance=id,
        tenant=tenant,
        namespace=SYSTEM,
        definition=definition,
        priority=_PRIORITY,
        data=data,
        seed=id,
        id=f"start:{id}",
    )
    birth = Birth(id=id, tenant=tenant, namespace=SYSTEM, definition=definition, priority=_PRIORITY)
    return Message(id=started.id, to=id, body=encode_input(started), start=birth)


def _about(parts: Parts, decision: Decision, tenant: str, node: str) -> dict[str, str | None]:
    """Whose service level it is: step, sequence and tenant as the API names them."""
    places = Places(parts.programs.get(decision.definition))
    query = DefinitionQuery(tenant=tenant, hash=decision.definition, limit=1)
    found = parts.store.find_definitions(query)
    return {
        "step_id": places.block_of(node) if node else None,
        "sequence_id": found[0].id if found else None,
        "tenant_id": tenant,
    }


def _instant(parts: Parts, tick: int) -> str:
    ms = parts.meta.epoch_ms + tick * parts.meta.resolution_ms
    moment = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
