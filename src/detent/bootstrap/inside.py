"""The engine's inner door for its own handlers: send_signal, query_instance, emit_event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from detent.bootstrap.known_handlers import recall
from detent.definition import load
from detent.expression.dates import instant
from detent.kernel.lifecycle import TERMINAL
from detent.model.decision import Verdict
from detent.model.errors import DetentError
from detent.model.ids import SYSTEM, derived_id
from detent.model.inputs import SignalReceived, encode_input
from detent.model.link import Submission
from detent.service.reading import read_snapshot
from detent.service.starting import Moment, check_handlers, start_submission
from detent.service.triggers import Firing, emit_to_trigger

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.handlers.inside import Event
    from detent.model.snapshot import Snapshot
    from detent.ports.store import InstanceRow, Store


class EngineInside:
    """Speaks for a handler; it may block, since the writer never waits for it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def signal(
        self, target: str, name: str, payload: Any, *, id: str, tenant: str, sender: str
    ) -> Verdict:
        """Tell an instance of the same tenant a signal under the effect's own id."""
        row = self._parts.read(lambda store: store.instance(target))
        if row is None or row.tenant != tenant or row.namespace == SYSTEM:
            return Verdict(
                id=id,
                ok=False,
                code="instance.not_found",
                message=f"there is no instance {target!r}",
            )
        if row.state in TERMINAL:
            return Verdict(
                id=id,
                ok=False,
                code="instance.terminal",
                message=f"the instance {target} is {row.state}",
            )
        told = SignalReceived(name=name, payload=payload, id=id, sender=sender)
        return self._parts.tell(Submission(target, encode_input(told), id=id))

    def query(self, target: str, tenant: str) -> dict[str, Any]:
        """What is known of an instance of the same tenant."""
        row, snapshot = self._parts.read(lambda store: _seen(store, target, tenant))
        if row is None:
            return {"found": False}
        if snapshot is None:
            return {
                "found": True,
                "state": row.state,
                "context": {"data": None, "config": None},
                "started_at": None,
                "completed_at": None,
                "current_node": None,
            }
        frame, current = snapshot.root, None
        while frame is not None:
            frame = next((lane.open for lane in frame.lanes if lane.open and not lane.end), None)
            current = frame.b if frame is not None else current
        return {
            "found": True,
            "state": snapshot.state,
            "context": {"data": snapshot.data, "config": snapshot.config},
            "started_at": self._at(snapshot.started),
            "completed_at": self._at(snapshot.ended),
            "current_node": current,
        }

    def emit(self, event: Event) -> Verdict:
        """Start what a trigger names, once whatever happens; policies of the sender go with it."""
        try:
            fired, policies = self._parts.read(lambda store: _fired(store, event))
            made = self._start(fired, event, policies)
        except DetentError as error:
            return Verdict(id=event.id, ok=False, code=error.code, message=error.message)
        before = self._parts.read(lambda store: store.instance(made.instance))
        verdict = self._parts.tell(structs.replace(made, id=event.id))
        if not verdict.ok:
            return verdict
        # Virtual time takes it in when this call is done, and so cannot tell yet.
        told = verdict.result or {"deduplicated": before is not None}
        output = {
            "instance_id": made.instance,
            "sequence_name": fired.sequence_name,
            "deduped": bool(told.get("deduplicated", False)),
        }
        return structs.replace(verdict, result=output)

    def _start(self, fired: Firing, event: Event, policies: tuple[Any, ...]) -> Submission:
        meta = self._parts.meta
        moment = Moment(
            tick=0,
            epoch_ms=meta.epoch_ms,
            resolution_ms=meta.resolution_ms,
            fresh_id="",
            seed=derived_id(event.tenant, "event", f"seed\x00{event.id}"),
        )
        request = structs.replace(fired.request, key=event.key, policies=policies)
        return start_submission(load(fired.definition.body), request, moment, 0)

    def _at(self, tick: int | None) -> str | None:
        """A tick as the instant that the API shows."""
        meta = self._parts.meta
        return None if tick is None else instant(meta.epoch_ms + tick * meta.resolution_ms)


def _seen(
    store: Store, target: str, tenant: str
) -> tuple[InstanceRow, Snapshot | None] | tuple[None, None]:
    """An instance of this tenant, and its snapshot once it was taken in."""
    row = store.instance(target)
    if row is None or row.tenant != tenant:
        return None, None
    return row, read_snapshot(store, row)


def _fired(store: Store, event: Event) -> tuple[Firing, tuple[Any, ...]]:
    """What an event starts, and the policies that its sender was started with."""
    about = {"parent_instance_id": event.sender, "meta": event.meta}
    fired = emit_to_trigger(store, event.tenant, event.trigger, event.data, about)
    check_handlers(load(fired.definition.body), recall(store))
    row = store.instance(event.sender)
    snapshot = None if row is None else read_snapshot(store, row)
    stored = None if row is None else store.definition(row.definition)
    if snapshot is None or stored is None:
        return fired, ()
    own = len(load(stored.body).body.policies)
    return fired, tuple(snapshot.policies[own:])
