"""Records as they cross the store port: the one table of everything the catalogue names.

A record is a body of its kind's own under an id that is unique in the kind. `key` is a second name,
unique for a tenant; `owner` is what many records of a kind belong to. Records are ordinary writes
of any process: each call is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """One record; `n` and `rev` are given by the store."""

    kind: str
    id: str
    tenant: str
    body: bytes
    key: str | None = None
    owner: str | None = None
    created_ms: int = 0
    updated_ms: int = 0
    rev: int = 1  # how often it was written
    n: int = 0  # in the order of making, never given twice


class RecordQuery(NamedTuple):
    """Which records of a kind to read; None does not filter, `after` is the last n seen."""

    kind: str
    tenant: str | None = None
    owner: str | None = None
    newest_first: bool = False
    after: int = 0
    limit: int = 100


class RecordStore(Protocol):
    """What a store offers for records."""

    def insert_record(self, record: Record) -> bool:
        """Insert; False when its id, or its key in the tenant, is taken."""

    def record(self, kind: str, id: str) -> Record | None: ...
    def record_by_key(self, kind: str, tenant: str, key: str) -> Record | None: ...
    def records(self, query: RecordQuery) -> list[Record]:
        """The next records in the order of making, or against it."""

    def count_records(self, query: RecordQuery) -> int:
        """How many records a query would find; counting stops at its limit."""

    def replace_record(self, record: Record) -> bool:
        """Write key, owner, body and updated_ms of one read before.

        False when it was written since (its `rev` differs), is gone, or the new key is taken.
        """

    def replace_records(self, records: Sequence[Record]) -> int:
        """The same for many in one transaction; how many were written, the others stay."""

    def delete_record(self, kind: str, id: str) -> bool: ...
    def prune_records(
        self, kind: str, owner: str, keep: int = 0, before_ms: int | None = None, limit: int = 1_000
    ) -> int:
        """Look at the owner's `limit` oldest but for the newest `keep`, remove those made before.

        Without `before_ms` all of them go; the answer is how many went.
        """
