"""The engine's verbs as talks: start, signal, wait, look; each is written once."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from typing import Any, Unpack, cast

from msgspec import Raw, Struct

from detent.client.crons import Crons
from detent.client.events import Events
from detent.client.gates import Breakers, Limits, Pools
from detent.client.inspect import Inspect
from detent.client.steering import Id, Steers
from detent.client.talking import Pause, Talk
from detent.client.verb import D, T, of_instance, verb
from detent.client.webhooks import Webhooks
from detent.client.work import Work
from detent.kernel.explain import Explanation
from detent.kernel.replay import Replay
from detent.model import limits
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
from detent.service.starting import PRIORITIES, StartOptions, StartRequest

_PAUSE_S = 0.05  # where a server answers early


class Ids(Struct, frozen=True):
    """What was started at once."""

    ids: list[str] = []


class SignalId(Struct, frozen=True):
    """What was sent."""

    signal_id: str


class State(Struct, frozen=True):
    """The state of an instance."""

    state: str


class Verbs(Steers[D]):
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
        body = _new_instance(data, self._whose(tenant), namespace, options)
        return (yield from self._start(definition, body, key))

    @verb
    def start_request(self, definition: Definition | str, request: StartRequest) -> Talk[str]:
        """Start from a prepared request; its policies must be none, as those are the server's."""
        if request.policies:
            raise invalid("policies", "none: they are those of the server", request.policies)
        named = {name: getattr(request, name) for name in StartOptions.__annotations__}
        options = cast("StartOptions", named)
        body = _new_instance(request.data, request.tenant, request.namespace, options)
        return (yield from self._start(definition, body, request.key))

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
    def breakers(self) -> Breakers[D]:
        """Circuit breakers: list, show, reset."""
        return Breakers(self._driver)

    @property
    def crons(self) -> Crons[D]:
        """Schedules: create, update, enable, disable, delete, list, show, next_fires, preview."""
        return Crons(self._driver)

    @property
    def events(self) -> Events[D]:
        """Events of producers: send, send_many, list, show."""
        return Events(self._driver)

    @property
    def webhooks(self) -> Webhooks[D]:
        """Deliveries: outbox, list, show, preview, redeliver, drop, disabled, enable."""
        return Webhooks(self._driver)

    @property
    def work(self) -> Work[D]:
        """Tasks of external workers: poll, heartbeat, complete, fail, and what there is to see."""
        return Work(self._driver)

    def _start(
        self, definition: Definition | str, body: dict[str, Any], key: str | None
    ) -> Talk[str]:
        if key is not None:
            check_text("key", key, limits.KEY_CHARS)
            body["idempotency_key"] = key
        return (yield from self._started(definition, "/instances", [body], Id)).id

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
