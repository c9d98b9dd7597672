"""`Engine`: the doors a Python program goes through; everything behind them is one function each.

Opening assembles the parts (`assemble`), a verb checks its arguments (`service`), submits, and
waits for the writer's answer. With a virtual clock nothing runs by itself: the verbs take turns
inline, and `run_until_idle` or `advance` move time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from detent.bootstrap.aio import AsyncEngine
from detent.bootstrap.assemble import Parts, assemble
from detent.bootstrap.crons import Crons
from detent.bootstrap.gates import Door, Limits, Pools
from detent.bootstrap.inspector import Inspector
from detent.bootstrap.settings import check, settings_of
from detent.definition import load
from detent.kernel.explain import Explanation
from detent.kernel.fork import ForkRequest
from detent.kernel.replay import Replay
from detent.model import limits
from detent.model.decision import Birth, Verdict
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.inputs import encode_input
from detent.model.link import Submission
from detent.model.snapshot import decode_snapshot
from detent.runtime.dispatch_guard import guard_reentrant
from detent.service import sending
from detent.service.arguments import listed, reference, wanted_states
from detent.service.catalogue import check_definition, find_definition, settled
from detent.service.gates import SYSTEM
from detent.service.policies import check_policies, read_policies
from detent.service.proving import fork_input
from detent.service.reading import find_instance
from detent.service.sending import Verb
from detent.service.starting import (
    StartRequest,
    check_free,
    check_handlers,
    check_labels,
    start_submission,
)


class Engine:
    """A durable engine on one store; use it as a context manager."""

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        handlers: Any = (),
        policies: Sequence[Any] = (),
        **settings: Any,
    ) -> None:
        """Open the store at `path`, own it, recover, and start working.

        `handlers` are decorated functions, modules or lists of these. `policies` are checked before
        every step of every instance started here. Further settings: `writer`, `clock`,
        `resolution_ms`, `partitions`, `epoch_ms`, `max_in_flight`, `threads`, `seed`,
        `seal_key`, `allow_internal_urls`, `allowed_internal_hosts`, `api_key_envs`.
        """
        self._settings = check(settings_of(path, settings))
        self._policies = read_policies(policies)
        self._parts: Parts = assemble(self._settings, handlers)
        self.aio = AsyncEngine(self)

    @classmethod
    def over(cls, parts: Parts, policies: Sequence[Any] = ()) -> Self:
        """An engine of parts that are open already; for tests that bring a store of their own."""
        engine = cls.__new__(cls)
        vars(engine).update(
            _settings=parts.settings, _policies=read_policies(policies), _parts=parts
        )
        engine.aio = AsyncEngine(engine)
        return engine

    # starting and telling ------------------------------------------------------------------------

    def start(
        self,
        definition: Definition | str,
        data: Any = None,
        *,
        key: str | None = None,
        tenant: str = "default",
        namespace: str = "default",
        priority: str = "Normal",
        timezone: str = "UTC",
        at: dt.datetime | dt.timedelta | None = None,
        config: Any = None,
        metadata: Any = None,
        dry_run: bool = False,
        auto_approve: bool = False,
        concurrency_key: str | None = None,
        max_concurrency: int = 1,
    ) -> str:
        """Start an instance and return its id once durable; a known `key` gives the first one's."""
        request = StartRequest(
            data=data,
            key=key,
            tenant=tenant,
            namespace=namespace,
            priority=priority,
            timezone=timezone,
            at=at,
            config=config,
            metadata=metadata,
            dry_run=dry_run,
            auto_approve=auto_approve,
            policies=self._policies,
            concurrency_key=concurrency_key,
            max_concurrency=max_concurrency,
        )
        return self.start_request(definition, request)

    def start_request(self, definition: Definition | str, request: StartRequest) -> str:
        """Start from a prepared request."""
        ready = self._ready(definition, request.tenant, request.namespace)
        parts = self._parts
        guard_reentrant("start")
        made = start_submission(ready, request, parts.moment(), 0)
        parts.keep(ready, request.tenant, request.namespace)
        parts.ask(lambda ack: replace(made, ack=ack))
        return made.instance

    def start_many(
        self,
        definition: Definition | str,
        datas: Iterable[Any],
        *,
        tenant: str = "default",
        namespace: str = "default",
        priority: str = "Normal",
        timezone: str = "UTC",
    ) -> list[str]:
        """Start one instance per item of `datas`, all or none, and return their ids."""
        items = listed("a batch", datas)
        if not items:
            return []
        ready = self._ready(definition, tenant, namespace)
        requests = [
            StartRequest(
                data=data,
                tenant=tenant,
                namespace=namespace,
                priority=priority,
                timezone=timezone,
                policies=self._policies,
            )
            for data in items
        ]
        if len(requests) > limits.BATCH_STARTS:
            raise RequestError(
                "request.invalid",
                f"a batch holds at most {limits.BATCH_STARTS}; got {len(requests)}",
            )
        return self._parts.start_batch(ready, requests)

    def signal(
        self, instance: str, name: str, payload: Any = None, *, id: str | None = None
    ) -> str:
        """Send a signal (a control word, or any name) and return its id once it is durable."""
        parts = self._parts
        told = parts.fresh_id() if id is None else id
        parts.ask(lambda ack: sending.signal_submission(instance, name, payload, told, ack))
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
        row = self.inspect.look(lambda store: find_instance(store, instance, None))
        ready = self._ready(definition, row.tenant, row.namespace)
        self._parts.keep(ready, row.tenant, row.namespace)
        self.command(instance, "migrate", {"to": ready.hash})

    def command(
        self, instance: str, verb: Verb, args: Any = None, *, id: str | None = None
    ) -> Verdict:
        """Ask for a state change; the kernel's verdict, and the same one for the same `id`."""
        parts = self._parts
        told = parts.fresh_id() if id is None else id
        return parts.ask(lambda ack: sending.command_submission(instance, verb, args, told, ack))

    def _configure(self, instance: str, verb: str, args: Any, id: str | None = None) -> Verdict:
        """Ask one of the engine's own instances for a change; the verdict of its block."""
        parts = self._parts
        told = parts.fresh_id() if id is None else id
        return parts.ask(lambda ack: sending.configure_submission(instance, verb, args, told, ack))

    def _begin(self, definition: Definition, tenant: str, made: Submission) -> None:
        """Start one of the engine's own instances; one that is there stays as it is."""
        self._parts.keep(definition, tenant, SYSTEM)
        self._parts.ask(lambda ack: replace(made, ack=ack))

    @property
    def limits(self) -> Limits:
        """Rate limits: set, close, open, delete, list, show."""
        return Limits(self._door)

    @property
    def pools(self) -> Pools:
        """Pools of resources: create, add, update, remove, delete, list, show."""
        return Pools(self._door)

    @property
    def crons(self) -> Crons:
        """Schedules: create, update, enable, disable, delete, list, show, next_fires, preview."""
        return Crons(self._door, self, self._parts.keep, self._policies)

    @property
    def _door(self) -> Door:
        return Door(self._configure, self._begin, self.inspect.look, self._parts.moment)

    def wait_for(
        self,
        instance: str,
        state: str | Sequence[str] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> str:
        """Wait until the instance is in a state (by default any terminal one) and return it."""
        return self._parts.wait_for(instance, wanted_states(state), timeout)

    # definitions and handlers --------------------------------------------------------------------

    def register(self, handlers: Any) -> list[str]:
        """Register more handlers; orders that waited for them are performed now."""
        return self._parts.register(handlers)

    def deploy(
        self, definition: Definition, *, tenant: str = "default", namespace: str = "default"
    ) -> str:
        """Store a definition version and return its hash; running instances keep theirs."""
        check_labels(tenant, namespace)
        check_definition(definition)
        check_free(definition.name, namespace)
        definition = self._settled(definition, tenant, namespace)
        self._parts.put_definition(definition, tenant, namespace)
        return definition.hash

    def definition(
        self,
        name: str,
        version: int | None = None,
        *,
        tenant: str = "default",
        namespace: str = "default",
    ) -> Definition:
        """A stored definition: that version, or the highest one that is not deprecated."""
        check_labels(tenant, namespace)
        return load(
            self._parts.read(
                lambda store: find_definition(store, (tenant, namespace), name, version)
            ).body
        )

    def deprecate(
        self, name: str, version: int, *, tenant: str = "default", namespace: str = "default"
    ) -> None:
        """Leave a version out of look-ups by name; instances on it go on."""
        found = self.definition(name, version, tenant=tenant, namespace=namespace)
        self._parts.write(lambda store: store.deprecate_definition(found.hash, tenant, namespace))

    # time ----------------------------------------------------------------------------------------

    def run_until_idle(self) -> int:
        """Virtual time: perform everything, moving from due tick to due tick; the tick reached."""
        return self._parts.virtual().run_until_idle()

    def advance(
        self, by: dt.timedelta | int | None = None, *, to: dt.datetime | int | None = None
    ) -> int:
        """Virtual time: move by a span (or milliseconds), or to an instant (or tick)."""
        return self._parts.virtual().advance(by, to)

    def now(self) -> dt.datetime:
        """Logical now."""
        moment = self._parts.moment()
        ms = moment.epoch_ms + moment.tick * moment.resolution_ms
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)

    def explain(self, instance: str) -> Explanation:
        """Why an instance stands still, what would release it, and when it can move by itself."""
        return self.inspect.explain(instance, tick=self._parts.moment().tick)

    def replay(self, instance: str) -> Replay:
        """Run an instance again from its record, with no effect, and compare entry by entry."""
        return self.inspect.replay(instance)

    def fork(
        self,
        instance: str,
        *,
        seq: int = 0,
        before: str = "",
        data: Any = None,
        dry_run: bool = False,
    ) -> str:
        """Start a new instance from another's record, after row `seq` or short of node `before`."""
        parts = self._parts
        moment = parts.moment()
        request = ForkRequest(
            instance=moment.fresh_id,
            seq=seq,
            before=before,
            data=data,
            dry_run=dry_run,
            seed=moment.seed,
        )
        forked = self.inspect.look(lambda store: fork_input(store, instance, None, request))
        row = self.inspect.look(lambda store: store.instance(instance))
        snapshot = decode_snapshot(forked.snapshot)
        birth = Birth(
            id=moment.fresh_id,
            tenant=snapshot.tenant,
            namespace=snapshot.namespace,
            definition=snapshot.definition or (row.definition if row else ""),
            priority=snapshot.priority,
        )
        made = Submission(moment.fresh_id, encode_input(forked), birth=birth)
        parts.ask(lambda ack: replace(made, ack=ack))
        return moment.fresh_id

    @property
    def inspect(self) -> Inspector:
        """Everything that only reads: show, tree, timeline, audit, explain, replay, verify."""
        return self._parts.inspector

    # closing -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop taking work, finish the turn, release the store."""
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ready(self, definition: Definition | str, tenant: str, namespace: str) -> Definition:
        """A definition whose handlers are all here; one that is new is not stored yet."""
        check_labels(tenant, namespace)
        if isinstance(definition, str):
            name, version = reference(definition)
            definition = self.definition(name, version, tenant=tenant, namespace=namespace)
        check_definition(definition)
        check_free(definition.name, namespace)
        parts = self._parts
        specs = parts.registry.specs()
        check_policies(self._policies, specs)
        if not parts.known(definition, tenant, namespace):
            definition = self._settled(definition, tenant, namespace)
            check_handlers(definition, specs)
        return definition

    def _settled(self, given: Definition, tenant: str, namespace: str) -> Definition:
        return self._parts.read(lambda store: settled(store, (tenant, namespace), given))
