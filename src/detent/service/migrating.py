"""Moving an instance to another version: what stands in the way, before anything is asked for."""

from __future__ import annotations

from detent.kernel.migrate import preview, with_injected
from detent.kernel.program import compile_program
from detent.kernel.recording import program_of
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.ports.store import Store
from detent.service.reading import StoredPrograms, find_instance, program_for, read_snapshot


def preview_migration(
    store: Store, instance: str, tenant: str | None, definition: Definition | str
) -> list[str]:
    """Why the instance cannot be moved there now, in sentences; empty when it can."""
    row = find_instance(store, instance, tenant)
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return ["the instance has not started yet"]
    programs = StoredPrograms(store)
    old = program_for(store, snapshot)
    if isinstance(definition, Definition):
        new = with_injected(old, compile_program(definition), snapshot.injected)
        return preview(snapshot, old, new)
    name, _, version = definition.partition("@")
    number = int(version) if version.isdigit() else None
    found = store.find_definition(row.tenant, row.namespace, name, number)
    if found is None:
        raise RequestError(
            "definition.unknown", f"there is no definition {definition!r}; deploy it first"
        )
    new = with_injected(old, program_of(programs, found.hash), snapshot.injected)
    return preview(snapshot, old, new)
