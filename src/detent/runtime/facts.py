"""Facts: what a step needs to be told, looked up where it is known.

A step names one need at a time and starts over with the answer, so an answer brings its neighbours
along: all marks of the instance's open effects, all blobs of its snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.definition import check_blocks
from detent.definition.system import EVENTS
from detent.model.errors import DefinitionError, InvariantViolation
from detent.model.snapshot import decode_snapshot

if TYPE_CHECKING:
    from detent.model.decision import Need
    from detent.runtime.cache import Hot
    from detent.runtime.parts import Parts


SYSTEM = {EVENTS.name: EVENTS}  # of which the kernel itself starts instances


def give(parts: Parts, hot: Hot, need: Need, given: dict[str, Any]) -> None:
    """Put the answer to one need, and to those likely to follow, among the given facts."""
    match need.kind:
        case "child":
            _give_child(parts, hot, need, given)
        case "sequence":
            _give_sequence(parts, hot, need, given)
        case "flight":
            _give_flights(parts, hot, need.name, given)
        case "blob":
            _give_blobs(parts, hot, need.name, given)
        case "system":
            given[f"system:{need.name}"] = parts.programs.keep(SYSTEM[need.name], parts.clock)
        case "program":
            given[f"program:{need.name}"] = parts.programs.find(need.name)
        case "blocks":
            given[f"blocks:{need.name}"] = _checked_blocks(parts, hot, need.extra)
        case _:
            raise InvariantViolation(f"a step asked for an unknown kind of fact: {need.kind}")


def _checked_blocks(parts: Parts, hot: Hot, raw: bytes) -> dict[str, Any]:
    """Blocks that a step has made, as the definition package takes them, or what is wrong."""
    try:
        made = check_blocks(msgspec.json.decode(raw), parts.programs.get(hot.definition).definition)
    except DefinitionError as error:
        return {"error": error.message}
    body: dict[str, Any] = msgspec.json.decode(made.canonical)
    return {name: body[name] for name in ("blocks", "calendars") if name in body}


def _give_child(parts: Parts, hot: Hot, need: Need, given: dict[str, Any]) -> None:
    """The hash of a child's definition: the version named, or the highest not deprecated."""
    tenant, namespace = place_of(parts, hot)
    row = parts.store.find_definition(tenant, namespace, need.name, need.extra or None)
    key = f"child:{need.name}" if need.extra is None else f"child:{need.name}:{need.extra}"
    given[key] = None if row is None else row.hash


def _give_sequence(parts: Parts, hot: Hot, need: Need, given: dict[str, Any]) -> None:
    """The hash of what a schedule starts: the highest version of a name in a namespace."""
    tenant, _ = place_of(parts, hot)
    row = parts.store.find_definition(tenant, need.extra, need.name, None)
    given[f"sequence:{need.name}:{need.extra}"] = None if row is None else row.hash


def _give_flights(parts: Parts, hot: Hot, key: str, given: dict[str, Any]) -> None:
    """Dispatch numbers; a mark of this very turn counts, a tombstone does not."""
    keys = {key: None}
    if hot.body is not None:
        keys |= {effect.key: None for effect in decode_snapshot(hot.body).effects if effect.marked}
    stored = parts.store.flights(list(keys))
    for each in keys:
        flight = stored.get(each)
        if flight is None:
            given[f"flight:{each}"] = parts.marks.pending.get(each)
        else:
            given[f"flight:{each}"] = flight.dispatch if flight.dispatcher else None


def _give_blobs(parts: Parts, hot: Hot, digest: str, given: dict[str, Any]) -> None:
    wanted = {digest: None}
    if hot.body is not None:
        wanted |= dict.fromkeys(decode_snapshot(hot.body).blobs)
    found = parts.store.blobs(hot.id, list(wanted))
    if digest not in found:
        raise InvariantViolation(f"the store has lost blob {digest} of instance {hot.id}")
    for each, body in found.items():
        given[f"blob:{each}"] = body


def place_of(parts: Parts, hot: Hot) -> tuple[str, str]:
    """Tenant and namespace of an instance."""
    if hot.birth is not None:
        return hot.birth.tenant, hot.birth.namespace
    if hot.body is not None:
        snapshot = decode_snapshot(hot.body)
        return snapshot.tenant, snapshot.namespace
    row = parts.store.instance(hot.id)
    if row is None:
        raise InvariantViolation(f"instance {hot.id} was loaded and has no row")
    return row.tenant, row.namespace
