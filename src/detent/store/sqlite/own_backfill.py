"""Stores of earlier releases: what their events and deliveries are found by is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.kernel.correlation import read_correlation
from detent.kernel.spill import unpack
from detent.kernel.webhooks import found_by
from detent.model.inputs import Started, decode_input
from detent.model.snapshot import decode_snapshot
from detent.ports.own import DeliveryRow, EventRow
from detent.store.sqlite.blobs import blobs
from detent.store.sqlite.own_lists import write_lists
from detent.store.sqlite.statements import row_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from detent.model.snapshot import Snapshot

_OWN = """
SELECT i.n, i.id, i.tenant FROM instance i
WHERE i.ns = 'detent' AND i.definition IN (SELECT hash FROM definition WHERE name = ?)
"""
_SNAPSHOT = "SELECT body FROM snapshot WHERE n = ?"
_START = "SELECT body FROM arrival WHERE inst = ? AND body IS NOT NULL"


def list_present(connection: apsw.Connection) -> None:
    """Write down what there is, inside the transaction of the upgrade."""
    for n, id, tenant in rows_of(connection, _OWN, ("detent.events",)):
        snapshot = _snapshot(connection, n, id)
        if snapshot is not None:
            write_lists(connection, list(_events(snapshot, id, tenant)), ())
    for n, id, tenant in rows_of(connection, _OWN, ("detent.webhook",)):
        snapshot = _snapshot(connection, n, id)
        data = snapshot.data if snapshot is not None else _start(connection, id)
        if isinstance(data, dict):
            row = DeliveryRow(id, tenant, *found_by(data, snapshot))
            write_lists(connection, (), [row])


def _snapshot(connection: apsw.Connection, n: int, id: str) -> Snapshot | None:
    found = row_of(connection, _SNAPSHOT, (n,))
    if found is None:
        return None
    snapshot = decode_snapshot(found[0])
    if snapshot.blobs:
        unpack(snapshot, blobs(connection, id, snapshot.blobs))
    return snapshot


def _events(snapshot: Snapshot, correlator: str, tenant: str) -> Iterator[EventRow]:
    if snapshot.kv:
        for event in read_correlation(snapshot.kv).events:
            yield EventRow(event.id, tenant, event.status, event.at, correlator)


def _start(connection: apsw.Connection, id: str) -> object:
    """The data of a delivery that no writer has taken in yet."""
    for (body,) in rows_of(connection, _START, (id,)):
        told = decode_input(body)
        if isinstance(told, Started):
            return told.data
    return None
