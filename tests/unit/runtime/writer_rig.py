"""A writer over a real store, with time in the test's hand."""

from __future__ import annotations

import hashlib
from itertools import count

from detent.definition import sequence, step
from detent.kernel.chain import GENESIS, digest_of, head_of, root_of
from detent.kernel.program import compile_program
from detent.model.decision import Birth, HandlerSpec
from detent.model.ids import derived_id, timed_id
from detent.model.inputs import (
    Commanded,
    EffectApplied,
    SignalReceived,
    Started,
    encode_input,
)
from detent.model.link import Control, Decided, MarkRequest, Submission, Submit
from detent.ports.definitions import DefinitionRow
from detent.ports.opening import NewStore
from detent.ports.store import Owner, Page
from detent.runtime.clock import SteppedClock, VirtualClock, WallClock
from detent.runtime.settings import WriterSettings
from detent.runtime.writer import Writer
from detent.store.sqlite import open_store

EPOCH_MS = 1_700_000_000_000
START_MS = EPOCH_MS + 1_000_000


class Hands:
    """Both clocks of a machine, moved by hand."""

    def __init__(self, wall_ms: int = START_MS, boot_ms: int = 5_000) -> None:
        self.wall_ms = wall_ms
        self.boot_ms = boot_ms

    def wall(self) -> int:
        return self.wall_ms

    def boot(self) -> int:
        return self.boot_ms

    def pass_ms(self, ms: int) -> None:
        self.wall_ms += ms
        self.boot_ms += ms


def chance_of(seed: str):
    numbers = count()

    def chance(size: int) -> bytes:
        out = b""
        while len(out) < size:
            out += hashlib.sha256(f"{seed} {next(numbers)}".encode()).digest()
        return out[:size]

    return chance


class Rig:
    """One engine's writer; `restart` gives the next process's."""

    def __init__(self, path=":memory:", *, mode="virtual", settings=None, owner="one", hands=None):
        self.path = str(path)
        self.mode = mode
        self.settings = settings or WriterSettings()
        self.hands = hands or Hands()
        create = NewStore(EPOCH_MS, 100, mode, 16, "store")
        self.store = open_store(self.path, create=create)
        self.clock = self._clock()
        self.acks = count(1)
        self.numbers = count(1)
        self.verdicts = {}
        self.decided: list[Decided] = []
        self.chance = chance_of(owner)
        self.owner = Owner(owner, "host", 1, 0, "")
        self.writer = Writer(self.store, self.clock, self.settings, self.owner, self.chance)

    def _clock(self):
        if self.mode == "virtual":
            return VirtualClock(EPOCH_MS, 100, self.hands.boot)
        if self.mode == "stepped":
            interval = self.settings.tick_interval_ms
            return SteppedClock(EPOCH_MS, 100, interval, self.hands.wall, self.hands.boot)
        return WallClock(EPOCH_MS, 100, self.hands.wall, self.hands.boot)

    def open(self) -> Rig:
        self.keep(self.writer.open())
        return self

    def restart(self, owner="two", **more) -> Rig:
        """The process died: a new one opens the same file."""
        self.store.close()
        more.setdefault("settings", self.settings)
        rig = Rig(self.path, mode=self.mode, owner=owner, hands=self.hands, **more)
        rig.acks, rig.numbers = self.acks, self.numbers
        return rig.open()

    def succeed(self) -> Rig:
        """Only the writer died: another one of the same engine follows, whose calls go on."""
        self.store.close()
        settings, owner = self.settings, self.owner.id
        rig = Rig(self.path, mode=self.mode, owner=owner, hands=self.hands, settings=settings)
        rig.acks, rig.numbers = self.acks, self.numbers
        rig.writer.succeed()
        return rig.open()

    # what is stored

    def define(self, name="calls", blocks=None, version=1):
        blocks = blocks if blocks is not None else [step("a", "work"), step("b", "work")]
        made = sequence(name, *blocks, version=version)
        row = DefinitionRow(
            made.hash, "default", "default", name, version, made.canonical, False, 0
        )
        self.store.put_definition(row)
        compile_program(made)
        return made

    def row(self, instance):
        return self.store.instance(instance)

    def journal(self, instance):
        return self.store.journal(self.row(instance).n, 0, 10_000)

    # what is sent

    def start(
        self,
        made,
        *,
        key=None,
        priority=1,
        ack=True,
        id="",
        data=None,
        instance=None,
        tenant="default",
    ):
        instance = instance or (
            derived_id(tenant, "instance", key)
            if key
            else timed_id(EPOCH_MS + next(self.numbers), bytes(10))
        )
        told = Started(
            instance=instance,
            tenant=tenant,
            definition=made.hash,
            priority=priority,
            data=data or {},
            key=key,
            id=id,
        )
        birth = Birth(
            id=instance,
            tenant=tenant,
            namespace="default",
            definition=made.hash,
            priority=priority,
            key=key,
        )
        number = next(self.acks) if ack else 0
        return Submission(instance, encode_input(told), number, id, birth=birth)

    def signal(self, instance, name="custom:go", payload=None, *, id="", ack=True):
        told = SignalReceived(name=name, payload=payload, id=id)
        return Submission(instance, encode_input(told), next(self.acks) if ack else 0, id)

    def command(self, instance, verb, *, id, args=None):
        told = Commanded(verb=verb, id=id, args=args)
        return Submission(instance, encode_input(told), next(self.acks), id, True)

    def applied(self, order, result=None, dispatch=0):
        told = EffectApplied(key=order.key, dispatch=dispatch, result=result)
        return Submission(order.instance, encode_input(told))

    def send(self, *submissions, marks=(), control=()):
        marks = [MarkRequest(list(marks))] if marks else []
        self.writer.submit(Submit(list(submissions), marks, list(control)))

    def control(self, verb, args=None):
        ack = next(self.acks)
        self.send(control=[Control(verb, ack, args)])
        return ack

    def register(self, *specs: HandlerSpec):
        self.control("register", list(specs))

    # what comes back

    def keep(self, decided):
        if decided is not None:
            self.decided.append(decided)
            self.verdicts |= dict(decided.acks)
        return decided

    def turn(self):
        return self.keep(self.writer.turn())

    def settle(self, limit=1_000) -> list[Decided]:
        """Turns until there is nothing to do."""
        seen = []
        for _ in range(limit):
            decided = self.turn()
            if decided is None:
                return seen
            seen.append(decided)
        raise AssertionError(f"not idle after {limit} turns")

    def orders(self, seen):
        return [order for decided in seen for order in decided.orders]

    def verdict(self, submission):
        return self.verdicts[submission.ack]

    def check_chain(self):
        """Recompute every head and root from what is stored; the number of journal rows."""
        heads: dict[tuple[int, int], list[bytes]] = {}
        last: dict[int, bytes] = {}
        rows = self.store.journal_scan(0, 100_000)
        place = {row.n: row for row in self.store.instances(Page(limit=100_000))}
        for row in rows:
            at = place[row.inst]
            assert row.digest == digest_of(at.salt, row.body)
            head = head_of(
                last.get(row.inst, GENESIS), row.seq, row.tick, row.snapshot_digest, row.digest
            )
            assert row.head == head
            last[row.inst] = head
            heads.setdefault((at.p, row.turn), []).append(head)
        for partition in self.store.partitions():
            root = GENESIS
            turns = self.store.turns(partition.p, 0, 100_000)
            assert [turn.n for turn in turns] == list(range(1, partition.turn + 1))
            for turn in turns:
                written = b"".join(heads.get((turn.p, turn.n), []))
                assert turn.heads == written
                root = root_of(root, turn.p, turn.n, turn.tick, written)
                assert turn.root == root
            assert partition.root == root
        return len(rows)


class Faulty:
    """The store, but `commit` does what the test says: raise before, or after it happened."""

    def __init__(self, store):
        self._store = store
        self.before = None  # called with the commit; may raise
        self.after = None
        self.commits = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, commit):
        self.commits.append(commit)
        if self.before is not None:
            self.before(commit)
        committed = self._store.commit(commit)
        if self.after is not None:
            self.after(commit)
        return committed


def with_faults(rig: Rig, *, opened: bool = False) -> Faulty:
    faulty = Faulty(rig.store)
    if opened:  # the same writer goes on over it
        rig.writer._parts.store = faulty
        return faulty
    rig.writer = Writer(faulty, rig.clock, rig.settings, rig.owner, rig.chance)
    return faulty
