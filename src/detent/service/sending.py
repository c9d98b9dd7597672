"""Signals and commands for an instance, as submissions."""

from __future__ import annotations

from typing import Any, get_args

from detent.model import limits
from detent.model.errors import RequestError
from detent.model.inputs import Commanded, Configured, SignalReceived, Verb, encode_input
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.service.arguments import check_instance, check_text, invalid, storable

__all__ = [
    "CONTROL",
    "Verb",
    "command_submission",
    "configure_submission",
    "signal_name",
    "signal_submission",
]

CONTROL = ("pause", "resume", "cancel", "update_context")


def signal_submission(instance: str, name: str, payload: Any, id: str, ack: int) -> Submission:
    """A signal: one of the control words, or any name of the caller's own."""
    check_instance(instance)
    check_text("id", id, limits.KEY_CHARS)
    wire = signal_name(name)
    if wire == "update_context" and not isinstance(payload, dict):
        raise RequestError("payload.invalid", "update_context needs an object to merge into data")
    encode_payload(payload, where="payload")
    told = SignalReceived(name=wire, payload=payload, id=id)
    return Submission(instance, encode_input(told), ack=ack, id=id)


def signal_name(name: Any) -> str:
    """The wire name: control words as they are, others behind `custom:`."""
    if isinstance(name, dict) and list(name) == ["custom"]:
        name = name["custom"]
    elif name in CONTROL:
        return str(name)
    bare = name.removeprefix("custom:") if isinstance(name, str) else ""
    if not 0 < len(bare) <= limits.NAME_CHARS or not storable(bare):
        raise RequestError(
            "request.invalid",
            f"a signal needs a name of 1 to {limits.NAME_CHARS} characters; got {name!r}",
        )
    return f"custom:{bare}"


def command_submission(
    instance: str, verb: Verb, args: Any, id: str, ack: int, batch: str = ""
) -> Submission:
    """A call that can be refused; `batch` names the bulk action it is part of."""
    check_instance(instance)
    check_text("id", id, limits.KEY_CHARS)
    if verb not in get_args(Verb):
        raise invalid("a command", f"one of {', '.join(get_args(Verb))}", verb)
    encode_payload(args, where="arguments")
    told = Commanded(verb=verb, id=id, args=args, batch=batch)
    return Submission(instance, encode_input(told), ack=ack, id=id, ask=True)


def configure_submission(instance: str, verb: str, args: Any, id: str, ack: int) -> Submission:
    """A change of one of the engine's own instances: a tenant's gate, a schedule."""
    check_instance(instance)
    check_text("id", id, limits.KEY_CHARS)
    check_text("a change", verb, limits.NAME_CHARS)
    encode_payload(args, where="arguments")
    told = Configured(verb=verb, id=id, args=args)
    return Submission(instance, encode_input(told), ack=ack, id=id, ask=True)
