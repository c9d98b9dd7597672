"""`Engine`: the doors a Python program goes through; everything behind them is one function each.

Opening assembles the parts (`assemble`), a verb checks its arguments (`service`), submits, and
waits for the writer's answer. With a virtual clock nothing runs by itself: the verbs take turns
inline, and `run_until_idle` or `advance` move time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from msgspec.structs import replace

from detent.bootstrap.aio import AsyncEngine
from detent.bootstrap.assemble import Parts, assemble
from detent.bootstrap.breakers import Breakers
from detent.bootstrap.crons import Crons
from detent.bootstrap.events import Events
from detent.bootstrap.gates import Door, Limits, Pools
from detent.bootstrap.inspector import Inspector
from detent.bootstrap.plans import Plans, Starts
from detent.bootstrap.settings import check, settings_of
from detent.bootstrap.steering import Steering
from detent.bootstrap.webhooks import Webhooks
from detent.bootstrap.work import Work
from detent.definition import load
from detent.handlers.webhooks import Post
from detent.kernel.explain import Explanation
from detent.kernel.fork import ForkRequest
from detent.kernel.replay import Replay
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.link import Submission
from detent.runtime.dispatch_guard import guard_reentrant
from detent.service import sending
from detent.service.arguments import reference, wanted_states
from detent.service.bulk import BulkOptions, BulkResult, Where
from detent.service.catalogue import check_definition, find_definition, settled
from detent.service.gates import SYSTEM
from detent.service.policies import check_policies, read_policies
from detent.service.proving import fork_submission
from detent.service.reading import find_instance
from detent.service.sending import Verb
from detent.service.starting import (
    StartOptions,
    StartRequest,
    batch_of,
    check_free,
    check_handlers,
    check_labels,
    start_submission,
)
from detent.service.steering import command_args


class Engine:
    """A durable engine on one store; use it as a context manager."""

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        handlers: Any = (),
        policies: Sequence[Any] = (),
        webhook_post: Post | None = None,
        **settings: Any,
    ) -> None:
        """Open the store at `path`, own it, recover, and start working.

        `handlers` are decorated functions, modules or lists of these. `policies` are checked before
        every step of every instance started here. Further settings: `writer`, `clock`, `seed`,
        `resolution_ms`, `partitions` (how many), `partition` (which to own, such as "0-7"),
        `epoch_ms`, `max_in_flight`, `threads`, `seal_key`, `workers` (handlers nobody has
        registered are external workers'), `work_stale_ms`, `vault_key`, `vault_old_keys`,
        `webhooks`, `webhook_delivery`, `allow_internal_urls`, `allowed_internal_hosts`,
        `api_key_envs`, `breaker_threshold`, `breaker_cooldown_ms`.
        """
        self._settings = check(settings_of(path, settings))
        self._policies = read_policies(policies)
        self._furnish(assemble(self._settings, handlers, webhook_post))

    @classmethod
    def over(cls, parts: Parts, policies: Sequence[Any] = ()) -> Self:
        """An engine of parts that are open already; for tests that bring a store of their own."""
        engine = cls.__new__(cls)
        vars(engine).update(_settings=parts.settings, _policies=read_policies(policies))
        engine._furnish(parts)  # noqa: SLF001 - its own class
        return engine

    def _furnish(self, parts: Parts) -> None:
        """Open the doors for what has verbs of its own."""
        door = Door(self._configure, self._begin, parts.inspector.look, parts.moment)
        self._parts = parts
        self.limits = Limits(door)
        self.pools = Pools(door)
        self.breakers = Breakers(door)
        self.crons = Crons(door, self, parts.keep, self._policies)
        self.events = Events(door, parts.ask)
        self.plans = Plans(door, self, Starts(self._ready, parts.keep, parts.ask, self._policies))
        self.webhooks = Webhooks(parts)
        self.work = Work(parts)
        self.aio = AsyncEngine(self)

    # starting and telling ------------------------------------------------------------------------

    def start(
        self,
        definition: Definition | str,
        data: Any = None,
        *,
        key: str | None = None,
        tenant: str = "default",
        namespace: str = "default",
        **options: Unpack[StartOptions],
    ) -> str:
        """Start an instance and return its id once durable; a known `key` gives the first one's."""
        labels = {"key": key, "tenant": tenant, "namespace": namespace}
        given: dict[str, Any] = {"data": data, **labels, **options, "policies": self._policies}
        return self.start_request(definition, StartRequest(**given))

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
        labels: dict[str, Any] = {"tenant": tenant, "namespace": namespace, "priority": priority}
        shared = StartRequest(**labels, timezone=timezone, policies=self._policies)
        requests = batch_of(shared, datas)
        if not requests:
            return []
        return self._parts.start_batch(self._ready(definition, tenant, namespace), requests)

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
        return self._steering.inject(instance, blocks, position, self._parts.handlers())

    def bulk(
        self, action: str, where: Where, args: Any = None, **options: Unpack[BulkOptions]
    ) -> BulkResult:
        """Ask every instance that a filter finds, and count the verdicts."""
        return self._steering.bulk(action, where, args, options)

    @property
    def _steering(self) -> Steering:
        return Steering(self.command, self._parts.ask_all, self.inspect.look, self._parts.moment)

    def command(
        self, instance: str, verb: Verb, args: Any = None, *, id: str | None = None
    ) -> Verdict:
        """Ask for a state change; the kernel's verdict, and the same one for the same `id`."""
        parts, checked = self._parts, command_args(verb, args)
        told = parts.fresh_id() if id is None else id
        return parts.ask(lambda ack: sending.command_submission(instance, verb, checked, told, ack))

    def _configure(self, instance: str, verb: str, args: Any, id: str | None = None) -> Verdict:
        """Ask one of the engine's own instances for a change; the verdict of its block."""
        parts = self._parts
        told = parts.fresh_id() if id is None else id
        return parts.ask(lambda ack: sending.configure_submission(instance, verb, args, told, ack))

    def _begin(self, definition: Definition, tenant: str, made: Submission) -> None:
        """Start one of the engine's own instances; one that is there stays as it is."""
        self._parts.keep(definition, tenant, SYSTEM)
        self._parts.ask(lambda ack: replace(made, ack=ack))

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
        made = self.inspect.look(lambda store: fork_submission(store, instance, None, request))
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

    def __exit__(self, *_error: object) -> None:
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
        specs = parts.handlers()
        check_policies(self._policies, specs)
        if not parts.known(definition, tenant, namespace):
            definition = self._settled(definition, tenant, namespace)
            check_handlers(definition, specs)
        return definition

    def _settled(self, given: Definition, tenant: str, namespace: str) -> Definition:
        return self._parts.read(lambda store: settled(store, (tenant, namespace), given))
