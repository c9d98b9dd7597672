"""What is said at a gate: an ask for everything a step needs at once, and the answer to it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from detent.kernel.gate.hours import Hours


class Ask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that one step, or one instance, needs before it may move: granted whole or not at all."""

    instance: str
    token: int
    priority: int = 1
    limits: tuple[str, ...] = ()
    pool: str = ""
    resource: str = ""  # a retry's own resource: this one or none
    sticky: str = ""  # the resource it had last, taken while it has capacity
    slot: str = ""  # concurrency key
    slots: int = 0  # how many may hold that key at once
    breaker: str = ""  # handler whose circuit breaker must let it pass
    back: bool = False  # it had its place before: ahead of those who never had one
    window: str = ""  # digest of its send windows: it is called only while they let it act
    hours: Hours | None = None  # those windows; a stored ask has them in a row of their own

    @property
    def ticket(self) -> str:
        """Under which name it waits."""
        return f"{self.instance}:{self.token}"


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a gate said; recorded as a fact by whoever asked.

    granted: go on, with this resource. deferred: stand, the gate calls. late: called, but taken so
    late that there is no room any more. refused: it can never be granted. sent: another writer has
    the gate.
    """

    state: str
    resource: str = ""  # the resource's id
    key: str = ""  # its resource_key, which people know it by
    # What holds it: limit:<key>, pool:<name>, resource:<key>, key:<concurrency key> or
    # breaker:<handler>; or, where it was granted, that it is the PROBE of a breaker.
    rule: str = ""
    why: str = ""


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="ask"):
    """An ask that travels to the gate of another writer."""

    tenant: str
    ask: Ask


class GivenBack(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="back"):
    """To the gate of another writer: a ticket or a slot is given back, or keys are closed."""

    tenant: str
    ticket: str = ""
    instance: str = ""
    slot: str = ""
    keys: tuple[str, ...] = ()
    until: int = 0


class Reported(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="report"):
    """To the gate of another writer: a call of a handler has worked, or not."""

    tenant: str
    handler: str
    worked: bool = False


class Begun(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="t", tag="begun"):
    """To the gate of another writer: the call that a ticket was granted for has begun."""

    tenant: str
    ticket: str


class Call(NamedTuple):
    """A ticket whose turn has come."""

    instance: str
    token: int
    priority: int


GRANTED = Answer(state="granted")
PROBE = "probe"

ToGate = Asked | Begun | GivenBack | Reported
_decoder: msgspec.json.Decoder[ToGate] = msgspec.json.Decoder(ToGate)
_ask_decoder = msgspec.json.Decoder(Ask)
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def decode_to_gate(body: bytes) -> ToGate:
    """Read what another writer sent to a gate."""
    return _decoder.decode(body)


def decode_ask(body: bytes) -> Ask:
    """Read a stored ask."""
    return _ask_decoder.decode(body)
