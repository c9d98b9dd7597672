"""Templates as authors debug them: the result, and where each value in it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from detent.expression import Scope, trace_template
from detent.kernel import views
from detent.kernel.debug import context_at
from detent.kernel.orders import visible_data
from detent.kernel.places import Places
from detent.model.errors import RequestError
from detent.model.snapshot import Snapshot
from detent.service.arguments import shown
from detent.service.histories import program_now
from detent.service.reading import (
    StoredBlobs,
    find_instance,
    journal_of,
    read_snapshot,
    recording_of,
)

if TYPE_CHECKING:
    from detent.model.definition import Step
    from detent.ports.store import InstanceRow, Store


def inspect_template(template: Any, data: Any, config: Any, outputs: Any) -> dict[str, Any]:
    """Render a template in a context; what looks like a secret is hidden."""
    return trace_template(template, Scope(data=data, config=config, outputs=outputs)).as_dict()


def resolved_input(store: Store, instance: str, tenant: str | None, block: str) -> dict[str, Any]:
    """The params of a step, filled in from what it saw when it was last entered.

    One that was not entered yet is filled in from what it would see now.
    """
    row = find_instance(store, instance, tenant)
    places = Places(program_now(store, row))
    steps = (each.block for each in places.program.nodes.values() if each.kind == "step")
    step = next((each for each in steps if each.id == block), None)
    if step is None:
        raise RequestError("block.not_found", f"the instance has no step {shown(block)}")
    path = _last_entered(store, row, places, block)
    scope = _scope_now(store, row) if path is None else _scope_at(store, row, path)
    told = trace_template(step.params, _visible(scope, step)).as_dict()
    return {"block_id": block, "handler": step.handler, "node": path, **told}


def _last_entered(store: Store, row: InstanceRow, places: Places, block: str) -> str | None:
    found = None
    for entry in views.noted(journal_of(store, row), StoredBlobs(store, row.id)):
        if entry.action == "step.entered" and places.block_of(entry.node) == block:
            found = entry.node
    return found


def _scope_at(store: Store, row: InstanceRow, path: str) -> Scope:
    seen = context_at(recording_of(store, row), path)
    return Scope(
        data=seen.data,
        config=seen.config,
        outputs=seen.outputs,
        state=seen.kv,
        runtime=seen.runtime,
        instance_id=row.id,
        events=seen.events,
    )


def _scope_now(store: Store, row: InstanceRow) -> Scope:
    now = read_snapshot(store, row) or Snapshot(id=row.id)
    return Scope(
        data=now.data,
        config=now.config,
        outputs=now.outputs,
        state=now.kv,
        runtime={**now.runtime, "instance_id": row.id},
        instance_id=row.id,
        events=now.events,
    )


def _visible(scope: Scope, step: Step) -> Scope:
    """The context as the step's `context_access` lets it be seen."""
    access = step.context_access
    if access is None:
        return scope
    return replace(
        scope,
        data=visible_data(scope.data, access),
        config=scope.config if access.config else None,
        runtime=scope.runtime if access.runtime else None,
    )
