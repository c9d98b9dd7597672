"""What a step decides: a new snapshot, orders for the dispatcher, messages, and one journal row.

Nothing in a decision has happened yet; the turn commits it whole and acts afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Raw, Struct, field

ANYBODY = "*"
"""The name under which a writer is told that handlers nobody has registered are workers'."""


class HandlerSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the kernel is told about a handler; a fact, recorded when it is not the default."""

    name: str
    doubt: str = "repeatable"  # repeatable | keyed | queryable | once
    timeout_ms: int | None = None
    withdrawable: bool = True
    ctx: bool = False  # the handler takes ctx, so the order carries data and config
    merge: bool = True  # an object result is merged into data
    schema: Any = None  # JSON Schema of its parameters, when its annotations give one
    worker: bool = False  # performed by external workers: no order is made, but a work item

    @property
    def marked(self) -> bool:
        """Whether a start mark is committed before each call."""
        return self.doubt in ("queryable", "once") or (self.doubt == "keyed" and self.withdrawable)


class Order(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call for the dispatcher: perform the effect, or reconcile it."""

    key: str
    instance: str
    tenant: str
    node: str
    block: str
    handler: str
    request: Raw
    mode: str = "call"  # call | reconcile
    attempt: int = 1
    dispatch: int = 0  # how often it was tried before; above 0 an earlier call may have been made
    again: bool = False  # sent once more by a new writer: whoever has it already ignores this one
    marked: bool = False
    doubt: str = "repeatable"
    timeout_ms: int | None = None
    data: Raw = Raw(b"null")  # what of the context a handler that takes it may see
    config: Raw = Raw(b"null")
    dry_run: bool = False
    resource: str = ""  # resource_key of the resource it was assigned
    ticket: str = ""  # under which the gate granted it: whoever calls says that it has begun
    plain: bool = False  # nothing in its request is a reference to a credential
    seen: Any = None  # of a plan's step: run, contact, events and clock


class WorkItem(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call for an external worker, with everything it may see; written with the decision."""

    id: str
    effect: str
    instance: str
    tenant: str
    block: str
    handler: str
    queue: str = ""
    params: bytes = b"null"
    context: bytes = b"null"
    attempt: int = 0  # counted from 0, as workers are told
    timeout_ms: int | None = None  # from the claim on
    available_ms: int = 0  # nobody gets it earlier
    created_ms: int = 0
    previous: str = ""  # the item of the attempt before, whose checkpoint goes on
    ticket: str = ""  # under which the gate granted it: its claim is the call that counts
    routed: str = ""  # why it is in another queue than its step names; the writer's, not decided


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An input for another instance, made durable in the sender's commit; `id` makes it one."""

    id: str
    to: str
    body: bytes
    start: Birth | None = None  # present when the message also creates the instance


class Birth(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The columns of a new instance's row."""

    id: str
    tenant: str
    namespace: str
    definition: str
    priority: int
    key: str | None = None
    parent: str | None = None
    labels: tuple[tuple[str, str], ...] = ()  # what lists can be filtered by


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The answer to an input that carried an id."""

    id: str
    ok: bool = True
    code: str = ""
    message: str = ""
    result: Any = None


class Doubt(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A row of the doubt table; `state` empty removes it."""

    effect: str
    state: str
    next_try: int | None = None
    reason: str = ""


class EventStanding(NamedTuple):
    """How an event stands from now on, for lists; without a status it is kept no longer."""

    id: str
    status: str
    at_ms: int


class Entry(NamedTuple):
    """One journal entry: action, node path, detail."""

    action: str
    node: str
    detail: Any


class Need(NamedTuple):
    """A fact the kernel must be told before it can decide: ("child", name, version) and so on."""

    kind: str
    name: str
    extra: Any = None


class Decision(Struct, kw_only=True, gc=False):
    """The result of one `step`.

    What follows `orders` is rare, so it is put in afterwards where there is some of it: that many
    keyword arguments would make the interpreter build a dictionary of them for every step.
    """

    instance: str
    snapshot: bytes
    version: int
    state: str
    priority: int
    due: int | None
    busy: bool
    journal: bytes
    tick: int
    definition: str
    more: bool  # out of moves: ready again next turn
    birth: Birth | None = None
    started: int | None = None  # when the instance first moved
    actions: tuple[str, ...] = ()  # what its journal entries count as
    orders: Sequence[Order] = ()
    withdrawn: Sequence[str] = ()  # tombstones to insert
    recalled: Sequence[str] = ()  # calls in flight to cancel
    settled: Sequence[str] = ()  # flight rows to remove
    doubts: Sequence[Doubt] = ()
    messages: Sequence[Message] = ()
    verdicts: Sequence[Verdict] = ()
    work: Sequence[WorkItem] = ()
    called_off: Sequence[str] = ()  # effects whose work items are cancelled
    events: Sequence[EventStanding] = ()  # of a correlator: what changed
    blobs: dict[str, bytes] = field(default_factory=dict)
