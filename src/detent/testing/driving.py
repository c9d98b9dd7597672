"""Driving a world: callers act, time moves, people decide; and at each stand-still all is checked.

What survives a crash of the engine is on this side: `Progress` (which actions were acknowledged)
and the `Outside`. An action that was not acknowledged is done again under the same id.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from detent.kernel.explain import Explanation, explain
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.recording import read_body
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.ports.store import Page
from detent.runtime.settings import WriterSettings
from detent.service.explaining import forecasts
from detent.service.reading import StoredPrograms, read_snapshot, timing_of
from detent.testing.auditing_limits import GateAudit
from detent.testing.authoring_limits import rescue
from detent.testing.engines import engine_over
from detent.testing.faulty import Crash
from detent.testing.gate_books import Clock
from detent.testing.outside import Deed, Outside, Wrong
from detent.testing.providers import Providers

if TYPE_CHECKING:
    from detent.bootstrap.engine import Engine
    from detent.ports.store import InstanceRow
    from detent.testing.faulty import FaultyStore
    from detent.testing.world import Action, World

CLOSING_ROUNDS = 200
STANDSTILLS = 2_000


class Progress:
    """How many actions of the script were acknowledged."""

    def __init__(self, acted: int = 0) -> None:
        self.acted = acted


class Drive:
    """One life of an engine over a world."""

    def __init__(
        self, world: World, store: FaultyStore, outside: Outside, progress: Progress
    ) -> None:
        self._world = world
        self._store: Any = store
        self._outside = outside
        self._progress = progress
        self._programs = StoredPrograms(self._store)
        self._promised: dict[str, tuple[int | None, int]] = {}
        self._engine: Engine
        self._now = 0
        self._gates: GateAudit | None = None
        if world.traits.limited:
            meta = store.meta()
            clock = Clock(meta.epoch_ms, meta.resolution_ms)
            self._gates = GateAudit(world, store.connection, clock)
            store.on_commit = self._gates.read

    def run(self) -> None:
        """Open, do everything that is left of the script, close what stands open, and check."""
        self._open()
        try:
            self._play()
        finally:
            with suppress(Crash):
                self._engine.close()

    def _open(self) -> None:
        handlers = Providers(self._outside, self._tick).handlers()
        turns = WriterSettings(max_instances_per_turn=self._world.room)
        seed = f"world {self._world.seed}"
        self._engine = engine_over(self._store, handlers, seed=seed, turns=turns)

    def _tick(self) -> int:
        """What the world's clock shows to a provider that is called."""
        meta = self._store.meta()
        now_ms = round(self._engine.now().timestamp() * 1000)
        return int((now_ms - meta.epoch_ms) // meta.resolution_ms)

    def _play(self) -> None:
        script = self._world.script
        if self._progress.acted:  # an idle engine writes no tick; the world's time goes on
            self._drive_to(script[self._progress.acted - 1].tick)
        while self._progress.acted < len(script):
            action = script[self._progress.acted]
            if not (self._world.traits.wild and action.tick == self._now):
                self._drive_to(action.tick)
            self._act(action)
            self._progress.acted += 1
        for _ in range(CLOSING_ROUNDS):
            self._drive_to(None)
            if not self._close_one():
                if self._gates is not None:
                    self._gates.finish(self._outside)
                return
        raise Wrong("instances do not end however often they are helped on")

    # time ----------------------------------------------------------------------------------------

    def _drive_to(self, target: int | None) -> None:
        """Let time pass to a tick, or until nothing is due, standing still at each due tick."""
        for _ in range(STANDSTILLS):
            self._settle()
            due = self._next_due()
            if due is None or (target is not None and due > target):
                break
            self._now = self._engine.advance(to=max(due, self._now))
        else:
            raise Wrong("time passes and nothing ends")
        if target is not None and target > self._now:
            self._now = self._engine.advance(to=target)
            self._settle()

    def _next_due(self) -> int | None:
        """The next tick at which an instance moves, or somebody in line is called."""
        everywhere = range(self._store.meta().partitions)
        own = self._store.next_due(everywhere)
        dues = [own, *(each.due for each in self._store.gate_dues(everywhere))]
        if self._gates is not None:
            dues.append(self._gates.next_look(self._now))
        return min((due for due in dues if due is not None), default=None)

    def _settle(self) -> None:
        """Do all that can be done at this tick, people's decisions included."""
        while True:
            self._now = self._engine.advance(0)
            doubts = [d for d in self._store.doubts("", "", 1_000) if d.state == "indeterminate"]
            if not doubts:
                break
            for doubt in doubts:
                self._decide(doubt.effect, doubt.instance)
        self._stand()

    # people --------------------------------------------------------------------------------------

    def _decide(self, key: str, instance: str) -> None:
        """A person looks into the provider's books and decides."""
        outside = self._outside
        action, result = "again", None
        if outside.happened(key):
            action, result = "happened", outside.result(key)
        elif outside.count("refused", key):
            puzzle = self._acts(key, instance) == "puzzle"
            action = "skip" if puzzle else "failed"
        args = {"key": key, "action": action, "result": result}
        self._person(f"resolve:{key}", instance, action, args)

    def _acts(self, key: str, instance: str) -> str:
        snapshot = read_snapshot(self._store, self._store.instance(instance))
        if snapshot is None:
            return ""
        for effect in snapshot.effects:
            if effect.key == key:
                program = self._programs[snapshot.definition]
                params = program.nodes[effect.block].block.params
                return str(params.get("act")) if isinstance(params, dict) else ""
        return ""

    def _person(self, what: str, instance: str, note: str, args: dict[str, Any]) -> None:
        """Resolve under an id that changes only when the last answer is known."""
        turn = self._outside.count("person", what)
        self._outside.add(Deed("asked", f"{what}:{turn}", instance, note, ""))
        self._ask(instance, "resolve", args, f"{what}:{turn}")
        self._outside.add(Deed("person", what, instance, note, ""))

    def _ask(self, instance: str, verb: Any, args: Any, id: str) -> None:
        try:
            self._engine.command(instance, verb, args, id=id)
        except RequestError as refused:
            if refused.code.startswith("store"):
                raise

    # callers -------------------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        engine, args = self._engine, action.args
        match action.verb:
            case "deploy":
                tenant = args.get("tenant", "default")
                engine.deploy(self._world.definitions[args["name"]], tenant=tenant)
            case "start":
                self._start(action)
            case "signal":
                self._signal(action.instance, args["name"], args.get("payload"), action.id)
            case "command":
                self._ask(action.instance, args["verb"], None, action.id)
            case "configure":
                self._configure(args["door"], args["verb"], args["args"], args["options"])
            case "restart":
                engine.close()
                self._open()

    def _configure(self, door: str, verb: str, args: Any, options: Any) -> None:
        """Change a gate; what is gone already, or was never there, is no matter."""
        try:
            getattr(getattr(self._engine, door), verb)(*args, **options)
        except RequestError as refused:
            if not refused.code.endswith(".unknown"):
                raise

    def _start(self, action: Action) -> None:
        args = action.args
        self._engine.start(
            self._world.definitions[args["name"]],
            args["data"],
            key=args["key"],
            priority=args["priority"],
            **args.get("options", {}),
        )

    def _signal(self, instance: str, name: str, payload: Any, id: str) -> None:
        try:
            self._engine.signal(instance, name, payload, id=id)
        except RequestError as refused:
            if refused.code not in ("instance.terminal", "instance.not_found"):
                raise

    def _close_one(self) -> bool:
        """Help the first instance that waits for somebody; False when all have ended."""
        open_ = [row for row in self._rows() if row.state not in TERMINAL]
        for row in open_:
            told = self._explain(row)
            if told is not None and self._help(row, told):
                return True
        if open_:
            states = ", ".join(f"{row.id} {row.state}" for row in open_)
            raise Wrong(f"stuck: {states}")
        return False

    def _help(self, row: InstanceRow, told: Explanation) -> bool:
        if told.state == "paused" or told.pause_requested:
            turn = self._outside.count("person", f"resume:{row.id}")
            self._ask(row.id, "resume", None, f"resume:{row.id}:{turn}")
            self._outside.add(Deed("person", f"resume:{row.id}", row.id, "resume", ""))
            return True
        for wait in told.waits:
            id = f"help:{row.id}:{wait.node}:{wait.since}"
            if wait.kind == "human":
                answer = {"value": "yes", "comment": "so be it"}
                self._signal(row.id, f"human_input:{wait.block}", answer, id)
                return True
            if wait.kind == "gate" and "the pool '" in wait.text and wait.due is None:
                pool = wait.text.partition("the pool '")[2].partition("'")[0]
                door, verb, args, options = rescue(pool)
                self._configure(door, verb, args, {**options, "tenant": row.tenant})
                return True
            if wait.kind == "signal":
                name = wait.released_by[0].split("'")[1]
                self._signal(row.id, name, {"from": "help"}, id)
                return True
        return False

    # what must hold at a stand-still -------------------------------------------------------------

    def _rows(self) -> list[InstanceRow]:
        """All but the engine's own: a gate stands ready for ever."""
        rows: list[InstanceRow] = self._store.instances(Page(limit=10_000))
        return [row for row in rows if row.namespace != SYSTEM]

    def _explain(self, row: InstanceRow) -> Explanation | None:
        snapshot = read_snapshot(self._store, row)
        if snapshot is None:
            return None
        program = self._programs[snapshot.definition]
        timing = timing_of(self._store)
        told = forecasts(self._store, snapshot, timing, self._now)
        return explain(snapshot, program, timing, self._now, told)

    def _stand(self) -> None:
        """Check what was promised at the last stand-still, and note what is promised now."""
        if self._gates is not None:
            self._gates.stand(self._now)
        tick, before = self._now, self._promised
        self._promised = {}
        for row in self._rows():
            loaded = self._store.load([row.id])[row.id]
            if row.id in before:
                self._check_promise(row, loaded.version, tick, before[row.id])
            if row.state in TERMINAL or loaded.body is None:
                continue
            told = self._explain(row)
            if told is None:
                continue
            self._check_reasons(row, told)
            self._promised[row.id] = (told.earliest, loaded.version)

    def _check_promise(
        self, row: InstanceRow, version: int, tick: int, promise: tuple[int | None, int]
    ) -> None:
        earliest, was = promise
        if earliest is not None and earliest <= tick and version == was:
            raise Wrong(f"{row.id} was to move at tick {earliest}; it is {tick} and it has not")
        early = earliest is None or earliest > tick
        if early and version > was:
            for journal in self._store.journal(row.n, was, 1):
                if not read_body(journal.body).inputs:
                    raise Wrong(f"{row.id} moved by itself at {tick}, and said {earliest}")

    def _check_reasons(self, row: InstanceRow, told: Explanation) -> None:
        """Whoever stands can say what would release it."""
        if told.state == "paused" or told.earliest is not None:
            return
        if any(wait.kind == "slot" for wait in told.waits):
            return  # it is held as a whole; the auditor of gates looks whether that is so
        for wait in told.waits:
            if wait.kind == "child":
                child = self._store.instance(wait.text.split("instance ")[1].split(" ")[0])
                if child is None or child.state in TERMINAL:
                    raise Wrong(f"{row.id} waits for a child that has ended")
            elif wait.kind == "gate" and "limit" not in wait.text:
                continue  # nothing in the pool: the auditor of gates looks whether that is so
            elif wait.kind not in ("signal", "human", "decision", "worker", "settling"):
                raise Wrong(f"stuck: {row.id} stands in {wait.node} for {wait.kind}: {wait.text}")
        if not told.waits:
            raise Wrong(f"stuck: {row.id} is {told.state} and names no reason: {told.summary}")
