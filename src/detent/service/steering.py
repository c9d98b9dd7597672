"""Steering an instance: the arguments of each command, checked before anything is sent.

Each function gives the arguments of the verb of its name for `sending.command_submission`; the
verdict on it is the kernel's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from detent.definition import check_blocks, plain_blocks
from detent.kernel.lifecycle import INSTANCE
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.payload import encode_payload
from detent.service.arguments import check_text, invalid, listed, span_ms
from detent.service.instances import instance_definition
from detent.service.sending import signal_name
from detent.service.starting import Moment, check_handlers, tick_of

if TYPE_CHECKING:
    from detent.model.decision import HandlerSpec
    from detent.model.inputs import Verb
    from detent.ports.store import Store

_TAKEN = ("update_context",)  # of the control words, when an instance is resumed from a block


def set_data(data: Any) -> dict[str, Any]:
    """Replace an instance's data, whatever its state."""
    encode_payload(data, where="data", limit=limits.CONTEXT_BYTES)
    return {"data": data}


def set_state(
    state: Any, at: dt.datetime | dt.timedelta | None, now: Moment | None
) -> dict[str, Any]:
    """Move an instance to a state; `at` is when one that is scheduled goes on."""
    if type(state) is not str or state not in INSTANCE:
        raise invalid("state", f"one of {', '.join(INSTANCE)}", state)
    if at is None or now is None:
        return {"state": state, "next_fire_at": None}
    if state != "scheduled":
        raise invalid("next_fire_at", "given for the state scheduled only", at)
    return {"state": state, "next_fire_at": tick_of(at, now)}


def reschedule(offset: dt.timedelta | int) -> dict[str, Any]:
    """Move the due time of a scheduled instance by a span, which may be negative."""
    return {"offset_ms": span_ms("offset", offset)}


def resume_from(block: str, data: Any = None, signals: Any = ()) -> dict[str, Any]:
    """Repeat a block and all that follow it, with data to merge and signals to find there."""
    check_text("block", block, limits.NAME_CHARS)
    if data is not None and not isinstance(data, Mapping):
        raise invalid("data", "an object to merge into data", data)
    encode_payload(data, where="data", limit=limits.CONTEXT_BYTES)
    return {"block": block, "data": data, "signals": brought_signals(signals)}


def brought_signals(signals: Any) -> list[dict[str, Any]]:
    """Signals that an instance is to find where it goes on, each a name and a payload."""
    kept = [_signal(each) for each in listed("signals", signals or ())]
    if len(kept) > limits.SIGNALS_KEPT:
        raise invalid("signals", f"at most {limits.SIGNALS_KEPT}", len(kept))
    return kept


def inject(
    store: Store,
    instance: str,
    tenant: str | None,
    blocks: Any,
    position: int | None,
    handlers: Mapping[str, HandlerSpec],
) -> dict[str, Any]:
    """Put blocks in after those of the instance's definition; all faults of theirs at once."""
    _check_injection(blocks, position)
    made = check_blocks(list(blocks), instance_definition(store, instance, tenant))
    check_handlers(made, handlers)
    body = msgspec.json.decode(made.canonical)
    args = {"blocks": body["blocks"], "position": position}
    return {**args, "calendars": body["calendars"]} if "calendars" in body else args


def sent_blocks(blocks: Any, position: int | None) -> dict[str, Any]:
    """Blocks on their way to who knows the instance, and checks them there."""
    _check_injection(blocks, position)
    return {"blocks": plain_blocks(list(blocks)), "position": position}


def _check_injection(blocks: Any, position: int | None) -> None:
    if position is not None and (type(position) is not int or position < 0):
        raise invalid("position", "a whole number from 0 on, or None for the end", position)
    if not isinstance(blocks, list | tuple):
        raise invalid("blocks", "a list of blocks", blocks)


def command_args(verb: Verb, args: Any) -> Any:
    """The arguments of a command as the kernel takes them, from whoever may have made them up."""
    given = dict(args) if isinstance(args, Mapping) else {}
    match verb:
        case "set_data":
            return set_data(given.get("data"))
        case "set_state":
            at = given.get("next_fire_at")
            if at is not None and (type(at) is not int or at < 0):
                raise invalid("next_fire_at", "a tick, or null", at)
            return {**set_state(given.get("state"), None, None), "next_fire_at": at}
        case "reschedule":
            return reschedule(given.get("offset_ms", 0))
        case "resume_from":
            return resume_from(given.get("block", ""), given.get("data"), given.get("signals"))
    return args


def _signal(given: Any) -> dict[str, Any]:
    """A signal as a mapping of its name (`name` or `signal_type`) and payload."""
    if not isinstance(given, Mapping):
        raise invalid("a signal", "an object with name and payload", given)
    name = signal_name(given.get("name", given.get("signal_type")))
    payload = given.get("payload")
    if not name.startswith("custom:") and name not in _TAKEN:
        raise invalid("a signal to go on with", "update_context or one of your own", name)
    if name in _TAKEN and not isinstance(payload, Mapping):
        raise RequestError("payload.invalid", "update_context needs an object to merge into data")
    encode_payload(payload, where="payload")
    return {"name": name, "payload": payload}
