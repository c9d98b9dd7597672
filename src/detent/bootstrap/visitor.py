"""`Visitor`: the verbs of an engine for a process that does not own the store.

It leaves arrivals and waits for their verdicts, so the owner decides everything.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from detent.bootstrap.breakers import Breakers
from detent.bootstrap.callers import raise_refusal
from detent.bootstrap.crons import Crons
from detent.bootstrap.gates import Door, Limits, Pools
from detent.bootstrap.known_handlers import recall
from detent.bootstrap.making import chance_of, make_clock
from detent.bootstrap.owners import living_owner, silent_owner
from detent.bootstrap.settings import Settings
from detent.bootstrap.steering import Steering
from detent.bootstrap.stores import open_store
from detent.definition import load
from detent.kernel.fork import ForkRequest
from detent.kernel.lifecycle import TERMINAL
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.ids import partition_of, timed_id
from detent.model.link import Submission
from detent.ports.store import InstanceRow, NewArrival, Store
from detent.runtime.clock import wall_time_ms
from detent.runtime.turn import CLOCK_ACCEPTED
from detent.service import sending
from detent.service.arguments import reference, wanted_states
from detent.service.bulk import BulkOptions, BulkResult, Where
from detent.service.catalogue import check_definition, definition_row, find_definition, settled
from detent.service.gates import SYSTEM
from detent.service.proving import fork_submission
from detent.service.publishing import deploy_definition
from detent.service.reading import find_instance
from detent.service.sending import Verb
from detent.service.starting import (
    Moment,
    StartRequest,
    check_free,
    check_handlers,
    check_labels,
    start_submission,
)
from detent.service.steering import command_args

T = TypeVar("T")

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25


class Visitor:
    """Sends to the owner of a store, through the store; use it as a context manager."""

    def __init__(self, path: str | Path, *, timeout_ms: int = limits.ASK_TIMEOUT_MS) -> None:
        """Open the store at `path`, which must exist; an ask waits for `timeout_ms` at most."""
        self._settings = Settings(path=str(path))
        self._store: Store = open_store(path, create=None)
        self._meta = self._store.meta()
        self._clock = make_clock(self._meta, self._settings)
        self._chance = chance_of(None)
        self._timeout_ms = timeout_ms

    # starting and telling ------------------------------------------------------------------------

    def start(
        self,
        definition: Definition | str,
        data: Any = None,
        *,
        key: str | None = None,
        tenant: str = "default",
        namespace: str = "default",
        **more: Any,
    ) -> str:
        """Start an instance and return its id once durable; more options as `Engine.start`."""
        request = StartRequest(data=data, key=key, tenant=tenant, namespace=namespace, **more)
        ready = self._ready(definition, tenant, namespace)
        made = start_submission(ready, request, self._moment(), 0)
        self._keep(ready, tenant, namespace)
        self._leave(made, f"start:{made.instance}")
        return made.instance

    def signal(
        self, instance: str, name: str, payload: Any = None, *, id: str | None = None
    ) -> str:
        """Send a signal and return its id once it is durable."""
        row = self._row(instance)
        if row.state in TERMINAL:
            raise RequestError(
                "instance.terminal", f"the instance is {row.state}; it takes no signals"
            )
        told = self._fresh_id() if id is None else id
        self._leave(sending.signal_submission(instance, name, payload, told, 0), told)
        return told

    # asking --------------------------------------------------------------------------------------

    def pause(self, instance: str) -> None:
        """Pause; in a wait the pause is held until the wait ends."""
        self.command(instance, "pause")

    def resume(self, instance: str) -> None:
        """Go on from a pause, or withdraw one that is held."""
        self.command(instance, "resume")

    def cancel(self, instance: str) -> None:
        """Cancel; protected parts and clean-up run first."""
        self.command(instance, "cancel")

    def retry(self, instance: str) -> None:
        """Go on from the failed nodes of a failed instance."""
        self.command(instance, "retry")

    def resolve(self, instance: str, effect: str, action: str, result: Any = None) -> None:
        """Decide an indeterminate effect: happened (with its result), failed, skip, or again."""
        self.command(instance, "resolve", {"key": effect, "action": action, "result": result})

    def migrate(
        self, instance: str, definition: Definition | str | None = None, *, undo: bool = False
    ) -> None:
        """Move a standing instance to another version, or undo the last move."""
        if undo or definition is None:
            self.command(instance, "migrate", {"undo": True})
            return
        self.command(instance, "migrate", {"to": self.target(instance, definition)})

    def target(self, instance: str, definition: Definition | str) -> str:
        """Store what an instance is to be moved to, and return its hash.

        Handlers count that were ever registered with the store: this process has none itself.
        """
        row = self._row(instance)
        ready = self._ready(definition, row.tenant, row.namespace)
        self._keep(ready, row.tenant, row.namespace)
        return ready.hash

    # steering ------------------------------------------------------------------------------------

    def set_data(self, instance: str, data: Any) -> None:
        """Replace the data of an instance, whatever its state."""
        self._steering.set_data(instance, data)

    def set_state(
        self, instance: str, state: str, *, at: dt.datetime | dt.timedelta | None = None
    ) -> str:
        """Set the state as the life cycle allows; `at` is when one that is scheduled goes on."""
        return self._steering.set_state(instance, state, at)

    def reschedule(self, instance: str, offset: dt.timedelta | int) -> None:
        """Move the due time of a scheduled instance by a span, which may be negative."""
        self._steering.reschedule(instance, offset)

    def resume_from(
        self, instance: str, block: str, *, data: Any = None, signals: Sequence[Any] = ()
    ) -> dict[str, Any]:
        """Repeat a block of the top level and all that follow it, from a failure or a pause."""
        return self._steering.resume_from(instance, block, data, signals)

    def inject(
        self, instance: str, blocks: Sequence[Any], *, position: int | None = None
    ) -> dict[str, Any]:
        """Put blocks into one instance, after those of its definition."""
        return self._steering.inject(instance, blocks, position, recall(self._store))

    def bulk(
        self, action: str, where: Where, args: Any = None, **options: Unpack[BulkOptions]
    ) -> BulkResult:
        """Ask every instance that a filter finds, and count the verdicts."""
        return self._steering.bulk(action, where, args, options)

    @property
    def _steering(self) -> Steering:
        return Steering(self.command, self._ask_all, self._look, self._moment)

    def command(
        self, instance: str, verb: Verb, args: Any = None, *, id: str | None = None
    ) -> Verdict:
        """Ask for a state change and wait for the verdict; the same `id` gets the same one."""
        self._row(instance)
        told = command_args(verb, args)
        asked = self._fresh_id() if id is None else id
        return self._ask(sending.command_submission(instance, verb, told, asked, 0), asked)

    def deploy(
        self, definition: Definition, *, tenant: str = "default", namespace: str = "default"
    ) -> str:
        """Store a definition version and return its hash; running instances keep theirs."""
        place = (tenant, namespace)
        return deploy_definition(self._store, definition, place, self._clock.wall_ms()).hash

    def _configure(self, instance: str, verb: str, args: Any, id: str | None = None) -> Verdict:
        """Ask one of the engine's own instances for a change; the verdict of its block."""
        self._row(instance)
        asked = self._fresh_id() if id is None else id
        return self._ask(sending.configure_submission(instance, verb, args, asked, 0), asked)

    def _begin(self, definition: Definition, tenant: str, made: Submission) -> None:
        """Start one of the engine's own instances; one that is there stays as it is."""
        self._keep(definition, tenant, SYSTEM)
        self._leave(made, f"start:{made.instance}")

    @property
    def limits(self) -> Limits:
        """Rate limits: set, close, open, delete, list, show."""
        return Limits(self._door)

    @property
    def pools(self) -> Pools:
        """Pools of resources: create, add, update, remove, delete, list, show."""
        return Pools(self._door)

    @property
    def breakers(self) -> Breakers:
        """Circuit breakers: list, show, reset."""
        return Breakers(self._door)

    @property
    def crons(self) -> Crons:
        """Schedules: create, update, enable, disable, delete, list, show, next_fires, preview."""
        return Crons(self._door, self, self._keep)

    @property
    def _door(self) -> Door:
        return Door(self._configure, self._begin, self._look, self._moment)

    def _look(self, use: Callable[[Store], T], /) -> T:
        return use(self._store)

    def wait_for(
        self, instance: str, state: str | Sequence[str] | None = None, *, timeout: float = 30.0
    ) -> str:
        """Wait until the instance is in a state (by default any terminal one) and return it."""
        wanted = wanted_states(state)

        def reached() -> str | None:
            now = self._row(instance).state
            return now if now in wanted else None

        found: str | None = self._poll(reached, timeout)
        if found is None:
            raise RequestError(
                "request.timeout",
                f"instance {instance} is not {' or '.join(sorted(wanted))} yet; `explain` says why",
            )
        return found

    # forking and the clock -----------------------------------------------------------------------

    def fork(
        self,
        instance: str,
        *,
        seq: int = 0,
        before: str = "",
        data: Any = None,
        dry_run: bool = False,
    ) -> str:
        """Start a new instance from the record of one: after row `seq`, or before a node."""
        request = ForkRequest(
            instance=self._fresh_id(),
            seq=seq,
            before=before,
            data=data,
            dry_run=dry_run,
            seed=self._chance(8).hex(),
        )
        made = fork_submission(self._store, instance, None, request)
        self._leave(made, f"start:{made.instance}")
        return made.instance

    def accept_clock(self) -> int:
        """Let the engine go on although the wall clock jumped; the milliseconds it had jumped."""
        last = max((row.tick for row in self._store.partitions()), default=0)
        now = self._clock.tick()
        self._store.put_setting(CLOCK_ACCEPTED, str(now))
        return max(0, now - last) * self._meta.resolution_ms

    def owned(self) -> bool:
        """Whether somebody owns the store now."""
        return living_owner(self._store) is not None

    # closing -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let the store go."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # inside --------------------------------------------------------------------------------------

    def _leave(self, told: Submission, id: str) -> None:
        p = partition_of(told.instance, self._meta.partitions)
        salt = self._chance(16) if told.birth is not None else b""
        arrival = NewArrival(id, p, told.instance, told.body, told.birth, salt)
        self._store.enqueue([arrival], self._moment().tick)

    def _ask(self, told: Submission, id: str) -> Verdict:
        """Leave a request and wait for its verdict."""
        self._leave(told, id)
        return raise_refusal(self._verdict(id))

    def _ask_all(self, makes: Sequence[Callable[[int], Submission]]) -> list[Verdict]:
        """Leave many requests, then wait for their verdicts; a refusal is a verdict."""
        asked = [make(0) for make in makes]
        for told in asked:
            self._leave(told, told.id)
        return [self._verdict(told.id) for told in asked]

    def _verdict(self, id: str) -> Verdict:
        found = self._poll(lambda: self._store.verdict(id)[1], self._timeout_ms / 1000)
        if found is None:
            raise self._no_answer(id)
        return found  # type: ignore[no-any-return]

    def _poll(self, look: Callable[[], Any], seconds: float) -> Any:
        """Look until something is there, less and less often."""
        end = time.monotonic() + seconds
        pause = _FIRST_PAUSE_S
        while True:
            found = look()
            left = end - time.monotonic()
            if found is not None or left <= 0:
                return found
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)

    def _no_answer(self, asked: str) -> RequestError:
        owner = living_owner(self._store)
        silent = None if owner is not None else silent_owner(self._store, self._settings.path)
        whose = "nobody owns the store now; start its engine, and it will be carried out"
        if owner is not None:
            whose = f"process {owner.pid} on {owner.host} owns the store but has not answered"
        elif silent is not None:
            whose = (
                f"process {silent.pid} on {silent.host} holds the store's lock but does not "
                "answer; it may be stopped: let it go on, or end it"
            )
        seconds = self._timeout_ms / 1000
        return RequestError(
            "request.timeout", f"no verdict on {asked} within {seconds:g} s: {whose}", id=asked
        )

    def _row(self, instance: str) -> InstanceRow:
        return find_instance(self._store, instance, None)

    def _ready(self, definition: Definition | str, tenant: str, namespace: str) -> Definition:
        """A definition whose handlers the store knows; one that is new is not stored yet."""
        check_labels(tenant, namespace)
        if isinstance(definition, str):
            found = find_definition(self._store, (tenant, namespace), *reference(definition))
            definition = load(found.body)
        check_definition(definition)
        check_free(definition.name, namespace)
        definition = settled(self._store, (tenant, namespace), definition)
        check_handlers(definition, recall(self._store))
        return definition

    def _keep(self, definition: Definition, tenant: str, namespace: str) -> None:
        row = definition_row(definition, (tenant, namespace), self._clock.wall_ms())
        self._store.put_definition(row)

    def _moment(self) -> Moment:
        tick = max((row.tick for row in self._store.partitions()), default=0)
        if self._meta.clock == "wall":
            tick = max(tick, self._clock.tick())
        return Moment(
            tick=tick,
            epoch_ms=self._meta.epoch_ms,
            resolution_ms=self._meta.resolution_ms,
            fresh_id=self._fresh_id(),
            seed=self._chance(8).hex(),
        )

    def _fresh_id(self) -> str:
        return timed_id(wall_time_ms(), self._chance(10))
