"""The engine's own handlers, and the inner door that send_signal and query_instance use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.bootstrap.deltas import Deltas
from detent.handlers import register_inside
from detent.handlers.network import NetworkSettings, Outside, register_network
from detent.kernel.lifecycle import TERMINAL
from detent.model.decision import Verdict
from detent.model.inputs import SignalReceived, encode_input
from detent.model.link import Submission
from detent.service.reading import read_snapshot

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.model.snapshot import Snapshot
    from detent.ports.store import InstanceRow, Store


def register_builtins(parts: Parts) -> Deltas:
    """Register what the engine performs itself; a model's text, as it comes, goes to the result."""
    settings, deltas = parts.settings, Deltas()
    network = NetworkSettings(
        allow_internal=settings.allow_internal_urls,
        allowed_hosts=settings.allowed_internal_hosts,
        api_key_envs=settings.api_key_envs,
    )
    register_inside(parts.registry, EngineInside(parts))
    register_network(parts.registry, Outside(network, deltas=deltas))
    return deltas


class EngineInside:
    """Speaks for a handler; it may block, since the writer never waits for it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def signal(
        self, target: str, name: str, payload: Any, *, id: str, tenant: str, sender: str
    ) -> Verdict:
        """Tell an instance of the same tenant a signal under the effect's own id."""
        row = self._parts.read(lambda store: store.instance(target))
        if row is None or row.tenant != tenant:
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
                "context": {"data": None},
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
            "started_at": self._ms(snapshot.started),
            "completed_at": self._ms(snapshot.ended),
            "current_node": current,
        }

    def _ms(self, tick: int | None) -> int | None:
        meta = self._parts.meta
        return None if tick is None else meta.epoch_ms + tick * meta.resolution_ms


def _seen(
    store: Store, target: str, tenant: str
) -> tuple[InstanceRow, Snapshot | None] | tuple[None, None]:
    """An instance of this tenant, and its snapshot once it was taken in."""
    row = store.instance(target)
    if row is None or row.tenant != tenant:
        return None, None
    return row, read_snapshot(store, row)
