"""The verbs of an engine as its classes tell them, and those that a client has not."""

from __future__ import annotations

import functools
import inspect

import detent

# The verbs that stay with the engine, and why.
ENGINE_ONLY = {
    "over": "Makes an engine of parts that are open already.",
    "register": "Handlers are functions of the process that calls them.",
    "advance": "Moves a virtual clock, which runs in the process that owns it.",
    "run_until_idle": "Performs everything in virtual time, in the process that owns it.",
    "close": "Ends the engine; that of a client lets its own connections go.",
    "inspect.look": "Hands out the store itself.",
    "inspect.close": "Lets the store go.",
    "inspect.verify": "A proof is made from the bytes; a server's word about itself is none.",
    "inspect.anchor": "Taken from the same bytes, and signed with a key file of this machine.",
    "inspect.debug": "Steps through a record in memory, back and forth.",
    "work.bell": "Wakes a waiter of the same process; over HTTP a poll itself can wait.",
}
# Plans have no routes yet: all of them stay.
_PLANS = (
    "cancel debug enroll execute get_run ingest_event list_runs logs pause replay resume timeline"
)
ENGINE_ONLY |= {f"plans.{verb}": "Plans are not served over HTTP yet." for verb in _PLANS.split()}
# Of these, what a client has under the same name for itself.
UNCHANGED = ("close",)
_NO_DOORS = ("aio",)  # the same verbs once more


def verbs_of(owner: object) -> list[str]:
    """The public verbs of a door: its methods, and properties that are none of its doors."""
    kind = owner if isinstance(owner, type) else type(owner)
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


def facades(engine: detent.Engine) -> dict[str, object]:
    """The doors of an engine that have verbs of their own."""
    names = [*vars(engine), *(n for n, m in vars(type(engine)).items() if isinstance(m, property))]
    found = {name: getattr(engine, name) for name in names if not name.startswith("_")}
    return {name: door for name, door in found.items() if name not in _NO_DOORS}


@functools.cache
def engine_verbs() -> frozenset[str]:
    """Every public verb: `start`, `crons.create` …"""
    with detent.Engine(clock="virtual") as engine:
        doors = facades(engine)
        own = {name for name in verbs_of(engine) if name not in doors}
        below = {f"{door}.{verb}" for door, it in doors.items() for verb in verbs_of(it)}
    return frozenset(own | below)
