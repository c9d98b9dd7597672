"""The engine's verbs as talks: start, signal, steer, wait; each is written once."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from msgspec import Raw, Struct

from detent.client.crons import Crons
from detent.client.gates import Limits, Pools
from detent.client.inspect import Inspect
from detent.client.sequences import Definitions
from detent.client.talking import Pause, Talk
from detent.client.verb import D, T, known_id, of_instance, verb
from detent.kernel.explain import Explanation
from detent.kernel.replay import Replay
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.payload import encode_payload
from detent.service import sending
from detent.service.arguments import (
    check_flag,
    check_text,
    instant_ms,
    invalid,
    listed,
    span_ms,
    wanted_states,
)
from detent.service.clock import ClockView
from detent.service.instances import InstanceView
from detent.service.starting import PRIORITIES, StartOptions

_PAUSE_S = 0.05  # where a server answers early


class Id(Struct, frozen=True):
    """What was started."""

    id: str


class Ids(Struct, frozen=True):
    """What was started at once."""

    ids: list[str] = []


class SignalId(Struct, frozen=True):
    """What was sent."""

    signal_id: str


class State(Struct, frozen=True):
    """The state of an instance."""

    state: str


class Verbs(Definitions[D]):
    """The verbs of an engine, with the same names, arguments, results and errors."""

    # starting and telling ------------------------------------------------------------------------

    @verb
    def start(
        self,
        definition: Definition | str,
        data: Any = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        namespace: str = "default",
        **options: Unpack[StartOptions],
    ) -> Talk[str]:
        """Start an instance and return its id once durable; a known `key` gives the first one's.

        Options: `priority`, `timezone`, `at`, `config`, `metadata`, `dry_run`, `auto_approve`,
        `concurrency_key`, `max_concurrency`, `session`, `budget`.
        """
        whose = self._whose(tenant)
        body = _new_instance(data, whose, namespace, options)
        if key is not None:
            check_text("key", key, limits.KEY_CHARS)
            body["idempotency_key"] = key
        return (yield from self._started(definition, "/instances", [body], Id)).id

    @verb
    def start_many(
        self,
        definition: Definition | str,
        datas: Iterable[Any],
        *,
        tenant: str | None = None,
        namespace: str = "default",
        priority: str = "Normal",
        timezone: str = "UTC",
    ) -> Talk[list[str]]:
        """Start one instance per item of `datas`, all or none, and return their ids."""
        items = listed("a batch", datas)
        if not items:
            return []
        if len(items) > limits.BATCH_STARTS:
            raise RequestError(
                "request.invalid", f"a batch holds at most {limits.BATCH_STARTS}; got {len(items)}"
            )
        whose, same = self._whose(tenant), StartOptions(priority=priority, timezone=timezone)
        bodies = [_new_instance(data, whose, namespace, same) for data in items]
        return (yield from self._started(definition, "/instances/batch?ids=true", bodies, Ids)).ids

    @verb
    def signal(
        self, instance: str, name: str, payload: Any = None, *, id: str | None = None
    ) -> Talk[str]:
        """Send a signal (a control word, or any name) and return its id once it is durable."""
        path = of_instance(instance, "/signals")
        sending.signal_submission(instance, name, payload, "id" if id is None else id, 0)
        body = {
            "signal_type": sending.signal_name(name),
            "payload": Raw(encode_payload(payload, where="payload")),
            "signal_id": id,
        }
        return (yield from self._send("POST", path, body, SignalId)).signal_id

    # asking --------------------------------------------------------------------------------------

    @verb
    def pause(self, instance: str) -> Talk[None]:
        """Pause; in a wait the pause is held until the wait ends."""
        yield from self._command(instance, "pause")

    @verb
    def resume(self, instance: str) -> Talk[None]:
        """Go on from a pause, or withdraw one that is held."""
        yield from self._command(instance, "resume")

    @verb
    def cancel(self, instance: str) -> Talk[None]:
        """Cancel; protected parts and clean-up run first."""
        yield from self._command(instance, "cancel")

    @verb
    def retry(self, instance: str) -> Talk[None]:
        """Go on from the failed nodes of a failed instance."""
        yield from self._command(instance, "retry")

    @verb
    def resolve(self, instance: str, effect: str, action: str, result: Any = None) -> Talk[None]:
        """Decide an indeterminate effect: happened (with its result), failed, skip, or again."""
        args = {"key": effect, "action": action, "result": result}
        yield from self._command(instance, "resolve", args)

    @verb
    def migrate(
        self, instance: str, definition: Definition | str | None = None, *, undo: bool = False
    ) -> Talk[None]:
        """Move a standing instance to another version, or undo the last move."""
        if undo or definition is None:
            yield from self._command(instance, "migrate", {"undo": True})
            return
        found = yield from self._get(f"/inspect{of_instance(instance)}", InstanceView)
        place = (found.summary.tenant, found.summary.namespace)
        target, _known = yield from self._sequence(definition, *place)
        body = {"instance_id": known_id(instance), "target_sequence_id": target}
        yield from self._tell("POST", "/sequences/migrate-instance", body)

    @verb
    def command(
        self, instance: str, verb: sending.Verb, args: Any = None, *, id: str | None = None
    ) -> Talk[Verdict]:
        """Ask for a state change; the kernel's verdict, and the same one for the same `id`."""
        return (yield from self._command(instance, verb, args, id))

    def _command(
        self, instance: str, verb: sending.Verb, args: Any = None, id: str | None = None
    ) -> Talk[Verdict]:
        path = of_instance(instance, "/commands")
        sending.command_submission(instance, verb, args, "id" if id is None else id, 0)
        body = {
            "verb": verb,
            "args": Raw(encode_payload(args, where="arguments")),
            "id": id,
        }
        return (yield from self._send("POST", path, body, Verdict))

    @verb
    def wait_for(
        self,
        instance: str,
        state: str | Sequence[str] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> Talk[str]:
        """Wait until the instance is in a state (by default any terminal one) and return it."""
        wanted = wanted_states(state)
        path, until = f"/inspect{of_instance(instance, '/state')}", ",".join(sorted(wanted))
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = limits.LONG_POLL_MS if end is None else int((end - time.monotonic()) * 1000)
            wait_ms = max(0, min(left, limits.LONG_POLL_MS))
            found = yield from self._get(
                path, State, patience_ms=wait_ms, until=until, wait_ms=wait_ms
            )
            if found.state in wanted:
                return found.state
            if end is not None and time.monotonic() >= end:
                raise RequestError(
                    "request.timeout",
                    f"instance {instance} is {found.state}, not {' or '.join(sorted(wanted))} yet; "
                    "`explain` says why",
                )
            yield Pause(_PAUSE_S)

    # looking -------------------------------------------------------------------------------------

    @verb
    def explain(self, instance: str) -> Talk[Explanation]:
        """Why an instance stands still, what would release it, and when it can move by itself."""
        path = f"/inspect{of_instance(instance, '/explain')}"
        return (yield from self._get(path, Explanation))

    @verb
    def replay(self, instance: str) -> Talk[Replay]:
        """Run an instance again from its record, with no effect, and compare entry by entry."""
        return (yield from self._get(f"/inspect{of_instance(instance, '/replay')}", Replay))

    @verb
    def clock(self) -> Talk[ClockView]:
        """The server's logical now, and how its ticks become instants."""
        return (yield from self._get("/inspect/clock", ClockView))

    def owned(self) -> bool:
        """Whether an engine runs there: a server has one."""
        return True

    @verb
    def now(self) -> Talk[dt.datetime]:
        """Logical now."""
        found = yield from self._get("/inspect/clock", ClockView)
        return dt.datetime.fromtimestamp(found.now_ms / 1000, dt.UTC)

    @property
    def inspect(self) -> Inspect[D]:
        """Everything that only reads: show, tree, timeline, audit, explain, replay."""
        return Inspect(self._driver)

    @property
    def limits(self) -> Limits[D]:
        """Rate limits: set, close, open, delete, list, show."""
        return Limits(self._driver)

    @property
    def pools(self) -> Pools[D]:
        """Pools of resources: create, add, update, remove, delete, list, show."""
        return Pools(self._driver)

    @property
    def crons(self) -> Crons[D]:
        """Schedules: create, update, enable, disable, delete, list, show, next_fires, preview."""
        return Crons(self._driver)

    def _started(
        self,
        definition: Definition | str,
        path: str,
        bodies: list[dict[str, Any]],
        gives: type[T],
    ) -> Talk[T]:
        """Start what bodies tell; a sequence that was removed meanwhile is looked for again."""
        tenant, namespace = bodies[0]["tenant_id"], bodies[0]["namespace"]
        while True:
            sequence, known = yield from self._sequence(definition, tenant, namespace)
            for each in bodies:
                each["sequence_id"] = sequence
            body = bodies[0] if gives is Id else {"instances": bodies}
            try:
                return (yield from self._send("POST", path, body, gives, tenant))
            except RequestError as error:
                if error.code != "definition.unknown" or not known:
                    raise
                self._known.forget(sequence)


def _new_instance(data: Any, tenant: str, namespace: str, options: StartOptions) -> dict[str, Any]:
    """An instance as the API takes it; what cannot be sent is refused as the engine would."""
    for name in options:
        if name not in StartOptions.__annotations__:
            known = ", ".join(StartOptions.__annotations__)
            raise TypeError(f"start() got an unexpected argument {name!r}; it has {known}")
    priority = options.get("priority", "Normal")
    if priority not in PRIORITIES:
        raise invalid("priority", f"one of {', '.join(PRIORITIES)}", priority)
    flags = {
        "dry_run": options.get("dry_run", False),
        "dry_run_auto_approve": options.get("auto_approve", False),
    }
    for name, value in flags.items():
        check_flag(name, value)
    return {
        "tenant_id": tenant,
        "namespace": namespace,
        "priority": priority,
        "timezone": options.get("timezone", "UTC"),
        "metadata": _encoded("metadata", options.get("metadata")),
        "context": {
            "data": _encoded("data", data),
            "config": _encoded("config", options.get("config")),
        },
        "concurrency_key": options.get("concurrency_key"),
        "max_concurrency": options.get("max_concurrency", 1),
        "session_id": options.get("session"),
        "budget": options.get("budget"),
        **flags,
        **_beginning(options.get("at")),
    }


def _encoded(name: str, value: Any) -> Raw | None:
    if value is None:
        return None
    return Raw(encode_payload(value, where=name, limit=limits.CONTEXT_BYTES))


def _beginning(at: dt.datetime | dt.timedelta | None) -> dict[str, Any]:
    if at is None:
        return {}
    if isinstance(at, dt.timedelta):
        return {"start_in_ms": span_ms("at", at)}
    instant_ms("at", at)
    return {"next_fire_at": at}
