"""A debugging session over a recording: look at the next row, step over it, step back.

Everything shown is computed by running the recorded rows again; nothing is called and nothing is
written.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from detent.kernel.observe import observe
from detent.kernel.quarantined import is_quarantine
from detent.kernel.recording import (
    Body,
    Recording,
    Row,
    body_of,
    facts_of,
    inputs_of,
    program_of,
)
from detent.kernel.replay import MissingFact, Player, definition_of
from detent.kernel.run import NeedFact, Run
from detent.kernel.spill import unpack
from detent.model import limits
from detent.model.decision import Need
from detent.model.errors import RequestError
from detent.model.snapshot import Snapshot, decode_snapshot

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Context(Struct, frozen=True, kw_only=True):
    """What a step sees: nothing in it changes while the step runs."""

    seq: int
    tick: int
    node: str
    state: str
    data: Any = None
    config: Any = None
    outputs: dict[str, Any]
    kv: dict[str, Any]
    runtime: dict[str, Any]
    events: dict[str, Any]


class Peek(Struct, frozen=True, kw_only=True):
    """The next row: what comes in, which node runs first and what it sees, and what follows."""

    seq: int
    tick: int
    inputs: tuple[Any, ...]
    facts: dict[str, Any]
    node: str
    context: Context | None
    entries: tuple[Any, ...]


class Debugger:
    """One session; `position` is how many rows have been run."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._player = Player(recording)
        self._history: list[bytes | None] = [None]

    @property
    def position(self) -> int:
        """How many rows have been run."""
        return len(self._history) - 1

    def peek(self) -> Peek | None:
        """What the next row brings, without running it; None at the end."""
        if self.position >= len(self._recording.rows):
            return None
        row = self._recording.rows[self.position]
        body = body_of(row)
        contexts = [] if is_quarantine(body) else self._contexts(row, body, "", 1)
        return Peek(
            seq=row.seq,
            tick=row.tick,
            inputs=tuple(_decode(text) for text in inputs_of(body, self._recording.blobs)),
            facts=body.facts,
            node=contexts[0].node if contexts else "",
            context=contexts[0] if contexts else None,
            entries=tuple(body.entries),
        )

    def step(self) -> Context | None:
        """Run the next row and show what it leaves; None at the end."""
        if self.position >= len(self._recording.rows):
            return None
        played = self._player.play(self._recording.rows[self.position])
        self._history.append(played.decision.snapshot)
        return self.context()

    def back(self) -> Context | None:
        """Undo the last row and show what stood before it; None before the first."""
        if self.position:
            self._history.pop()
            self._player.snapshot = self._history[-1]
        return self.context()

    def context(self) -> Context | None:
        """The context as it stands now; None before the first row."""
        if not self.position:
            return None
        row = self._recording.rows[self.position - 1]
        return _context(self._whole(self._history[-1]), row, "")

    def context_at(self, node: str, visit: int = -1) -> Context:
        """What a node saw when it was entered, in the rows run so far; the last time by default."""
        player = Player(self._recording)
        found: list[Context] = []
        for row in self._recording.rows[: self.position]:
            body = body_of(row)
            if any(entry[0].endswith(".entered") and entry[1] == node for entry in body.entries):
                found += self._contexts(row, body, node, limits.MOVES_PER_TURN, player)
            player.play(row)
        try:
            return found[visit]
        except IndexError:
            raise RequestError(
                "request.invalid",
                f"{node!r} was entered {len(found)} times so far; there is no visit {visit}",
                node=node,
            ) from None

    def _contexts(
        self, row: Row, body: Body, node: str, most: int, player: Player | None = None
    ) -> list[Context]:
        """The contexts in which nodes are entered by a row: of one node, or of any step."""
        player = player or self._player
        inputs = inputs_of(body, self._recording.blobs)
        program = program_of(self._recording.programs, definition_of(player.snapshot, inputs))
        facts = facts_of(body, self._recording.timing)
        found: list[Context] = []

        def seen(run: Run, entry: Any) -> None:
            wanted = entry[1] == node if node else entry[0] == "step.entered"
            if wanted and entry[0].endswith(".entered") and len(found) < most:
                found.append(_context(run.snapshot, row, entry[1], run.runtime()))

        while True:
            found.clear()
            try:
                at = (row.tick, limits.MOVES_PER_TURN)
                observe(program, player.snapshot, inputs, at, facts, seen=seen)
            except NeedFact as asked:
                facts.given[f"{asked.need.kind}:{asked.need.name}"] = self._tell(player, asked.need)
            else:
                return found

    def _tell(self, player: Player, need: Need) -> Any:
        if need.kind == "blob":
            return player.blob(need.name)
        if need.kind == "program":
            return program_of(self._recording.programs, need.name)
        raise MissingFact(need)

    def _whole(self, body: bytes | None) -> Snapshot:
        snapshot = decode_snapshot(body or b"{}")
        if snapshot.blobs:
            blobs = {digest: self._player.blob(digest) for digest in snapshot.blobs}
            unpack(snapshot, blobs)
        return snapshot


def context_at(recording: Recording, node: str, visit: int = -1) -> Context:
    """What a node saw when it was entered, exactly; the last time by default."""
    session = Debugger(recording)
    while session.step() is not None:
        pass
    return session.context_at(node, visit)


def _context(
    snapshot: Snapshot, row: Row, node: str, runtime: dict[str, Any] | None = None
) -> Context:
    """A copy: the snapshot it is taken from goes on changing."""
    parts = (snapshot.data, snapshot.config, snapshot.outputs, snapshot.kv, snapshot.events)
    data, config, outputs, kv, events = _decode(_encode(parts))
    return Context(
        seq=row.seq,
        tick=row.tick,
        node=node,
        state=snapshot.state,
        data=data,
        config=config,
        outputs=outputs,
        kv=kv,
        events=events,
        runtime=dict(snapshot.runtime) if runtime is None else runtime,
    )
