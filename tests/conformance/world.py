"""A writer for tests: makes whole turns with a true chain, and reads everything back."""

from __future__ import annotations

from detent.kernel.chain import GENESIS, digest_of, head_of, root_of, snapshot_digest_of
from detent.model.decision import Birth, WorkItem
from detent.ports.own import DeliveryQuery
from detent.ports.store import (
    Commit,
    InstanceChange,
    NewArrival,
    Owner,
    Page,
    PartitionTurn,
)
from detent.ports.work import WorkQuery

TICK = 100
LEASE_MS = 30_000
SALT = bytes(range(16))
WATCHED_EFFECTS = tuple(f"effect-{n}" for n in range(7))
WATCHED_ARRIVALS = tuple(f"arrival-{n}" for n in range(7))
WATCHED_BLOBS = ("blob-1", "blob-2")


def an_owner(name="owner-a", lease_until_ms=LEASE_MS, wake=""):
    return Owner(name, f"host-of-{name}", 4711, lease_until_ms, wake)


def a_birth(id, **columns):
    filled = {"tenant": "acme", "namespace": "sales", "definition": "hash-1", "priority": 1}
    return Birth(id=id, **{**filled, **columns})


def a_change(id, *, n=-1, version=1, previous=GENESIS, **columns):
    """One instance-turn; without `n` it is a birth."""
    snapshot = columns.pop("snapshot", f"snapshot {version} of {id}".encode())
    body = columns.pop("body", f"journal {version} of {id}".encode())
    tick, salt = columns.pop("tick", TICK), columns.pop("salt", SALT)
    snapshot_digest, digest = snapshot_digest_of(snapshot), digest_of(salt, body)
    born = columns.pop("birth", {})
    filled = {
        "p": 0,
        "birth": a_birth(id, **born) if n < 0 else None,
        "row_changed": True,
        "state": "running",
        "priority": 1,
        "due": None,
        "busy": False,
        "definition": "hash-1",
        "head": head_of(previous, version, tick, snapshot_digest, digest),
    }
    return InstanceChange(
        n=n,
        id=id,
        salt=salt,
        version=version,
        snapshot=snapshot,
        snapshot_digest=snapshot_digest,
        tick=tick,
        digest=digest,
        body=body,
        **{**filled, **columns},
    )


def an_arrival(id, instance="instance-1", p=0, body=b"{}", birth=None):
    return NewArrival(id, p, instance, body, birth, SALT if birth else b"")


def an_item(id, **columns):
    """A work item that can be had from instant 0 on."""
    filled = {
        "effect": f"effect of {id}",
        "instance": "instance-1",
        "tenant": "acme",
        "block": "a",
        "handler": "charge",
    }
    return WorkItem(id=id, **{**filled, **columns})


class World:
    """The writer of all partitions of a store."""

    def __init__(self, store, owner=None, now_ms=0, lease_until_ms=LEASE_MS):
        self.store = store
        self.owner = owner or an_owner()
        everything = range(store.meta().partitions)
        rows = store.acquire(self.owner, everything, now_ms, lease_until_ms)
        self.heads = {row.p: (row.fence_epoch, row.turn, row.root) for row in rows}
        self.numbers = {}

    def turn(self, changes=(), tick=TICK, touching=(), **rest):
        """The commit of the next turn, not yet committed."""
        touched = sorted({change.p for change in changes} | set(touching)) or [0]
        rows = []
        for p in touched:
            epoch, number, root = self.heads[p]
            heads = b"".join(change.head for change in changes if change.p == p)
            rows.append(
                PartitionTurn(p, epoch, number, root_of(root, p, number + 1, tick, heads), heads)
            )
        return Commit(tick, 1_000 + tick, LEASE_MS + tick, rows, changes, **rest)

    def commit(self, *changes, tick=TICK, **rest):
        """Commit the next turn and move the heads on."""
        commit = self.turn(changes, tick, **rest)
        committed = self.store.commit(commit)
        for row in commit.partitions:
            self.heads[row.p] = (row.fence_epoch, row.turn + 1, row.root)
        self.numbers |= committed.numbers
        return committed

    def next_change(self, id, **columns):
        """The change that follows what is stored of an instance."""
        there = self.store.load([id])[id]
        filled = {"p": there.p, "state": there.state, "due": there.due, "busy": there.busy}
        return a_change(
            id, n=there.n, version=there.version + 1, previous=there.head, **{**filled, **columns}
        )


def work_rows(store):
    return store.work.items(WorkQuery(limit=1_000))


def everything(store):
    """All that the port can read of a store, to prove that something did or did not change."""
    rows = store.instances(Page(limit=10_000))
    ids = [row.id for row in rows]
    return {
        "partitions": store.partitions(),
        "owners": store.owners(),
        "instances": rows,
        "loaded": store.load(ids),
        "journal": store.journal_scan(0, 10_000),
        "turns": [store.turns(p, 0, 1_000) for p in range(store.meta().partitions)],
        "seals": store.seals(-1, 100),
        "arrivals": store.arrivals(range(store.meta().partitions), 1_000),
        "verdicts": store.verdicts(WATCHED_ARRIVALS),
        "flights": store.flights(WATCHED_EFFECTS),
        "doubts": store.doubts("", "", 100),
        "blobs": {id: store.blobs(id, WATCHED_BLOBS) for id in ids},
        "definitions": store.definitions("acme", "sales"),
        "work": work_rows(store),
        "work events": {row.id: store.work.events(row.id, 100) for row in work_rows(store)},
        "workers": store.work.workers(None, 0, 100),
        "events": [store.events(tenant, "", 100) for tenant in ("acme", "beta")],
        "deliveries": store.deliveries(DeliveryQuery()),
    }
