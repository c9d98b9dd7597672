"""What an instance is told: every input is past tense, journaled, and enough to replay from.

An input travels as encoded bytes; the journal keeps those very bytes. `id` is the caller's own
(for de-duplication and verdicts) and empty where nobody waits for an answer.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

Verb = Literal[
    "pause",
    "resume",
    "cancel",
    "retry",
    "migrate",
    "resolve",
    "set_data",
    "set_state",
    "reschedule",
    "resume_from",
    "inject",
    "begin",
]
"""What an instance can be asked for."""


NO_BLOCKS = Raw(b"null")  # left out of the bytes, as it is the default itself


class Parent(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who waits for this instance to end."""

    instance: str
    token: int
    block: str
    depth: int


class Started(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="started"
):
    """The first input: everything the first snapshot is made of."""

    instance: str
    tenant: str = "default"
    namespace: str = "default"
    definition: str  # hash
    priority: int = 1
    timezone: str = "UTC"
    data: Any = None
    config: Any = None
    metadata: Any = None
    key: str | None = None
    at: int | None = None  # tick before which nothing moves
    hold: bool = False  # nothing moves before it is asked to begin
    parent: Parent | None = None
    dry_run: bool = False
    auto_approve: bool = False
    policies: tuple[Any, ...] = ()
    concurrency_key: str | None = None
    max_concurrency: int = 1
    session: str | None = None
    budget: Any = None  # {"max_steps": …, "max_total_tokens": …}
    seed: str = ""
    id: str = ""


class Forked(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="forked"
):
    """The first input of a fork: the snapshot of another instance at one of its rows."""

    instance: str
    origin: str
    seq: int
    snapshot: Raw
    outcomes: tuple[Raw, ...] = ()  # how what was open at that row ended; then signals for it
    data: Any = None  # merged into the copied data
    dry_run: bool = False
    injected: Raw = NO_BLOCKS  # what was put into the origin
    seed: str = ""
    id: str = ""


class SignalReceived(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="signal"
):
    """pause, resume, cancel, update_context, or `custom:<name>`."""

    name: str
    payload: Any = None
    id: str = ""
    sender: str = ""  # the instance or person it came from
    batch: str = ""  # the bulk action it is part of


class Commanded(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="command"
):
    """A call that can be refused; its verdict is the kernel's."""

    verb: Verb
    id: str
    args: Any = None
    batch: str = ""  # the bulk action it is part of


class Configured(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="configured"
):
    """A change asked of one of the engine's own instances: a tenant's gate, a schedule."""

    verb: str
    id: str
    args: Any = None
    by: str = ""  # who asked


class GateCalled(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="called"
):
    """The gate here can serve a ticket now; the node takes its grant in the same turn."""

    token: int


class GateAnswered(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="answered"
):
    """A gate of another writer served a ticket, or refused it."""

    token: int
    answer: Any
    id: str = ""


class EffectApplied(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="applied"
):
    """The call was made and this came back."""

    key: str
    dispatch: int = 0
    result: Any = None


class EffectFailed(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="failed"
):
    """Definitely not done: the handler said so, or the class allows to take it so."""

    key: str
    dispatch: int = 0
    message: str
    retryable: bool = True
    kind: str = "transport"
    details: Any = None


class EffectDoubted(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="doubted"
):
    """Nobody knows whether it happened: time-out, crash, lost or unreadable answer."""

    key: str
    dispatch: int = 0
    reason: str
    crashed: bool = False


class EffectStranded(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="stranded"
):
    """Whoever was to call is gone; without `called`, the call was certainly not made."""

    key: str
    called: bool = False


class EffectReconciled(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="reconciled"
):
    """What the handler's own `reconcile` found."""

    key: str
    dispatch: int = 0
    verdict: Literal["applied", "failed", "retry"]
    result: Any = None
    message: str = ""


class ChildEnded(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="t",
    tag="child_ended",
):
    """A child instance reached a terminal state."""

    child: str
    token: int
    state: str
    data: Any = None
    outputs: tuple[Any, ...] = ()
    error: Any = None
    id: str = ""


class EventArrived(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="event"
):
    """An event of a producer, told to the correlator of its key; `call` is the caller's own."""

    event_id: str
    event_name: str
    producer_event_id: str
    payload: Any = None
    call: str = ""
    id: str = ""


class WaitRegistered(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="t",
    tag="wait_registered",
):
    """A step of an instance waits for events of a correlation key."""

    wait: str
    instance: str
    token: int
    names: tuple[str, ...]
    count: int  # of events that satisfy it; 0: one of each name
    id: str = ""


class WaitLeft(
    Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="t", tag="wait_left"
):
    """A registered wait ended without its events: what was kept for it is free again."""

    wait: str
    id: str = ""


class EventsMatched(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="t",
    tag="events_matched",
):
    """Everything a step waited for has come; `events` in the order in which they did."""

    wait: str
    token: int
    events: tuple[Any, ...]
    correlator: str
    error: str = ""  # why the wait could not be registered
    id: str = ""


class EventIngested(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="ingested"
):
    """Something happened to what a step of a plan sent: a flag for its run, which wakes nothing."""

    kind: str  # one of model.plan.EVENTS
    step: str
    outcome: str = ""  # of a call
    payload: Any = None  # for the record only
    id: str = ""


class ChildRetried(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="t",
    tag="child_retried",
):
    """An instance that a schedule started had failed, and runs again."""

    child: str
    id: str = ""


Input = (
    Started
    | Forked
    | SignalReceived
    | Commanded
    | Configured
    | GateCalled
    | GateAnswered
    | EffectApplied
    | EffectFailed
    | EffectDoubted
    | EffectStranded
    | EffectReconciled
    | ChildEnded
    | EventArrived
    | WaitRegistered
    | WaitLeft
    | EventsMatched
    | EventIngested
    | ChildRetried
)

_decoder: msgspec.json.Decoder[Input] = msgspec.json.Decoder(Input)
_encoder = msgspec.json.Encoder()


def decode_input(body: bytes | Raw) -> Input:
    """Read an input from its stored bytes."""
    return _decoder.decode(body)


def encode_input(value: Input) -> bytes:
    """The bytes of an input, as journaled."""
    return _encoder.encode(value)
