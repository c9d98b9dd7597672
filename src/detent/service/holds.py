"""Which tasks a worker is not given: those of tenants that let it drain, or pinned its handler.

A pin and a drain are a tenant's own, and hold for whoever polls: a worker that asks for the tasks
of all tenants is passed over by those of some. Only the operator, naming no tenant, lets a worker
drain for everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.ports.records import Record, RecordQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detent.ports.store import Store

PIN = "version_pin"
_HOLD = "worker.hold"
_EVERYBODY = ""


class VersionPin(Struct, frozen=True, kw_only=True):
    """Tasks of a handler are given to workers of one version only, or of none below another."""

    handler_name: str
    version: str = ""
    min_version: str = ""
    tenant_id: str = ""

    def fits(self, version: str | None) -> bool:
        """Whether a worker of this version is given tasks; one that names none is not."""
        if version is None or (self.version and self.version != version):
            return False
        return not self.min_version or _reached(version, self.min_version)


class Asker(NamedTuple):
    """Who asks for tasks of which handler."""

    worker: str
    handler: str
    version: str | None = None


class Barred(NamedTuple):
    """Whose tasks an asker is not given."""

    everybody: bool = False
    tenants: tuple[str, ...] = ()


read_pin = msgspec.json.Decoder(VersionPin).decode


def barred(store: Store, tenant: str | None, asker: Asker) -> Barred:
    """Whose tasks are not given to an asker who wants those of a tenant, or of all."""
    if tenant is not None:
        return Barred(everybody=_held(store, tenant, asker))
    if store.record_by_key(_HOLD, _EVERYBODY, asker.worker) is not None:
        return Barred(everybody=True)
    holds = [record.tenant for record in _all(store, _HOLD, asker.worker)]
    pins = [
        record.tenant
        for record in _all(store, PIN, asker.handler)
        if not read_pin(record.body).fits(asker.version)
    ]
    return Barred(tenants=tuple(dict.fromkeys((*holds, *pins))))


def drain(store: Store, tenant: str | None, worker: str, now_ms: int) -> None:
    """Give a worker no tasks of a tenant, or of nobody; twice is as good as once."""
    owner = tenant or _EVERYBODY
    id = f"{owner}\x1f{worker}"
    store.insert_record(
        Record(_HOLD, id, owner, b"{}", key=worker, owner=worker, created_ms=now_ms)
    )


def resume(store: Store, tenant: str | None, worker: str) -> None:
    """Give a worker tasks again; what another has said of it stays."""
    known = store.record_by_key(_HOLD, tenant or _EVERYBODY, worker)
    if known is not None:
        store.delete_record(_HOLD, known.id)


def _held(store: Store, tenant: str, asker: Asker) -> bool:
    for owner in (tenant, _EVERYBODY):
        if store.record_by_key(_HOLD, owner, asker.worker) is not None:
            return True
    pin = store.record_by_key(PIN, tenant, asker.handler)
    return pin is not None and not read_pin(pin.body).fits(asker.version)


def _all(store: Store, kind: str, owner: str) -> Iterator[Record]:
    query = RecordQuery(kind, owner=owner, limit=limits.LIST_MOST)
    while page := store.records(query):
        yield from page
        query = query._replace(after=page[-1].n)


def _reached(version: str, least: str) -> bool:
    """Whether a version such as 1.10.2 is not below another; others must be the same."""
    found, wanted = _numbers(version), _numbers(least)
    return version == least if found is None or wanted is None else found >= wanted


def _numbers(version: str) -> tuple[tuple[int, ...], bool, str] | None:
    """The numbers of a version; a preview of it, such as 2.0-rc1, comes before it."""
    core, _, preview = version.removeprefix("v").partition("-")
    parts = core.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), not preview, preview
