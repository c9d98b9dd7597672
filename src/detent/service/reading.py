"""Reading an instance: its row, its snapshot, its journal, and what runs it again.

Tenants are kept apart here: with a tenant named, an instance of another one does not exist. None is
the operator, who sees all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from detent.definition import load
from detent.kernel.injecting import program_with
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.program import Program, compile_program
from detent.kernel.recording import Recording, Timing, program_of
from detent.kernel.spill import unpack
from detent.model.errors import StoreError
from detent.model.ids import SYSTEM
from detent.model.inputs import Input, Started, decode_input
from detent.model.snapshot import Snapshot, decode_snapshot
from detent.ports.definitions import DefinitionQuery
from detent.service.arguments import check_instance, invalid, storable, unknown_instance

if TYPE_CHECKING:
    from detent.ports.store import InstanceRow, JournalRow, Store

ROWS_AT_ONCE = 1_000


def find_instance(store: Store, instance: str, tenant: str | None) -> InstanceRow:
    """The row of an instance; `instance.not_found` when there is none for this tenant."""
    check_tenant(tenant)
    check_instance(instance)
    row = store.instance(instance)
    if row is None or (tenant is not None and row.tenant != tenant):
        raise unknown_instance(instance)
    if not still_there(store, [row]):
        raise unknown_instance(instance)
    return row


def still_there(store: Store, rows: Sequence[InstanceRow]) -> list[InstanceRow]:
    """Without those that ended and went with their definition: only the journal knows of them."""
    known: dict[tuple[str, str], bool] = {}
    for row in rows:
        place = (row.tenant, row.definition)
        if row.state in TERMINAL and row.namespace != SYSTEM and place not in known:
            query = DefinitionQuery(tenant=row.tenant, hash=row.definition, limit=1)
            known[place] = bool(store.find_definitions(query))
    return [
        row
        for row in rows
        if row.state not in TERMINAL or known.get((row.tenant, row.definition), True)
    ]


def check_tenant(tenant: str | None) -> None:
    """An empty tenant would filter nothing; only None may see all."""
    if tenant is not None and (not storable(tenant) or not tenant):
        raise invalid("tenant", "a name, or None for all", tenant)


def read_snapshot(store: Store, row: InstanceRow) -> Snapshot | None:
    """The snapshot with large values put back; None while the instance waits to be taken in."""
    loaded = store.load([row.id]).get(row.id)
    if loaded is None or loaded.body is None:
        return None
    snapshot = decode_snapshot(loaded.body)
    if snapshot.blobs:
        unpack(snapshot, _all_blobs(store, row.id, snapshot.blobs))
    return snapshot


def snapshot_or_start(store: Store, row: InstanceRow) -> Snapshot:
    """The snapshot; of an instance that no writer has taken in yet, what its start will make."""
    snapshot = read_snapshot(store, row)
    if snapshot is not None:
        return snapshot
    body = store.waiting_start(row.id)
    if body is None:  # taken in between the two looks
        return read_snapshot(store, row) or Snapshot(id=row.id, created=row.created)
    return _to_be(row, decode_input(body))


def _to_be(row: InstanceRow, told: Input) -> Snapshot:
    snapshot = Snapshot(id=row.id, tenant=row.tenant, created=row.created)
    if isinstance(told, Started):
        snapshot.timezone = told.timezone
        snapshot.data = told.data
        snapshot.config = told.config
        snapshot.metadata = told.metadata
        snapshot.dry_run = told.dry_run
        snapshot.auto_approve = told.auto_approve
        snapshot.budget = told.budget
        if told.concurrency_key is not None:
            snapshot.concurrency = {"key": told.concurrency_key, "max": told.max_concurrency}
    return snapshot


def journal_of(store: Store, row: InstanceRow) -> Iterator[JournalRow]:
    """The journal rows of an instance, in order."""
    after = 0
    while page := store.journal(row.n, after, ROWS_AT_ONCE):
        yield from page
        after = page[-1].seq


def timing_of(store: Store) -> Timing:
    """How ticks become instants in this store."""
    meta = store.meta()
    return Timing(epoch_ms=meta.epoch_ms, resolution_ms=meta.resolution_ms)


def recording_of(store: Store, row: InstanceRow) -> Recording:
    """Everything that is needed to run an instance's record again."""
    return Recording(
        rows=list(journal_of(store, row)),
        programs=StoredPrograms(store),
        blobs=StoredBlobs(store, row.id),
        timing=timing_of(store),
    )


def program_for(store: Store, snapshot: Snapshot) -> Program:
    """The program an instance runs, with the blocks that were injected into it."""
    program, digest = program_of(StoredPrograms(store), snapshot.definition), snapshot.injected
    blobs = _all_blobs(store, snapshot.id, [digest]) if digest else {}
    return program_with(program, digest, {f"blob:{each}": body for each, body in blobs.items()})


class StoredPrograms(Mapping[str, Program]):
    """Programs by definition hash, each read and compiled when first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, Program] = {}

    def __getitem__(self, digest: str) -> Program:
        program = self._kept.get(digest)
        if program is None:
            row = self._store.definition(digest)
            if row is None:
                raise KeyError(digest)
            program = self._kept[digest] = compile_program(load(row.body))
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


class StoredBlobs(Mapping[str, bytes]):
    """The blobs of one instance by digest, each read when asked for."""

    def __init__(self, store: Store, instance: str) -> None:
        self._store = store
        self._instance = instance

    def __getitem__(self, digest: str) -> bytes:
        return self._store.blobs(self._instance, [digest])[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _all_blobs(store: Store, instance: str, digests: list[str]) -> dict[str, bytes]:
    found = store.blobs(instance, digests)
    missing = [digest for digest in digests if digest not in found]
    if missing:
        raise StoreError(
            "store.corrupt",
            f"instance {instance} has lost blob {missing[0]}; restore the store from a backup",
            instance=instance,
        )
    return found
