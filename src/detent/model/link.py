"""What crosses the link between the writer and the rest: two batched messages.

In one process `Submit` and `Decided` are handed over as they are; between processes they travel as
MessagePack. An order holds users' JSON verbatim (`Raw`), which MessagePack would take for its own,
so the orders of a turn travel as JSON within it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from detent.model.decision import Birth, Order, Verdict


class Submission(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One input for one instance, as the bytes the journal will keep.

    `ack` is the number of a waiting caller, answered exactly once in `Decided.acks`; 0 when nobody
    waits. A negative one is the receipt of an outcome: it comes back in `Decided.taken`, and such
    an input is never refused, since nobody can make it again. `id` is the caller's own, for
    de-duplication. With `ask` the answer is the kernel's verdict, otherwise it says that the input
    is durable. `birth` makes the instance.
    """

    instance: str
    body: bytes
    ack: int = 0
    id: str = ""
    ask: bool = False
    birth: Birth | None = None


class MarkRequest(Struct, frozen=True, array_like=True, omit_defaults=True):
    """Start marks the dispatcher wants before it makes these calls, and whose they are."""

    keys: list[str]
    instances: list[str] = field(default_factory=list)


class Control(Struct, frozen=True, array_like=True, omit_defaults=True):
    """An order to the writer itself: register, begun, wake, advance, accept_clock, status, close.

    `orphan` is a close that nobody asked for: whoever started the writer is gone, calls and all.
    """

    verb: str
    ack: int = 0
    args: Any = None


class Submit(Struct, frozen=True, array_like=True, omit_defaults=True):
    """Everything the rest has for the writer since the last time."""

    inputs: list[Submission] = field(default_factory=list)
    marks: list[MarkRequest] = field(default_factory=list)
    control: list[Control] = field(default_factory=list)


class Decided(Struct, frozen=True):
    """Everything one turn has for the rest; all of it is durable.

    `marked` pairs an effect key with its dispatch number; `lost` are marks not won, whose calls
    must not be made; `recalled` are calls to cancel; `moved` names every instance whose state
    changed; `taken` are the receipts of outcomes that need not be sent again. While the writer
    holds, `held` is the error code. `lease_until_ms` is by the engine's clock: no call may start
    later; 0 where time does not run by itself, or where this says nothing about the lease. `work`
    names (handler, queue, tenant) of every new work item; `counts` is for metrics. `dropped` are
    partitions that went to another writer: calls of theirs that were not begun must not be.
    """

    orders: list[Order] = field(default_factory=list)
    marked: list[tuple[str, int]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    acks: list[tuple[int, Verdict]] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    held: str = ""
    lease_until_ms: int = 0
    work: list[tuple[str, str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)


class _Wire(Struct, array_like=True):
    orders: bytes
    marked: list[tuple[str, int]]
    lost: list[str]
    recalled: list[str]
    acks: list[tuple[int, Verdict]]
    moved: list[tuple[str, str]]
    taken: list[int]
    held: str
    lease_until_ms: int
    work: list[tuple[str, str, str]]
    counts: dict[str, int]
    dropped: list[int]


_pack = msgspec.msgpack.Encoder().encode
_unpack_submit = msgspec.msgpack.Decoder(Submit).decode
_unpack_wire = msgspec.msgpack.Decoder(_Wire).decode
_encode_orders = msgspec.json.Encoder().encode
_decode_orders = msgspec.json.Decoder(list[Order]).decode


def encode_submit(batch: Submit) -> bytes:
    """The batch as it travels to a writer in another process."""
    return _pack(batch)


def decode_submit(body: bytes) -> Submit:
    """Read a batch that came from another process."""
    return _unpack_submit(body)


def encode_decided(decided: Decided) -> bytes:
    """The turn's results as they travel to another process."""
    d = decided
    lists = (_encode_orders(d.orders), d.marked, d.lost, d.recalled, d.acks, d.moved, d.taken)
    return _pack(_Wire(*lists, d.held, d.lease_until_ms, d.work, d.counts, d.dropped))


def decode_decided(body: bytes) -> Decided:
    """Read a turn's results that came from a writer in another process."""
    wire = _unpack_wire(body)
    return Decided(
        orders=_decode_orders(wire.orders),
        marked=wire.marked,
        lost=wire.lost,
        recalled=wire.recalled,
        acks=wire.acks,
        moved=wire.moved,
        taken=wire.taken,
        held=wire.held,
        lease_until_ms=wire.lease_until_ms,
        work=wire.work,
        counts=wire.counts,
        dropped=wire.dropped,
    )
