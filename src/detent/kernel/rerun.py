"""Running a record again with changes: the engine of `whatif`.

Turns keep their recorded ticks as long as what is due is due as then; otherwise what is due earlier
runs when it is due. Recorded outcomes are held until their effect is planned in this run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from detent.kernel.gate.asks import GRANTED
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.recording import (
    blob_body,
    body_of,
    detail_of,
    facts_of,
    inputs_of,
    program_of,
    read_body,
)
from detent.kernel.replay import Player, definition_of
from detent.kernel.run import Facts
from detent.kernel.spill import unpack
from detent.kernel.step import step
from detent.kernel.survey import waits_of
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.inputs import (
    ChildEnded,
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
    EventsMatched,
    Forked,
    Input,
    Started,
    decode_input,
    encode_input,
)
from detent.model.snapshot import OpenEffect, Snapshot, decode_snapshot, encode_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.kernel.recording import Body, Recording
    from detent.model.decision import Decision, Need

_FOLLOWED = (
    "effect.applied",
    "effect.failed",
    "effect.escalated",
    "effect.withdrawn",
    "error.retried",
)
Outcome = EffectApplied | EffectFailed | EffectDoubted | EffectReconciled


class InputChange(Struct, frozen=True, kw_only=True):
    """One change of the inputs of a row: at an index, replace, insert before, or drop."""

    seq: int
    index: int
    verb: Literal["replace", "insert", "drop"]
    body: Raw = Raw(b"null")


class Changes(Struct, frozen=True, kw_only=True):
    """What is to be different: inputs, the definition, or both."""

    inputs: tuple[InputChange, ...] = ()
    definition: str = ""


class Made(NamedTuple):
    """An entry of the other run."""

    tick: int
    action: str
    node: str
    detail: Any


class _Stop(Exception):
    """Ends the run with a reason."""


class Rerun:
    """One run of the record with changes; `made` is what it notes on the way."""

    def __init__(self, recording: Recording, changes: Changes) -> None:
        self.player = Player(recording)
        self.recording = recording
        self.changes = changes
        self.bodies = [body_of(row) for row in recording.rows]
        self.snapshot: bytes | None = None
        self.due: int | None = None
        self.tick = 0
        self.steps = 0
        self.made: list[Made] = []
        self.held: list[Outcome] = []  # outcomes whose effect is not open yet
        self.planned: dict[str, None] = {}  # keys of the effects this run has planned
        self.all_facts = self._all_facts()
        self.facts = self.all_facts
        self.places: dict[str, tuple[str, int]] = {}  # recorded key -> (node, attempt)
        self.known: dict[str, int] = {}  # recorded key -> dispatch number of an outcome
        self.followed: dict[str, None] = {}  # recorded keys of which the record tells what followed
        for body in self.bodies:
            self._learn(body)
        self.applied = 0

    def run(self) -> str:
        """Run to the end of the record and, where it differs by then, as far as it goes."""
        base = Player(self.recording)
        base_due: int | None = None
        try:
            for row, body in zip(self.recording.rows, self.bodies, strict=True):
                inputs = self._inputs(row.seq, body)
                self.facts = self._facts_at(body)
                self._catch_up(row.tick, base_due)
                self._take(inputs, row.tick)
                base_due = base.play(row).decision.due
            self._check_changes()
            same = [made[1:] for made in self.made] == [
                (e[0], e[1], detail_of(e)) for body in self.bodies for e in body.entries
            ]
            return self._run_on(same=same)
        except _Stop as stop:
            return str(stop)

    def standing(self) -> Snapshot:
        """The snapshot as it stands, large values put back."""
        if self.snapshot is None:
            return Snapshot(id="")
        snapshot = decode_snapshot(self.snapshot)
        if snapshot.blobs:
            unpack(snapshot, {digest: self.player.blob(digest) for digest in snapshot.blobs})
        return snapshot

    # the record ----------------------------------------------------------------------------------

    def _all_facts(self) -> Facts:
        """Everything that was ever told; a row's own facts come on top."""
        timing = self.recording.timing
        told = Facts(
            handlers={}, given={}, epoch_ms=timing.epoch_ms, resolution_ms=timing.resolution_ms
        )
        for body in self.bodies:
            each = facts_of(body, timing)
            told.handlers = {**told.handlers, **each.handlers}
            told.given.update(each.given)
        return told

    def _facts_at(self, body: Body) -> Facts:
        """What a row was told, and once something is different, all that is known beside it."""
        own = facts_of(body, self.recording.timing)
        if self.applied or self.changes.definition:
            own.handlers = {**self.all_facts.handlers, **own.handlers}
            own.given = {**self.all_facts.given, **own.given}
        return own

    def _learn(self, body: Body) -> None:
        for entry in body.entries:
            detail = detail_of(entry)
            if entry[0] == "effect.planned":
                self.places[detail["key"]] = (entry[1], detail["attempt"])
            elif entry[0] in _FOLLOWED and isinstance(detail, dict) and "key" in detail:
                self.followed[detail["key"]] = None
        for text in inputs_of(body, self.recording.blobs):
            told = _read(text)
            if isinstance(told, Outcome):
                self.known[told.key] = told.dispatch

    def _inputs(self, seq: int, body: Body) -> list[bytes]:
        """A row's inputs with the changes made."""
        inputs = inputs_of(body, self.recording.blobs)
        mine = [each for each in self.changes.inputs if each.seq == seq]
        for each in sorted(mine, key=lambda change: -change.index):
            most = len(inputs) + (each.verb == "insert")
            if not 0 <= each.index < most:
                raise _invalid(
                    f"row {seq} has {len(inputs)} inputs; there is no number {each.index}"
                )
            self.applied += 1
            if each.verb == "drop":
                del inputs[each.index]
                continue
            decode_input(each.body)
            at = slice(each.index, each.index + (each.verb == "replace"))
            inputs[at] = [bytes(each.body)]
        if self.snapshot is None and self.changes.definition and inputs:
            inputs[0] = _redefined(inputs[0], self.changes.definition)
        return inputs

    def _check_changes(self) -> None:
        if self.applied < len(self.changes.inputs):
            raise _invalid(f"the record has rows 1 to {len(self.bodies)}; a change names another")

    # running -------------------------------------------------------------------------------------

    def _take(self, inputs: Sequence[bytes], tick: int) -> None:
        fed: list[bytes] = []
        for text in inputs:
            told = _read(text)
            if isinstance(told, Outcome):
                adapted = told if told.key in self.planned else self._adapt(told)
                if adapted is None:
                    self.held.append(told)
                    continue
                text = text if adapted is told else encode_input(adapted)  # noqa: PLW2901
            elif isinstance(told, ChildEnded):
                text = encode_input(self._for_child(told))  # noqa: PLW2901
            elif isinstance(told, EventsMatched):
                text = encode_input(self._for_wait(told))  # noqa: PLW2901
            fed.append(text)
        if fed or self.snapshot is not None:
            self._step(fed, tick)
        self._drain(tick)

    def _drain(self, tick: int) -> None:
        """Feed outcomes that came before their effect was planned in this run."""
        while self._feed_one(tick):
            pass

    def _feed_one(self, tick: int) -> bool:
        for index, told in enumerate(self.held):
            adapted = self._adapt(told)
            if adapted is not None:
                del self.held[index]
                self._step([encode_input(adapted)], tick)
                return True
        return False

    def _adapt(self, told: Outcome) -> Outcome | None:
        """The outcome for the open effect it belongs to: by key, else by node and attempt."""
        place = self.places.get(told.key)
        match = None
        for effect in self._open():
            if effect.key == told.key:
                return told
            if (effect.node, effect.attempt) == place and effect.key not in self.known:
                match = replace(told, key=effect.key)
        return match

    def _for_child(self, told: ChildEnded) -> ChildEnded:
        root = decode_snapshot(self.snapshot).root if self.snapshot is not None else None
        for wait in waits_of(root):
            if wait.kind == "child" and wait.name == told.child:
                return replace(told, token=wait.token)
        return told

    def _for_wait(self, told: EventsMatched) -> EventsMatched:
        """Events for the wait they were told to, else for the first that stands in this run."""
        root = decode_snapshot(self.snapshot).root if self.snapshot is not None else None
        waits = [wait for wait in waits_of(root) if wait.kind == "event"]
        if not waits or any(wait.name == told.wait for wait in waits):
            return told
        return replace(told, token=waits[0].token, wait=waits[0].name)

    def _open(self) -> list[OpenEffect]:
        return decode_snapshot(self.snapshot).effects if self.snapshot is not None else []

    def _catch_up(self, tick: int, base_due: int | None) -> None:
        """Run what is due before a recorded turn, unless it was due in the record just so."""
        while self.due is not None and self.due < tick and self.due != base_due:
            before = self.due
            self._step([], before)
            self._drain(before)

    def _run_on(self, *, same: bool) -> str:
        """Go on after the last recorded turn as far as time alone leads."""
        while self.snapshot is not None:
            snapshot = decode_snapshot(self.snapshot)
            if snapshot.state in TERMINAL:
                return ""
            for effect in snapshot.effects:
                raise _Stop(_no_outcome(effect))
            if same:
                return "the record ends here"
            self.facts = self.all_facts
            if self.due is None:
                return f"the instance is {snapshot.state}, and nothing in the record moves it"
            self._step([], max(self.due, self.tick))
            self._drain(self.tick)
        return "the record is empty"

    def _step(self, inputs: list[bytes], tick: int) -> None:
        self.steps += 1
        if self.steps > limits.WHAT_IF_STEPS:
            raise _Stop(f"more than {limits.WHAT_IF_STEPS} turns; the rest is left out")
        for effect in self._open():
            late = effect.deadline is not None and effect.deadline <= tick
            if late and not self._answered(effect, inputs):
                raise _Stop(_no_outcome(effect))
        decision = self._decide(inputs, tick)
        self.player.blobs.update(decision.blobs)
        self.snapshot, self.due, self.tick = decision.snapshot, decision.due, tick
        if decision.journal:
            for entry in read_body(decision.journal).entries:
                detail = detail_of(entry)
                if entry[0] == "effect.planned":
                    self.planned[detail["key"]] = None
                self.made.append(Made(tick, entry[0], entry[1], detail))

    def _answered(self, effect: OpenEffect, inputs: list[bytes]) -> bool:
        """Whether the record tells anything of how a call ended."""
        if effect.key in self.followed or inputs:
            return True
        place = (effect.node, effect.attempt)
        return any(self.places.get(key) == place for key in self.followed)

    def _decide(self, inputs: list[bytes], tick: int) -> Decision:
        facts = self.facts
        digest = definition_of(self.snapshot, inputs)
        program = program_of(self.recording.programs, digest)
        while True:
            decision = step(program, self.snapshot, inputs, tick, facts)
            if not isinstance(decision, list):
                return decision
            for need in decision:
                key = f"{need.kind}:{need.name}"
                key = key if need.extra is None else f"{key}:{need.extra}"
                facts.given[key] = self._resolve(need)

    def _resolve(self, need: Need) -> Any:
        match need.kind:
            case "blob":
                made = self.player.blobs.get(need.name)
                return made if made is not None else blob_body(self.recording.blobs, need.name)
            case "program":
                return program_of(self.recording.programs, need.name)
            case "flight":
                return self.known.get(need.name)
            case "system":  # nobody is started here
                return need.name
            case "gate":  # what was never asked cannot be known to be refused
                return GRANTED
            case _:
                raise _Stop(f"the record does not tell {need.kind} {need.name!r}")


def _read(text: bytes) -> Input | None:
    try:
        return decode_input(text)
    except msgspec.MsgspecError:
        return None


def _redefined(text: bytes, definition: str) -> bytes:
    told = decode_input(text)
    if isinstance(told, Started):
        return encode_input(replace(told, definition=definition))
    if isinstance(told, Forked):
        snapshot = decode_snapshot(told.snapshot)
        snapshot.definition = definition
        return encode_input(replace(told, snapshot=Raw(encode_snapshot(snapshot))))
    return text


def _no_outcome(effect: OpenEffect) -> str:
    return (
        f"no outcome is recorded for the call of {effect.handler} by {effect.node} "
        f"(attempt {effect.attempt}); what follows depends on it"
    )


def _invalid(text: str) -> RequestError:
    return RequestError("request.invalid", text)
