"""A hand-driven writer over a real SQLite store: the test chooses turns, ticks and outcomes."""

from __future__ import annotations

import hashlib

from detent.kernel.chain import GENESIS, digest_of, head_of, root_of, seal_of, snapshot_digest_of
from detent.kernel.program import compile_program
from detent.kernel.step import Facts, step
from detent.model.ids import derived_id, partition_of
from detent.model.inputs import EffectApplied, Started, encode_input
from detent.ports.definitions import DefinitionRow
from detent.ports.opening import NewStore
from detent.ports.store import (
    Commit,
    Flight,
    InstanceChange,
    NewArrival,
    Owner,
    PartitionTurn,
    Seal,
)
from detent.store.sqlite import open_store

EPOCH_MS = 1_700_000_000_000
PARTITIONS = 4


class Keeper:
    """One store with its instances; `orders` are the calls nobody has answered yet."""

    def __init__(self, path=":memory:", *, seal_every=5, handlers=None):
        create = NewStore(EPOCH_MS, 100, "virtual", PARTITIONS, "store-1")
        self.store = open_store(path, create=create)
        rows = self.store.acquire(Owner("me", "host", 1, 0, ""), range(PARTITIONS), 0, 10**15)
        self.heads = {row.p: row for row in rows}
        self.programs = {}
        self.handlers = handlers or {}
        self.seal_every = seal_every
        self.turns = 0
        self.seals = 0
        self.seal = GENESIS
        self.tick = 0
        self.orders = {}
        self.due = {}

    def define(self, definition, tenant="default"):
        body = definition.body
        row = DefinitionRow(
            definition.hash,
            tenant,
            "default",
            body.name,
            body.version,
            definition.canonical,
            False,
            0,
        )
        self.store.put_definition(row)
        self.programs[definition.hash] = compile_program(definition)
        return definition

    def start(self, definition, name, data=None, tenant="default", tick=None, **more):
        id = derived_id(tenant, "instance", name)
        told = Started(
            instance=id, tenant=tenant, definition=definition.hash, data=data or {}, **more
        )
        self.turn({id: [told]}, tick, births={id: definition.hash})
        return id

    def tell(self, id, *inputs, tick=None):
        return self.turn({id: list(inputs)}, tick)

    def turn(self, told, tick=None, births=()):
        """Decide every instance named and commit them together; the decisions by id."""
        self.tick = self.tick if tick is None else tick
        loaded = self.store.load(list(told))
        decisions = {}
        for id, inputs in told.items():
            row = loaded.get(id)
            digest = births[id] if row is None else row.definition
            bodies = [encode_input(each) for each in inputs]
            decisions[id] = self._decide(digest, id, row, bodies)
        happened = {id: d for id, d in decisions.items() if d.journal}
        if happened:
            self._commit(happened, loaded)
        return decisions

    def _decide(self, digest, id, row, bodies):
        facts = Facts(handlers=self.handlers, given={}, epoch_ms=EPOCH_MS, resolution_ms=100)
        body = row.body if row is not None else None
        while True:
            decision = step(self.programs[digest], body, bodies, self.tick, facts)
            if not isinstance(decision, list):
                return decision
            for need in decision:
                self._give(need, id, facts.given)

    def _give(self, need, id, given):
        if need.kind == "blob":
            given[f"blob:{need.name}"] = self.store.blobs(id, [need.name])[need.name]
        elif need.kind == "child":
            version = need.extra or None
            row = self.store.find_definition("default", "default", need.name, version)
            given[f"child:{need.name}:{need.extra}"] = None if row is None else row.hash
        elif need.kind == "program":
            given[f"program:{need.name}"] = self.programs[need.name]
        else:
            found = self.store.flights([need.name]).get(need.name)
            given[f"flight:{need.name}"] = found.dispatch if found else None

    def _commit(self, decisions, loaded):
        changes, heads = [], {}
        for id, decision in decisions.items():
            change = self._change(id, decision, loaded.get(id))
            changes.append(change)
            heads.setdefault(change.p, []).append(change.head)
        turns, roots = [], {row.p: row.root for row in self.heads.values()}
        for p in sorted(heads):
            head = self.heads[p]
            joined = b"".join(heads[p])
            roots[p] = root_of(head.root, p, head.turn + 1, self.tick, joined)
            turns.append(PartitionTurn(p, head.fence_epoch, head.turn, roots[p], joined))
        arrivals = [
            NewArrival(m.id, partition_of(m.to, PARTITIONS), m.to, m.body, m.start, salt_of(m.to))
            for d in decisions.values()
            for m in d.messages
        ]
        self.store.commit(
            Commit(
                tick=self.tick,
                wall_ms=EPOCH_MS,
                lease_until_ms=10**15,
                partitions=turns,
                changes=changes,
                arrivals=arrivals,
                seal=self._next_seal(roots),
                settled=[key for d in decisions.values() for key in d.settled],
                doubts=[(id, each) for id, d in decisions.items() for each in d.doubts],
                blobs=[(id, k, v) for id, d in decisions.items() for k, v in d.blobs.items()],
            )
        )
        for p in heads:
            self.heads[p] = self.heads[p]._replace(turn=self.heads[p].turn + 1, root=roots[p])
        for id, decision in decisions.items():
            self.due[id] = decision.due
            for order in decision.orders:
                self.orders[order.key] = order

    def _change(self, id, decision, row):
        salt = row.salt if row is not None else salt_of(id)
        digest, left = digest_of(salt, decision.journal), snapshot_digest_of(decision.snapshot)
        previous = row.head if row is not None else GENESIS
        head = head_of(previous, decision.version, self.tick, left, digest)
        return InstanceChange(
            row.n if row is not None else -1,
            id,
            partition_of(id, PARTITIONS),
            decision.birth if row is None else None,
            salt,
            True,
            decision.state,
            decision.priority,
            decision.due,
            decision.busy,
            decision.definition,
            decision.version,
            decision.snapshot,
            left,
            self.tick,
            digest,
            decision.journal,
            head,
        )

    def _next_seal(self, roots):
        self.turns += 1
        if self.turns % self.seal_every:
            return None
        self.seals += 1
        ordered = [roots[p] for p in sorted(roots)]
        self.seal = seal_of(self.seal, self.seals, self.tick, ordered)
        return Seal(self.seals, self.tick, b"".join(ordered), self.seal, b"")

    def mark(self, key):
        """As a dispatcher does just before a call."""
        self.store.mark([Flight(key, "me", 1, self.tick)])

    def apply(self, id, result=None, tick=None):
        """Answer the first open order of an instance."""
        key = next(key for key, order in self.orders.items() if order.instance == id)
        del self.orders[key]
        return self.tell(id, EffectApplied(key=key, dispatch=1, result=result), tick=tick)

    def finish(self, *ids):
        """Answer every order and pass every due tick of these instances."""
        for id in ids:
            for _ in range(100):
                if any(order.instance == id for order in self.orders.values()):
                    self.apply(id, {"n": self.turns})
                elif self.store.instance(id).state in ("scheduled", "running", "waiting"):
                    if self.due.get(id) is None:
                        break
                    self.tell(id, tick=max(self.tick, self.due[id]))
                else:
                    break
        return self

    def close(self):
        self.store.close()


def salt_of(id):
    return hashlib.sha256(b"salt" + id.encode()).digest()[:16]
