"""Views of the journal: audit entries, outputs and the timeline of an instance.

All of them read the same rows in order. An erased row gives one entry that says so, since what it
held is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from detent.kernel.intercept import step_of
from detent.kernel.places import Places, own_path
from detent.kernel.program import Program
from detent.kernel.recording import Row, blob_body, blob_of, detail_of, read_body
from detent.model.definition import ForEach, Loop

ERASED = "row.erased"
ERROR_REF = "__error__"
_STEP_ENDS = ("step.executed", "step.skipped", "step.cancelled")
_OF_STEPS = ("step.executed", "human.answered", "deadline.breached", "error.occurred")
_UNSEEN: Any = object()
_decode = msgspec.json.Decoder().decode


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One journal entry; `input` is the one it refers to, where it refers to one."""

    id: str  # "<seq>.<index>"
    seq: int
    tick: int
    action: str
    node: str
    detail: Any = None
    input: Any = None


class OutputRow(Struct, frozen=True, kw_only=True):
    """One output: of a step, of each iteration of a step, of a composite, or of a flat failure."""

    id: str
    block: str
    node: str
    output: Any
    ref: str | None = None
    attempt: int = 1
    tick: int = 0


class Transition(Struct, frozen=True, kw_only=True):
    """One change of the instance's state."""

    id: str
    tick: int
    source: str
    target: str
    trigger: str


class Timeline(Struct, frozen=True, kw_only=True):
    """What an instance went through, and what it made on the way."""

    transitions: tuple[Transition, ...]
    outputs: tuple[OutputRow, ...]


class Noted(NamedTuple):
    """An entry with the inputs of its row."""

    id: str
    row: Row
    action: str
    node: str
    detail: Any
    inputs: Inputs


def noted(rows: Iterable[Row], blobs: Mapping[str, bytes]) -> Iterator[Noted]:
    """Every entry in order; inputs are plain data."""
    for row in rows:
        if row.body is None:
            yield Noted(f"{row.seq}.0", row, ERASED, "", None, Inputs([], blobs))
            continue
        body = read_body(row.body)
        inputs = Inputs(body.inputs, blobs)
        for index, entry in enumerate(body.entries):
            detail = detail_of(entry)
            yield Noted(f"{row.seq}.{index}", row, entry[0], entry[1], detail, inputs)


class Inputs(list[Any]):
    """The inputs of a row as plain data, each opened when it is first asked for."""

    def __init__(self, raws: list[Raw], blobs: Mapping[str, bytes]) -> None:
        super().__init__(raws)
        self._blobs = blobs

    def at(self, index: Any) -> Any:
        """One input, or None where there is none of that number."""
        if not isinstance(index, int) or not 0 <= index < len(self):
            return None
        told = self[index]
        if isinstance(told, Raw):
            digest = blob_of(told)
            told = self[index] = _decode(blob_body(self._blobs, digest) if digest else told)
        return told


def audit(
    rows: Iterable[Row], blobs: Mapping[str, bytes], *, action: str = "", node: str = ""
) -> Iterator[AuditEntry]:
    """The entries, all or those of one action (or of `run.`, with its dot) and one node."""
    for entry in noted(rows, blobs):
        group = action.endswith(".") and entry.action.startswith(action)
        if action and entry.action != action and not group:
            continue
        if node and own_path(entry.node) != node:
            continue
        told = None
        if isinstance(entry.detail, dict) and "in" in entry.detail:
            told = entry.inputs.at(entry.detail["in"])
        yield AuditEntry(
            id=entry.id,
            seq=entry.row.seq,
            tick=entry.row.tick,
            action=entry.action,
            node=entry.node,
            detail=entry.detail,
            input=told,
        )


def transitions(rows: Iterable[Row], blobs: Mapping[str, bytes]) -> Iterator[Transition]:
    """Every change of state."""
    for entry in noted(rows, blobs):
        detail = entry.detail
        if entry.action.startswith("run.") and isinstance(detail, dict) and "to" in detail:
            yield Transition(
                id=entry.id,
                tick=entry.row.tick,
                source=detail.get("from", ""),
                target=detail["to"],
                trigger=str(detail.get("trigger", "")),
            )


def timeline(rows: Iterable[Row], program: Program, blobs: Mapping[str, bytes]) -> Timeline:
    """Changes of state and outputs."""
    kept = list(rows)
    return Timeline(
        transitions=tuple(transitions(kept, blobs)), outputs=tuple(outputs(kept, program, blobs))
    )


def outputs(rows: Iterable[Row], program: Program, blobs: Mapping[str, bytes]) -> list[OutputRow]:
    """All outputs in the order of their creation.

    A retry of a flat instance takes back the row of the failure; a loop that names how many
    iterations it retains shows the newest ones.
    """
    made: list[OutputRow] = []
    places = Places(program)
    reader = OutputReader(flat=program.flat)
    for entry in noted(rows, blobs):
        if entry.action == "run.retried":
            made = [row for row in made if row.ref != ERROR_REF]
        elif entry.action == "blocks.reset":
            made = _not_wiped(made, frozenset(entry.detail["wiped"]))
        elif entry.action == "run.forked":
            made += _copied(entry)
        row = reader.read(entry, places)
        if row is not None:
            made.append(row)
    return _retained(made, places)


Backwards = Callable[[], Iterator[Noted]]  # what came before the first entry shown, newest first


def _copied(entry: Noted) -> list[OutputRow]:
    """The outputs that a fork has of its origin, the latest of each block."""
    told = entry.inputs.at(0)
    copied = told["snapshot"].get("outputs", {}) if isinstance(told, dict) else {}
    return [
        OutputRow(
            id=f"{entry.id}.{index}",
            block=block,
            node=block,
            output=output,
            ref=None,
            attempt=1,
            tick=entry.row.tick,
        )
        for index, (block, output) in enumerate(copied.items())
    ]


class OutputReader:
    """Outputs one by one; it is shown the entries of an instance, in order.

    One that is not shown the first of them is given a way to look back, and does so for a step that
    was under way then: which attempt it was, and what its call brought, stand there.
    """

    __slots__ = ("_applied", "_attempts", "back", "flat")

    def __init__(self, *, flat: bool) -> None:
        self.flat = flat
        self.back: Backwards | None = None
        self._applied: Any = _UNSEEN
        self._attempts: dict[str, int] = {}  # of the steps under way

    def read(self, entry: Noted, places: Places) -> OutputRow | None:
        """The output that an entry tells of, if it tells of one."""
        detail = entry.detail if isinstance(entry.detail, dict) else {}
        if entry.action == "effect.applied":
            self._applied = _applied(entry, detail)
        begun = _attempt(entry, detail)
        if begun is not None:
            self._attempts[own_path(entry.node)] = begun
        if entry.action == "step.executed" and "output" not in detail:
            detail = {"output": self._brought()}
        value = _output(entry, detail, flat=self.flat)
        made = None if value is None else self._row(entry, value, places)
        if entry.action in _STEP_ENDS or detail.get("final"):
            self._attempts.pop(entry.node, None)  # a long loop must not leave one for each round
        return made

    def _row(self, entry: Noted, value: tuple[Any, str | None], places: Places) -> OutputRow:
        attempt = self._attempts.get(entry.node)
        if attempt is None and entry.action in _OF_STEPS:
            attempt = self._attempts[entry.node] = self._begun_before(entry.node)
        output, ref = value
        return OutputRow(
            id=entry.id,
            block=places.block_of(entry.node),
            node=entry.node,
            output=output,
            ref=ref,
            attempt=attempt or 1,
            tick=entry.row.tick,
        )

    def _brought(self) -> Any:
        """What the last call brought."""
        if self._applied is _UNSEEN:
            earlier = self.back() if self.back is not None else iter(())
            applied = (each for each in earlier if each.action == "effect.applied")
            last = next(applied, None)
            self._applied = None if last is None else _applied(last, last.detail)
        return self._applied

    def _begun_before(self, node: str) -> int:
        for entry in self.back() if self.back is not None else ():
            if own_path(entry.node) == node:
                begun = _attempt(entry, entry.detail if isinstance(entry.detail, dict) else {})
                if begun is not None:
                    return begun
        return 1


def _attempt(entry: Noted, detail: dict[str, Any]) -> int | None:
    """The attempt that an entry begins at its step."""
    if entry.action == "step.entered":
        return 1
    if entry.action in ("effect.planned", "error.retried"):
        return detail.get("attempt")
    return None


def _output(entry: Noted, detail: dict[str, Any], *, flat: bool) -> tuple[Any, str | None] | None:
    """The output an entry tells of, and what kind of row it is; None when it tells of none."""
    match entry.action:
        case "step.executed":
            return detail["output"], None
        case "step.evaluated" | "wait.completed" | "human.answered" | "interceptor.recorded":
            return (detail["output"], None) if "output" in detail else None
        case "child.completed":
            return _child_outputs(entry, detail["child"]), None
        case "deadline.breached":
            return detail["output"], ERROR_REF
        case "error.occurred":
            if not flat or not detail.get("final") or "/" in entry.node:
                return None
            if detail.get("code") == "step.deadline":
                return None  # the breach has left its row
            message = detail.get("message", "")
            return {"__error__": True, "retryable": False, "message": message}, ERROR_REF
        case _:
            return None


def _not_wiped(made: list[OutputRow], wiped: frozenset[str]) -> list[OutputRow]:
    return [
        row
        for row in made
        if row.ref != ERROR_REF and row.block not in wiped and step_of(row.block) not in wiped
    ]


def _applied(entry: Noted, detail: dict[str, Any]) -> Any:
    """What an applied effect brought: by its input, by a person, or with a fork."""
    if "in" not in detail:
        return detail.get("output")
    told = entry.inputs.at(detail["in"])
    if not isinstance(told, dict):
        return None
    if told.get("t") == "forked":
        for outcome in told.get("outcomes", ()):
            if outcome.get("key") == detail.get("key"):
                return outcome.get("result")
    return told.get("result")


def _child_outputs(entry: Noted, child: str) -> Any:
    for index in range(len(entry.inputs)):
        told = entry.inputs.at(index)
        for each in [told, *(told.get("outcomes", ()) if isinstance(told, dict) else ())]:
            if isinstance(each, dict) and each.get("child") == child:
                return each.get("outputs", [])
    return []


def _retained(made: list[OutputRow], places: Places) -> list[OutputRow]:
    """Leave out iterations older than those that their loop retains."""
    last: dict[str, int] = {}
    rounds = []
    for row in made:
        place = places.find(row.node)
        limited = [
            (path, n)
            for path, n in (place.rounds if place is not None else ())
            if retained_by(places, path) is not None
        ]
        rounds.append(limited)
        for path, n in limited:
            last[path] = max(last.get(path, 0), n)
    return [
        row
        for row, limited in zip(made, rounds, strict=True)
        if all(n > last[path] - (retained_by(places, path) or 0) for path, n in limited)
    ]


def retained_by(places: Places, path: str) -> int | None:
    """How many iterations a loop retains; None when it does not say."""
    place = places.find(path)
    block = place.node.block if place is not None else None
    return block.retain_iterations if isinstance(block, Loop | ForEach) else None
