"""The working copy of one `step`: a decoded snapshot and everything decided so far.

Theory of operation. `step` makes a `Run`, feeds it each input and each due wait in order, and seals
it into a Decision. A run is private to one call: if a fact is missing, `NeedFact` unwinds the whole
call and the copy is thrown away, so nothing half-decided can leak. Everything the outside must do
is collected in lists here; nothing is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from detent.expression import Scope
from detent.kernel.failure import Failure
from detent.kernel.lifecycle import check_move
from detent.kernel.plan_context import context_of
from detent.kernel.program import Program
from detent.model import limits
from detent.model.decision import (
    ANYBODY,
    Doubt,
    Entry,
    EventStanding,
    HandlerSpec,
    Message,
    Need,
    Order,
    Verdict,
    WorkItem,
)
from detent.model.snapshot import Frame, OpenEffect, Snapshot, Wait

encode = msgspec.json.Encoder().encode


class Facts(Struct, kw_only=True):
    """What the kernel is told beside its arguments."""

    handlers: Mapping[str, HandlerSpec]
    given: dict[str, Any]
    epoch_ms: int = 0
    resolution_ms: int = 100
    gate: Any = None  # the tenant's gate, where this writer has it; a `kernel.gate.port.GatePort`


class NeedFact(Exception):
    """Unwinds a step that must be told something first."""

    def __init__(self, need: Need) -> None:
        super().__init__(need)
        self.need = need


class Run:
    """One step in progress."""

    __slots__ = (
        "birth",
        "bulk",
        "called_off",
        "doubts",
        "entries",
        "events",
        "facts",
        "failure",
        "goto",
        "held",
        "kept",
        "messages",
        "more",
        "moves",
        "orders",
        "program",
        "recalled",
        "released",
        "relisted",
        "settled",
        "snapshot",
        "tick",
        "used",
        "verdicts",
        "withdrawn",
        "woken",
        "woken_value",
        "woken_why",
        "work",
    )

    def __init__(self, program: Program, snapshot: Snapshot, tick: int, facts: Facts) -> None:
        self.program = program
        self.snapshot = snapshot
        self.tick = tick
        self.facts = facts
        self.bulk = 0  # bytes this step started from; small means no size can be over
        self.entries: list[Any] = []
        self.used: dict[str, Any] = {}
        self.orders: list[Order] = []
        self.withdrawn: list[str] = []
        self.recalled: list[str] = []
        self.settled: list[str] = []
        self.work: list[WorkItem] = []
        self.events: list[EventStanding] = []
        self.called_off: list[str] = []
        self.doubts: list[Doubt] = []
        self.messages: list[Message] = []
        self.verdicts: list[Verdict] = []
        self.moves = limits.MOVES_PER_TURN
        self.more = False
        self.held = snapshot.state == "paused" or in_line(snapshot)
        self.kept: dict[str, bytes] = {}  # blobs that this step made beside the snapshot's
        self.relisted = False  # the main list has changed: the walk begins anew at the root
        self.released = False  # a person resumes: the policy that paused is passed
        self.failure: Failure | None = None
        self.goto = ""
        self.woken: Frame | None = None
        self.woken_why = ""
        self.woken_value: Any = None
        self.birth: Any = None

    # journal -----------------------------------------------------------------------------------

    def note(self, action: str, node: str = "", detail: Any = None) -> None:
        """Add one journal entry."""
        self.entries.append((action, node, detail) if detail is not None else (action, node))

    def move(self, target: str, why: str, action: str = "") -> None:
        """Change the instance's state by the table and journal it."""
        source = self.snapshot.state
        if source == target:
            return
        check_move(source, target)
        self.snapshot.state = target
        detail = {"from": source, "to": target, "trigger": why}
        self.entries.append((action or f"run.{target}", "", detail))

    def set_moving(self, why: str) -> None:
        """A standing instance moves; see `slot.wake_up` for who may."""
        snapshot = self.snapshot
        if snapshot.state in ("scheduled", "waiting"):
            if snapshot.started is None:
                snapshot.started = self.tick
                sla = self.program.sla
                if sla is not None and sla.max_runtime is not None and snapshot.root is not None:
                    snapshot.root.alert = self.after(sla.max_runtime)
                self.move("running", why, "run.started")
            else:
                self.move("running", why)

    # facts ---------------------------------------------------------------------------------------

    def fact(self, kind: str, name: str, extra: Any = None) -> Any:
        """A fact by need; recorded, and unwinding the step while it is not given."""
        key = f"{kind}:{name}" if extra is None else f"{kind}:{name}:{extra}"
        given = self.facts.given
        if key not in given:
            raise NeedFact(Need(kind=kind, name=name, extra=extra))
        value = given[key]
        self.used[key] = value
        return value

    def computed(self, key: str, make: Callable[[], Any]) -> Any:
        """A fact that the kernel can compute itself: recorded, and on replay as it was then."""
        given = self.facts.given
        value = given[key] if key in given else make()
        self.used[key] = value
        return value

    def handler(self, name: str) -> HandlerSpec:
        """What is known of a handler; recorded unless it is the default."""
        spec = self.facts.handlers.get(name)
        if spec is None and ANYBODY not in self.facts.handlers:
            return HandlerSpec(name=name)
        if spec is None:
            spec = HandlerSpec(name=name, worker=True)
        if (
            spec.doubt != "repeatable"
            or spec.timeout_ms
            or spec.ctx
            or not spec.withdrawable
            or not spec.merge
            or spec.worker
        ):
            self.used[f"handler:{name}"] = HandlerSpec(
                name=name,
                doubt=spec.doubt,
                timeout_ms=spec.timeout_ms,
                withdrawable=spec.withdrawable,
                ctx=spec.ctx,
                merge=spec.merge,
                worker=spec.worker,
            )
        return spec

    # time ----------------------------------------------------------------------------------------

    def after(self, ms: int) -> int:
        """The first tick at which `ms` milliseconds have passed."""
        return self.tick + -(-ms // self.facts.resolution_ms)

    def at_ms(self, ms: int) -> int:
        """The first tick not before an instant in epoch milliseconds."""
        return max(self.tick, -(-(ms - self.facts.epoch_ms) // self.facts.resolution_ms))

    def now_ms(self) -> int:
        """Logical now in epoch milliseconds."""
        return self.facts.epoch_ms + self.tick * self.facts.resolution_ms

    def clock(self) -> dict[str, int]:
        """Logical now as a plan sees it."""
        facts = self.facts
        return {
            "tick": self.tick,
            "resolution_ms": facts.resolution_ms,
            "epoch_ms": facts.epoch_ms,
        }

    # waits ---------------------------------------------------------------------------------------

    def token(self) -> int:
        """A fresh token: no earlier one resumes anything any more."""
        self.snapshot.tokens += 1
        return self.snapshot.tokens

    def wait(self, frame: Frame, path: str, kind: str, due: int | None, name: str = "") -> None:
        """Let a frame stand until its due tick or its input."""
        frame.wait = Wait(kind=kind, token=self.token(), since=self.tick, due=due, name=name)
        detail: dict[str, Any] = {"kind": kind}
        if due is not None:
            detail["due"] = due
        if name:
            detail["for"] = name
        self.entries.append(("wait.started", path, detail))

    # context -------------------------------------------------------------------------------------

    def scope(self, roots: Mapping[str, Any] | None = None) -> Scope:
        """What expressions see: the snapshot as it is now."""
        snapshot = self.snapshot
        if self.program.is_plan:
            seen = context_of(snapshot, self.program.definition, self.clock())
            roots = seen if roots is None else {**seen, **roots}
        return Scope(
            data=snapshot.data,
            config=snapshot.config,
            outputs=snapshot.outputs,
            state=snapshot.kv,
            runtime=self.runtime(),
            audit=None,
            instance_id=snapshot.id,
            now_ms=self.now_ms(),
            draw=self.draw,
            events=snapshot.events,
            roots=roots or {},
        )

    def runtime(self) -> dict[str, Any]:
        """The engine-managed section of the context."""
        snapshot = self.snapshot
        return {
            "current_step": None,
            "attempt": 0,
            "resource_key": None,
            **snapshot.runtime,
            "instance_id": snapshot.id,
            "total_steps_executed": snapshot.steps,
            "run_id": f"{snapshot.id}:{snapshot.generation}",
            "dry_run": snapshot.dry_run,
            "dry_run_auto_approve": snapshot.auto_approve,
            "started_at": None if snapshot.started is None else self.ms_of(snapshot.started),
        }

    def ms_of(self, tick: int) -> int:
        """A tick in epoch milliseconds."""
        return self.facts.epoch_ms + tick * self.facts.resolution_ms

    def draw(self) -> int:
        """The next pseudo-random number of the instance's own seed."""
        snapshot = self.snapshot
        words = f"{snapshot.seed}\x00{snapshot.id}\x00{snapshot.draws}"
        snapshot.draws += 1
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big")

    def put_output(self, block: str, output: Any) -> None:
        """Keep the latest output of a block, last in the order of creation."""
        outputs = self.snapshot.outputs
        outputs.pop(block, None)
        outputs[block] = output

    def merge(self, values: Mapping[str, Any]) -> None:
        """Merge top-level keys into data."""
        data = self.snapshot.data
        if isinstance(data, dict):
            data.update(values)
        elif values:
            self.snapshot.data = dict(values)

    def merged_too_large(self, values: Mapping[str, Any]) -> int:
        """The size data would have with these values, when that is over the limit; else 0."""
        if self.bulk < limits.CONTEXT_BYTES:
            return 0
        data = self.snapshot.data
        size = len(encode({**data, **values} if isinstance(data, dict) else values))
        return size if size > limits.CONTEXT_BYTES else 0

    def effect(self, key: str) -> OpenEffect | None:
        """An open effect by its key."""
        for effect in self.snapshot.effects:
            if effect.key == key:
                return effect
        return None

    def fail(self, failure: Failure) -> None:
        """Remember and journal why the node now returning FAILED failed."""
        self.failure = failure
        detail = {"message": failure.message, "kind": failure.kind, "code": failure.code}
        self.note("error.occurred", failure.node, {**detail, "final": True})

    def splice(self, inputs: Sequence[bytes]) -> bytes:
        """The journal body: the inputs' own bytes, the facts used, the entries."""
        facts = b"{}" if not self.used else encode(self.used)
        return b'{"in":[%b],"facts":%b,"entries":%b}' % (
            b",".join(inputs),
            facts,
            encode(self.entries),
        )


def in_line(snapshot: Snapshot) -> bool:
    """Whether the whole instance stands: for its concurrency key, or put off by a person."""
    root = snapshot.root
    return root is not None and root.wait is not None and root.wait.kind in ("slot", "later")


__all__ = ["Entry", "Facts", "NeedFact", "Run", "encode", "in_line"]
