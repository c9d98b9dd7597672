"""Proving: the chain verified, anchors, replay, what-if, debugging and forks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from detent.kernel import cron_times
from detent.kernel.anchor import Anchor, anchor_of, with_signature
from detent.kernel.chain import GENESIS
from detent.kernel.debug import Debugger
from detent.kernel.fork import ForkRequest, entered_at, fork
from detent.kernel.links import End
from detent.kernel.replay import UNKNOWN, FactChange, Replay, recompute, replay
from detent.kernel.signature import Check, anchor_message
from detent.kernel.verify import Known, Verification, verify
from detent.kernel.whatif import Changes, WhatIf, what_if
from detent.model import limits
from detent.model.decision import Birth
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.model.inputs import encode_input
from detent.model.labels import labels_of
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.model.snapshot import Snapshot, decode_snapshot
from detent.ports.store import Page
from detent.service.arguments import check_flag, invalid
from detent.service.reading import find_instance, recording_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detent.model.inputs import Forked
    from detent.ports.signer import Signer
    from detent.ports.store import InstanceRow, JournalRow, Loaded, Seal, Store, TurnRow

_INSTANCES_AT_ONCE = 2_000


def verify_store(
    store: Store, anchor: Anchor | None = None, check: Check | None = None
) -> Verification:
    """Verify everything the chain covers; an anchor proves the tail, a check the signatures."""
    return verify(_Reader(store), anchor, check)


def make_anchor(store: Store, signer: Signer | None = None) -> Anchor:
    """The heads of all chains as they are now, signed if there is a signer; keep it elsewhere."""
    newest = (0, GENESIS)
    for seal in _seals(store):
        newest = (seal.n, seal.digest)
    heads = store.partitions()
    tick = max((each.tick for each in heads), default=0)
    ordered = sorted((each.p, each.turn, each.root) for each in heads)
    made = anchor_of(store.meta().store_id, tick, newest, ordered)
    return made if signer is None else with_signature(made, signer.sign(anchor_message(made)))


def replay_instance(store: Store, instance: str, tenant: str | None) -> Replay:
    """Run an instance's record again and compare every byte."""
    return replay(recording_of(store, find_instance(store, instance, tenant)))


def recompute_instance(store: Store, instance: str, tenant: str | None) -> list[FactChange]:
    """The facts that would be told differently today."""
    row = find_instance(store, instance, tenant)

    def today(kind: str, name: str, extra: Any) -> Any:
        if kind in (cron_times.NEXT, cron_times.PASSED):
            return cron_times.computed(kind, name)
        if kind == "sequence":
            name, _, namespace = name.rpartition(":")
            return _newest(store, (row.tenant, namespace), name, None)
        if kind != "child":
            return UNKNOWN  # marks and handlers belong to the process that had them
        return _newest(store, (row.tenant, row.namespace), name, extra)

    changes = recompute(recording_of(store, row), today)
    return [each for each in changes if not _only_newer_data(each)]


def _only_newer_data(change: FactChange) -> bool:
    """Whether the same instants come out of another release of the zone data."""
    old, new = change.recorded, change.now
    if not isinstance(old, dict) or not isinstance(new, dict) or "tzdata" not in old:
        return False
    return bool({**old, "tzdata": ""} == {**new, "tzdata": ""})


def _newest(store: Store, place: tuple[str, str], name: str, version: Any) -> str | None:
    found = store.find_definition(*place, name, version)
    return None if found is None else found.hash


def what_if_instance(store: Store, instance: str, tenant: str | None, changes: Changes) -> WhatIf:
    """Run an instance's record with changes; nothing is called and nothing is written."""
    return what_if(recording_of(store, find_instance(store, instance, tenant)), changes)


def debug_instance(store: Store, instance: str, tenant: str | None) -> Debugger:
    """A session over an instance's record."""
    return Debugger(recording_of(store, find_instance(store, instance, tenant)))


def fork_input(store: Store, instance: str, tenant: str | None, request: ForkRequest) -> Forked:
    """The first input of a fork; with `before` and no seq, at the row that first entered it."""
    row = find_instance(store, instance, tenant)
    if row.namespace == SYSTEM:
        raise RequestError("fork.refused", "the engine's own instances cannot be forked")
    recording = recording_of(store, row)
    _check_fork(request)
    if request.before and not request.seq:
        seq = entered_at(recording, request.before)
        request = replace(request, seq=seq)
    return fork(recording, request)


def fork_submission(
    store: Store, instance: str, tenant: str | None, request: ForkRequest
) -> Submission:
    """The submission that makes a fork, under the id that the request names."""
    forked = fork_input(store, instance, tenant, request)
    return fork_of(forked, decode_snapshot(forked.snapshot))


def fork_of(forked: Forked, snapshot: Snapshot) -> Submission:
    """The submission of a fork that begins with this snapshot."""
    birth = Birth(
        id=forked.instance,
        tenant=snapshot.tenant,
        namespace=snapshot.namespace,
        definition=snapshot.definition,
        priority=snapshot.priority,
        labels=labels_of(snapshot.metadata),
    )
    return Submission(forked.instance, encode_input(forked), birth=birth)


def _check_fork(request: ForkRequest) -> None:
    if type(request.seq) is not int or not isinstance(request.before, str):
        raise invalid("a fork", "after a row number or before a node path", request.seq)
    check_flag("dry_run", request.dry_run)
    if request.data is not None and not isinstance(request.data, dict):
        raise invalid("data", "an object to merge into the copied data", request.data)
    encode_payload(request.data, where="data", limit=limits.CONTEXT_BYTES)


def _seals(store: Store) -> list[Seal]:
    found: list[Seal] = []
    while page := store.seals(found[-1].n if found else 0, _INSTANCES_AT_ONCE):
        found += page
    return found


class _Reader:
    """What verification reads, from a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def store_id(self) -> str:
        return self._store.meta().store_id

    def seals(self, after: int) -> Sequence[Seal]:
        return self._store.seals(after, _INSTANCES_AT_ONCE)

    def ends(self) -> Sequence[End]:
        return [End(each.p, each.turn, each.root) for each in self._store.partitions()]

    def instances(self, after: int) -> Sequence[Known]:
        return _known(self._store.instances(Page(after=after, limit=_INSTANCES_AT_ONCE)))

    def find(self, numbers: Sequence[int]) -> Sequence[Known]:
        found = [self._store.instance(row.id) for row in self._store.load_numbers(numbers)]
        return _known([row for row in found if row is not None])

    def turns(self, p: int, after: int) -> Sequence[TurnRow]:
        return self._store.turns(p, after, _INSTANCES_AT_ONCE)

    def journal(self, after: int) -> Sequence[JournalRow]:
        return self._store.journal_scan(after, limits.VERIFY_PAGE)

    def standing(self, numbers: Sequence[int]) -> Sequence[Loaded]:
        return self._store.load_numbers(numbers)

    def definition(self, digest: str) -> bytes | None:
        row = self._store.definition(digest)
        return None if row is None else row.body

    def blobs(self, instance: str, digests: Sequence[str]) -> Mapping[str, bytes]:
        return self._store.blobs(instance, digests)


def _known(rows: Sequence[InstanceRow]) -> list[Known]:
    return [
        Known(row.n, row.id, row.p, row.salt, row.tenant, row.namespace, row.parent) for row in rows
    ]
