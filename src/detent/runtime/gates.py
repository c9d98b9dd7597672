"""Gates in the writer: the one door through which steps, calls and other writers reach a Gate.

A gate is read from its rows when it is first needed and kept as long as the commits succeed. What a
turn changes in it is written in that turn's commit; after any commit error all gates are dropped
and read anew, so a grant never outlives the step that used it. A gate whose home partition belongs
to another writer is reached by arrivals (`Asked`, `GivenBack`), and answers by one
(`GateAnswered`).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from detent.kernel.asking import gate_id
from detent.kernel.gate.asks import (
    Answer,
    Ask,
    Asked,
    Begun,
    Call,
    GivenBack,
    Reported,
    encode,
)
from detent.kernel.gate.breakers import BreakerRules
from detent.kernel.gate.config import Config, read_config
from detent.kernel.gate.gate import Gate
from detent.kernel.gate.meters import Timing
from detent.kernel.gate.rows import Row
from detent.model.errors import StoreError
from detent.model.ids import partition_of, timed_id
from detent.model.inputs import Configured, GateAnswered, decode_input, encode_input
from detent.model.snapshot import decode_snapshot
from detent.ports.store import GateDue, GateRow, NewArrival
from detent.runtime.breakers import Known, WriterBreakers
from detent.runtime.gate_mail import Mail, open_mail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from detent.ports.store import Meta, Store
    from detent.runtime.clock import TurnClock
    from detent.runtime.lease import Lease

GATES_KEPT = 1_000  # in memory, beside those that somebody waits at

_SENT = Answer(state="sent")


def open_gate(store: Store, tenant: str, timing: Timing, tick: int) -> Gate:
    """A tenant's gate as it is stored: its configuration, its numbers and who waits."""
    config = Config()
    own = store.load([gate_id(tenant)]).get(gate_id(tenant))
    if own is not None and own.body is not None:
        config = read_config(decode_snapshot(own.body).kv)
    rows = [Row(row.kind, row.key, row.at, row.body or b"") for row in store.gate_rows(tenant)]
    return Gate(timing, config, rows, tick)


class Gates:
    """The gates of the tenants whose home is here; a `GatePort` for the step being decided."""

    def __init__(
        self,
        store: Store,
        meta: Meta,
        lease: Lease,
        clock: TurnClock,
        chance: Callable[[int], bytes],
        rules: BreakerRules,
    ) -> None:
        self._store = store
        self._meta = meta
        self._lease = lease
        self._clock = clock
        self._chance = chance
        self._timing = Timing(meta.epoch_ms, meta.resolution_ms)
        self._homes: dict[str, int] = {}
        self._gates: dict[str, Gate] = {}
        self._touched: dict[str, Gate] = {}  # asked or changed since the last commit
        self._due: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self._stored: dict[str, int] = {}  # the due tick each row of `gate` has
        self._answers: dict[str, Answer] = {}  # given to the step being decided
        self._told = False  # it gave something back, or closed a key
        self.calls: dict[str, tuple[str, str]] = {}  # ticket -> tenant, instance; not taken yet
        self.mail: list[Mail] = []
        self._unsure = False  # some of the mail may have been acted on, here or elsewhere
        self._heard: set[str] = set()  # tenants whose letters the present turn has acted on
        self.read: list[Mail] = []  # mail that the present turn has acted on
        self.outgoing: list[NewArrival] = []
        self.tick = 0
        self.breakers = WriterBreakers(Known(store, meta, clock, rules), self)
        self.serving = True  # False: whoever asks stands in line, for nobody here would act

    # for the step being decided (GatePort) -------------------------------------------------------

    def ask(self, tenant: str, ask: Ask) -> Answer:
        """Grant now, or give a place in line; the same answer if the step starts over."""
        known = self._answers.get(ask.ticket)
        if known is None:
            gate = self.here(tenant)
            known = _SENT if gate is None else gate.ask(ask, self.tick, grant=self.serving)
            self._answers[ask.ticket] = known
        return known

    def take(self, tenant: str, ticket: str) -> Answer:
        """Take what a ticket was called for."""
        known = self._answers.get(ticket)
        if known is None:
            gate = self.here(tenant)
            known = _SENT if gate is None else gate.take(ticket, self.tick)
            self._answers[ticket] = known
        return known

    def leave(self, tenant: str, ticket: str) -> None:
        """A ticket is wanted no longer."""
        self._told = True
        gate = self.here(tenant)
        if gate is not None:
            gate.leave(ticket, self.tick)
        else:
            self.send(tenant, GivenBack(tenant=tenant, ticket=ticket))

    def begin(self, tenant: str, ticket: str) -> None:
        """The call that a ticket was granted for has begun."""
        self._told = True
        gate = self.here(tenant)
        if gate is not None:
            gate.begin(ticket, self.tick)
        else:
            self.send(tenant, Begun(tenant=tenant, ticket=ticket))

    def let_go(self, tenant: str, key: str, instance: str) -> None:
        """An instance holds its concurrency key no longer."""
        self._told = True
        gate = self.here(tenant)
        if gate is not None:
            gate.let_go(key, instance, self.tick)
        else:
            self.send(tenant, GivenBack(tenant=tenant, instance=instance, slot=key))

    def close(self, tenant: str, keys: tuple[str, ...], until: int) -> None:
        """Let nothing pass these keys before a tick."""
        self._told = True
        gate = self.here(tenant)
        if gate is None:
            self.send(tenant, GivenBack(tenant=tenant, keys=keys, until=until))
            return
        for key in keys:
            gate.close(key, until)

    # for the turn --------------------------------------------------------------------------------

    def begin_turn(self, tick: int) -> None:
        """Another turn, at its tick."""
        self.tick = tick
        self.breakers.begin_turn()

    def begin_step(self) -> None:
        """Another step is decided: what the last one was told is its own affair."""
        self._told = False
        if self.breakers.said:
            self.breakers.said = {}
        if self._answers:
            self._answers = {}

    def used_by_step(self) -> bool:
        """Whether the step being decided has changed a gate."""
        return self._told or bool(self._answers) or bool(self.breakers.said)

    def take_over(self) -> None:
        """Forget everything and learn which gates have something to do."""
        self.drop()
        self._homes = {}
        self._due = {}
        self._heap = []
        self._stored = {}
        for row in self._store.gate_dues(self._lease.owned):
            if row.due is not None:
                self._note(row.tenant, row.due)
                self._stored[row.tenant] = row.due

    def drop(self) -> None:
        """A commit failed: what is in memory may never have happened."""
        for tenant in self._touched:
            self._note(tenant, 0)
        self.breakers.drop()
        self._gates = {}
        self._touched = {}
        self._answers = {}
        self.calls = {}
        self.mail = [*self.read, *self.mail]
        self._unsure = bool(self.mail)
        self._heard = set()
        self.read = []
        self.outgoing = []

    def next_due(self) -> int | None:
        """The first tick at which a gate has something to do."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def call(self, tick: int, room: int) -> list[tuple[str, Call]]:
        """Call those who fit now, with their tenant; other writers' instances are answered."""
        found: list[tuple[str, Call]] = []
        due = self.next_due()
        tenants: list[str] = []
        while due is not None and due <= tick:
            tenant = heappop(self._heap)[1]
            del self._due[tenant]
            tenants.append(tenant)
            due = self.next_due()
        share = max(1, room // max(1, len(tenants)))
        for tenant, gate in self._open(tenants, tick):
            for call in gate.call(tick, share):
                if self._is_home(partition_of(call.instance, self._meta.partitions)):
                    self.calls[f"{call.instance}:{call.token}"] = (tenant, call.instance)
                    found.append((tenant, call))
                else:
                    ticket = f"{call.instance}:{call.token}"
                    self._reply(ticket, gate.take(ticket, tick))
        return found

    def read_mail(self, tick: int) -> list[str]:
        """Act on what other writers sent; the ids of what is not to be acted on here (any more)."""
        opened, elsewhere = open_mail(self._store, self.mail, unsure=self._unsure)
        # Everything is read from the store before the first letter counts as read.
        gates = {told.tenant: self.here(told.tenant) for _, told in opened}
        self.mail, self._unsure = [], False
        for letter, told in opened:
            gate = gates[told.tenant]
            if gate is None:
                elsewhere.append(letter.id)
                continue
            self.read.append(letter)
            self._heard.add(told.tenant)
            if isinstance(told, Asked):
                answer = gate.ask(told.ask, tick, grant=self.serving)
                if answer.state != "deferred":
                    self._reply(told.ask.ticket, answer)
                continue
            if isinstance(told, Begun):
                gate.begin(told.ticket, tick)
                continue
            if isinstance(told, Reported):
                self.breakers.heard(told.tenant, gate, told.handler, worked=told.worked)
                continue
            if told.ticket:
                gate.leave(told.ticket, tick)
            if told.slot:
                gate.let_go(told.slot, told.instance, tick)
            for key in told.keys:
                gate.close(key, told.until)
        return elsewhere

    def configure(self, body: bytes, inputs: Sequence[bytes]) -> None:
        """The gate's own instance was changed in this turn, by these inputs."""
        snapshot = decode_snapshot(body)
        gate = self.here(snapshot.tenant)
        if gate is None:
            return
        config = read_config(snapshot.kv)
        gate.configure(config, self.tick)
        for told in map(decode_input, inputs):
            if not isinstance(told, Configured):
                continue
            given = told.args if isinstance(told.args, dict) else {}
            if told.verb == "limit.open":
                # Not only keys with a limit: a provider may have closed any of them.
                key = given.get("key") if len(given) == 1 else ""  # else it was refused
                gate.open(str(key), self.tick)
            elif told.verb == "breaker.reset":
                handler = str(given.get("handler", ""))
                self.breakers.heard(snapshot.tenant, gate, handler, worked=True)

    def settle_calls(self, decided: set[str]) -> None:
        """Whoever was called, and was stepped and did not take it, wants it no longer."""
        for ticket, (tenant, instance) in list(self.calls.items()):
            if instance in decided:
                del self.calls[ticket]
                gate = self._gates.get(tenant)
                if gate is not None and gate.called(ticket):
                    gate.leave(ticket, self.tick)

    def rows(self) -> tuple[list[GateRow], list[GateDue], set[int]]:
        """What the turn changed: rows, due ticks, and the home partitions they belong to."""
        rows: list[GateRow] = []
        dues: list[GateDue] = []
        homes: set[int] = set()
        for tenant, gate in self._touched.items():
            due = gate.next_due()
            home = self._home(tenant)
            if tenant in self._heard:  # so that only the gate's owner can take its letters
                homes.add(home)
            if gate.changed():
                rows += [GateRow(tenant, *key, body) for key, body in gate.take_rows().items()]
                homes.add(home)
            # Who was called and has not come yet is called anew by the next owner of this gate.
            stored = self.tick if gate.called_any() else due
            if stored != self._stored.get(tenant):  # a change may free what nothing else would
                dues.append(GateDue(tenant, home, stored))
                homes.add(home)
            self._note_now(tenant, due)
        return rows, dues, homes

    def committed(self, dues: Sequence[GateDue] = ()) -> None:
        """What the turn changed is durable; gates that nobody waits at may be read again later."""
        for row in dues:
            self._stored.pop(row.tenant, None)
            if row.due is not None:
                self._stored[row.tenant] = row.due
        if len(self._gates) > GATES_KEPT:
            self._gates = {tenant: gate for tenant, gate in self._gates.items() if gate.waiting()}
        self._touched = {}
        self._heard = set()
        self.read = []
        self.outgoing = []

    # for the breakers ----------------------------------------------------------------------------

    def here(self, tenant: str) -> Gate | None:
        """A tenant's gate, if its home is here; it counts as touched."""
        gate = self._gates.get(tenant)
        if gate is None:
            if not self._is_home(self._home(tenant)):
                return None
            gate = self._gates[tenant] = open_gate(self._store, tenant, self._timing, self.tick)
            self.breakers.adopt(tenant, gate)
        self._touched[tenant] = gate
        return gate

    def is_here(self, tenant: str) -> bool:
        """Whether a tenant's gate is at home here."""
        return self._is_home(self._home(tenant))

    def all_here(self) -> bool:
        """Whether no other writer has any."""
        return len(self._lease.heads) == self._meta.partitions

    def send(self, tenant: str, told: Begun | GivenBack | Reported) -> None:
        """Leave a letter for the gate of another writer."""
        made = timed_id(self._clock.wall_ms(), self._chance(10))
        left = NewArrival(made, self._home(tenant), gate_id(tenant), encode(told))
        self.outgoing.append(left)

    # inside --------------------------------------------------------------------------------------

    def _open(self, tenants: Sequence[str], tick: int) -> list[tuple[str, Gate]]:
        """The gates of tenants whose home is here; all stay due if one cannot be read."""
        try:
            found = [(tenant, self.here(tenant)) for tenant in tenants]
        except StoreError:
            for tenant in tenants:
                self._note(tenant, tick)
            raise
        return [(tenant, gate) for tenant, gate in found if gate is not None]

    def _home(self, tenant: str) -> int:
        home = self._homes.get(tenant)
        if home is None:
            home = self._homes[tenant] = partition_of(gate_id(tenant), self._meta.partitions)
        return home

    def _is_home(self, p: int) -> bool:
        return p in self._lease.heads

    def _note(self, tenant: str, due: int) -> None:
        known = self._due.get(tenant)
        if known is None or due < known:
            self._due[tenant] = due
            heappush(self._heap, (due, tenant))

    def _note_now(self, tenant: str, due: int | None) -> None:
        self._due.pop(tenant, None)
        if due is not None:
            self._note(tenant, due)

    def _reply(self, ticket: str, answer: Answer) -> None:
        instance, _, token = ticket.rpartition(":")
        told = GateAnswered(token=int(token), answer=answer, id=f"gate:{ticket}")
        p = partition_of(instance, self._meta.partitions)
        self.outgoing.append(NewArrival(told.id, p, instance, encode_input(told)))
