"""Replay: run the recorded rows again and compare every byte; or name the first difference.

The kernel is a pure function, so the same program, inputs, tick and facts must leave the same
journal and the same snapshot. Where they do not, the difference is told entry by entry, field by
field, with its likely cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from detent.kernel.chain import snapshot_digest_of
from detent.kernel.quarantined import is_quarantine, stand_by
from detent.kernel.recording import (
    Body,
    Recording,
    Row,
    blob_body,
    body_of,
    facts_of,
    inputs_of,
    program_of,
    read_body,
)
from detent.kernel.run import Facts
from detent.kernel.step import step
from detent.model.decision import Decision, Need
from detent.model.errors import DetentError
from detent.model.inputs import Forked, Started, decode_input
from detent.model.snapshot import decode_snapshot

_RELEASE = (
    "another release of the engine decided this, or the definition stored now is not the one it ran"
)
_CAUSES = {
    "facts": "the kernel asks for other facts than it was told: " + _RELEASE,
    "entries": "the decision differs: " + _RELEASE,
    "snapshot": "all entries agree, the snapshot does not: another release encodes it differently",
    "error": "the kernel cannot run these inputs any more: " + _RELEASE,
    "inputs": "the inputs are not written as they were taken: the row was not made by a step",
    "seq": "a row is missing before this one",
}


CALENDAR = "calendar:"  # facts that the kernel computes itself, by the zone data of the day


class Difference(Struct, frozen=True, kw_only=True):
    """The first thing that is not the same, with both sides and the likely cause."""

    seq: int
    entry: int | None
    field: str
    expected: Any
    actual: Any
    cause: str


class Replay(Struct, frozen=True, kw_only=True):
    """Whether the rows run again as recorded."""

    identical: bool
    rows: int
    first_difference: Difference | None = None


class FactChange(Struct, frozen=True, kw_only=True):
    """A fact that would be another one today."""

    seq: int
    fact: str
    recorded: Any
    now: Any


class MissingFact(Exception):
    """The kernel asked for something that was not recorded."""

    def __init__(self, need: Need) -> None:
        super().__init__(need)
        self.need = need


class Played(NamedTuple):
    """One row, run again."""

    row: Row
    body: Body
    before: bytes | None
    decision: Decision


def replay(recording: Recording) -> Replay:
    """Run every row again and compare."""
    done = 0
    player = Player(recording)
    for row in recording.rows:
        difference = _replay_row(player, row)
        if difference is not None:
            return Replay(identical=False, rows=done, first_difference=difference)
        done += 1
    return Replay(identical=True, rows=done)


class Player:
    """Runs recorded rows one after the other; `snapshot` is what the last one left."""

    __slots__ = ("blobs", "recording", "snapshot")

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.snapshot: bytes | None = None
        self.blobs: dict[str, bytes] = {}  # made by the rows played so far

    def blob(self, digest: str) -> bytes:
        """A blob made on the way, or a stored one."""
        made = self.blobs.get(digest)
        return made if made is not None else blob_body(self.recording.blobs, digest)

    def play(self, row: Row) -> Played:
        """Run one row from where the last one left off."""
        body = body_of(row)
        before = self.snapshot
        inputs = inputs_of(body, self.recording.blobs)
        if is_quarantine(body):
            decision = stand_by(before, body, inputs, row)
        else:
            facts = facts_of(body, self.recording.timing)
            decision = self.decide(before, inputs, row.tick, facts)
        self.snapshot = decision.snapshot
        self.blobs.update(decision.blobs)
        return Played(row, body, before, decision)

    def dated(self, row: Row) -> dict[str, Any]:
        """What the calendar says of a row today, by fact; then the row is played as it was."""
        body, before = body_of(row), self.snapshot
        said: dict[str, Any] = {}
        if _is_dated(row):
            facts = facts_of(body, self.recording.timing)
            facts.given = {k: v for k, v in facts.given.items() if not k.startswith(CALENDAR)}
            inputs = inputs_of(body, self.recording.blobs)
            today = read_body(self.decide(before, inputs, row.tick, facts).journal).facts
            said = {fact: today.get(fact) for fact in body.facts if fact.startswith(CALENDAR)}
        self.play(row)
        return said

    def decide(
        self, before: bytes | None, inputs: list[bytes], tick: int, facts: Facts
    ) -> Decision:
        """One step with its recorded facts; blobs and programs are looked up as it asks."""
        program = program_of(self.recording.programs, definition_of(before, inputs))
        while True:
            decision = step(program, before, inputs, tick, facts)
            if not isinstance(decision, list):
                return decision
            for need in decision:
                facts.given[f"{need.kind}:{need.name}"] = self._resolve(need)

    def _resolve(self, need: Need) -> Any:
        if need.kind == "blob":
            return self.blob(need.name)
        if need.kind == "program":
            return program_of(self.recording.programs, need.name)
        raise MissingFact(need)


def played(recording: Recording, last: int | None = None) -> Iterator[Played]:
    """The rows up to a seq, run again one by one."""
    player = Player(recording)
    for row in recording.rows:
        if last is not None and row.seq > last:
            return
        yield player.play(row)


def definition_of(before: bytes | None, inputs: list[bytes]) -> str:
    """The hash of the definition that a step runs."""
    if before is not None:
        return decode_snapshot(before).definition
    first = decode_input(inputs[0]) if inputs else None
    if isinstance(first, Started):
        return first.definition
    return decode_snapshot(first.snapshot).definition if isinstance(first, Forked) else ""


def recompute(recording: Recording, resolve: Callable[[str, str, Any], Any]) -> list[FactChange]:
    """The recorded facts that would be different now; `resolve(kind, name, extra)` tells today's.

    A resolver that cannot tell returns the recorded kind's `UNKNOWN`. What the calendar said is
    worked out again by running the row without it.
    """
    changes: list[FactChange] = []
    player = Player(recording) if any(map(_is_dated, recording.rows)) else None
    for row in recording.rows:
        dated = {} if player is None else player.dated(row)
        for fact, recorded in body_of(row).facts.items():
            now = dated[fact] if fact in dated else resolve(*split_fact(fact))
            if now is not UNKNOWN and msgspec.to_builtins(now) != recorded:
                changes.append(
                    FactChange(
                        seq=row.seq, fact=fact, recorded=recorded, now=msgspec.to_builtins(now)
                    )
                )
    return changes


def _is_dated(row: Row) -> bool:
    return any(fact.startswith(CALENDAR) for fact in body_of(row).facts)


class _Unknown:
    __slots__ = ()


UNKNOWN = _Unknown()


def split_fact(fact: str) -> tuple[str, str, Any]:
    """A fact's key as kind, name, extra; the version of a child is its last part."""
    kind, _, name = fact.partition(":")
    if kind != "child":
        return kind, name, None
    name, _, version = name.rpartition(":")
    return kind, name, int(version) if version else None


def _replay_row(player: Player, row: Row) -> Difference | None:
    try:
        played_row = player.play(row)
    except MissingFact as missing:
        asked = f"{missing.need.kind}:{missing.need.name}"
        return _difference(row, None, f"facts.{asked}", "not asked for", "asked for")
    except DetentError as error:
        if error.code in ("replay.erased", "definition.unknown", "store.corrupt"):
            raise
        return _difference(row, None, "error", "a decision", str(error))
    except Exception as error:  # noqa: BLE001 - whatever a changed kernel raises is the difference
        return _difference(row, None, "error", "a decision", f"{type(error).__name__}: {error}")
    return compare(row, played_row.decision)


def compare(row: Row, decision: Decision) -> Difference | None:
    """The first difference between a recorded row and a decision."""
    if decision.journal != row.body:
        return _compare_bodies(row, decision)
    if decision.version != row.seq:
        return _difference(row, None, "seq", row.seq, decision.version)
    digest = snapshot_digest_of(decision.snapshot)
    if digest != row.snapshot_digest:
        return _difference(row, None, "snapshot", row.snapshot_digest.hex(), digest.hex())
    return None


def _compare_bodies(row: Row, decision: Decision) -> Difference:
    recorded = body_of(row)
    if not decision.journal:
        return _difference(row, 0, "entries", recorded.entries, "nothing happens")
    actual = read_body(decision.journal)
    for index, (was, becomes) in enumerate(zip(recorded.entries, actual.entries, strict=False)):
        if was != becomes:
            field, old, new = first_difference(_named(was), _named(becomes))
            return _difference(row, index, f"entries.{field}", old, new)
    if len(recorded.entries) != len(actual.entries):
        index = min(len(recorded.entries), len(actual.entries))
        old = recorded.entries[index] if index < len(recorded.entries) else "no further entry"
        new = actual.entries[index] if index < len(actual.entries) else "no further entry"
        return _difference(row, index, "entries", old, new)
    if recorded.facts != actual.facts:
        field, old, new = first_difference(recorded.facts, actual.facts)
        return _difference(row, None, f"facts.{field}", old, new)
    return _difference(row, None, "inputs", (row.body or b"").decode(), decision.journal.decode())


def _named(entry: list[Any]) -> dict[str, Any]:
    return dict(zip(("action", "node", "detail"), entry, strict=False))


def first_difference(old: Any, new: Any, path: str = "") -> tuple[str, Any, Any]:
    """The path of the first member that differs, and both sides."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            here = f"{path}.{name}" if path else name
            if name not in old or name not in new:
                return here, old.get(name, "absent"), new.get(name, "absent")
            if old[name] != new[name]:
                return first_difference(old[name], new[name], here)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, becomes) in enumerate(zip(old, new, strict=True)):
            if was != becomes:
                return first_difference(was, becomes, f"{path}[{index}]")
    return path, old, new


def _difference(row: Row, entry: int | None, field: str, expected: Any, actual: Any) -> Difference:
    cause = _CAUSES.get(field.partition(".")[0], _RELEASE)
    return Difference(
        seq=row.seq, entry=entry, field=field, expected=expected, actual=actual, cause=cause
    )
