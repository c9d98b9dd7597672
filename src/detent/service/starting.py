"""Starting an instance: check everything that can be checked, then one input and one birth."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import jsonschema_rs
from msgspec import Raw, Struct
from msgspec.structs import replace

from detent.calendar import check_zone, holidays_of
from detent.kernel.builtin import MOVES
from detent.model import limits
from detent.model.decision import ANYBODY, Birth, HandlerSpec
from detent.model.definition import Definition, Step
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM, derived_id, partition_of
from detent.model.inputs import Started, encode_input
from detent.model.labels import labels_of
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.model.plan import SENDS
from detent.ports.store import NewArrival
from detent.service.arguments import (
    check_flag,
    check_text,
    instant_ms,
    invalid,
    listed,
    span_ms,
)
from detent.service.blocks import every_step

BUDGETS = ("max_steps", "max_total_tokens", "max_input_tokens", "max_output_tokens")
_KNOWN_AT_THE_CALL = ("{{", "credentials://")  # only then are these params what is called with
PRIORITIES = {"Low": 0, "Normal": 1, "High": 2, "Critical": 3}


class StartRequest(Struct, frozen=True, kw_only=True):
    """What a caller asks for, as given."""

    data: Any = None
    config: Any = None
    metadata: Any = None
    key: str | None = None
    tenant: str = "default"
    namespace: str = "default"
    priority: str = "Normal"
    timezone: str = "UTC"
    at: dt.datetime | dt.timedelta | None = None
    hold: bool = False  # nothing moves before it is asked to begin
    dry_run: bool = False
    auto_approve: bool = False
    policies: tuple[Any, ...] = ()
    concurrency_key: str | None = None
    max_concurrency: int = 1
    session: str | None = None
    budget: Mapping[str, int] | None = None


class StartOptions(TypedDict, total=False):
    """What a start takes beside definition, data, key and labels, by name."""

    priority: str
    timezone: str
    at: dt.datetime | dt.timedelta | None
    config: Any
    metadata: Any
    dry_run: bool
    auto_approve: bool
    concurrency_key: str | None
    max_concurrency: int
    session: str | None
    budget: Mapping[str, int] | None


class Moment(Struct, frozen=True, kw_only=True):
    """How a request's instants become ticks, and where fresh ids and seeds come from."""

    tick: int
    epoch_ms: int
    resolution_ms: int
    fresh_id: str
    seed: str


def start_submission(
    definition: Definition, request: StartRequest, now: Moment, ack: int
) -> Submission:
    """The submission that makes a new instance; raises RequestError with nothing written."""
    check_labels(request.tenant, request.namespace)
    if type(request.priority) is not str or request.priority not in PRIORITIES:
        raise invalid("priority", f"one of {', '.join(PRIORITIES)}", request.priority)
    check_timezone(request.timezone)
    check_flag("dry_run", request.dry_run)
    check_flag("auto_approve", request.auto_approve)
    check_schema(definition, request.data)
    check_holidays(definition, request.config)
    instance = now.fresh_id
    if request.key is not None:
        instance = instance_id(request.tenant, request.key, dry_run=request.dry_run)
    priority = PRIORITIES[request.priority]
    data, config = _context(request)
    started = Started(
        instance=instance,
        tenant=request.tenant,
        namespace=request.namespace,
        definition=definition.hash,
        priority=priority,
        timezone=request.timezone,
        data=data,
        config=config,
        metadata=_checked("metadata", request.metadata),
        key=request.key,
        at=None if request.at is None else tick_of(request.at, now),
        hold=request.hold,
        dry_run=request.dry_run,
        auto_approve=request.auto_approve,
        seed=now.seed,
    )
    started = _with_rest(started, request)
    birth = Birth(
        id=instance,
        tenant=request.tenant,
        namespace=request.namespace,
        definition=definition.hash,
        priority=priority,
        key=request.key,
        labels=labels_of(request.metadata),
    )
    return Submission(instance, encode_input(started), ack=ack, birth=birth)


def _with_rest(started: Started, request: StartRequest) -> Started:
    """What few starts ask for; beyond 15 names, a call makes a dictionary of all of them."""
    most, budget = _concurrency(request), _budget(request.budget)
    session = _session(request.session)
    key, policies = request.concurrency_key, request.policies
    if most == 1 and key is None and session is None and budget is None and not policies:
        return started
    return replace(
        started,
        policies=policies,
        concurrency_key=key,
        max_concurrency=most,
        session=session,
        budget=budget,
    )


def batch_of(shared: StartRequest, datas: Any) -> list[StartRequest]:
    """One request per item of data, not more than a batch holds."""
    items = listed("a batch", datas)
    if len(items) > limits.BATCH_STARTS:
        raise RequestError(
            "request.invalid", f"a batch holds at most {limits.BATCH_STARTS}; got {len(items)}"
        )
    return [replace(shared, data=data) for data in items]


def start_arrival(made: Submission, partitions: int, salt: bytes) -> NewArrival:
    """A start to be left for the writer; the same instance twice is one."""
    instance = made.instance
    p = partition_of(instance, partitions)
    return NewArrival(f"start:{instance}", p, instance, made.body, made.birth, salt)


def _concurrency(request: StartRequest) -> int:
    """How many instances with the same key may move at once."""
    most = request.max_concurrency
    if request.concurrency_key is not None:
        check_text("concurrency_key", request.concurrency_key, limits.KEY_CHARS)
    if type(most) is not int or not 1 <= most <= limits.CONCURRENCY:
        raise invalid("max_concurrency", f"a whole number from 1 to {limits.CONCURRENCY}", most)
    return most


def _session(session: str | None) -> str | None:
    if session is not None:
        check_text("session", session, limits.SESSION_CHARS)
    return session


def _budget(budget: Any) -> dict[str, int] | None:
    """The numbers an instance may not exceed, by name."""
    if budget is None:
        return None
    if not isinstance(budget, Mapping) or not all(name in BUDGETS for name in budget):
        raise invalid("budget", f"an object of {', '.join(BUDGETS)}", budget)
    kept = {name: budget[name] for name in BUDGETS if budget.get(name) is not None}
    for name, most in kept.items():
        if type(most) is not int or not 0 <= most <= limits.BUDGET_MOST:
            raise invalid(f"budget.{name}", f"a whole number up to {limits.BUDGET_MOST}", most)
    return kept or None


def instance_id(tenant: str, key: str, *, dry_run: bool = False) -> str:
    """The id of the instance a key stands for."""
    check_text("key", key, limits.KEY_CHARS)
    return derived_id(tenant, "dry-run" if dry_run else "instance", key)


def check_handlers(definition: Definition, handlers: Mapping[str, HandlerSpec]) -> None:
    """Refuse a definition with a handler nobody performs, or params that do not fit it.

    Where workers may be anybody (`ANYBODY` is among the handlers), every name is somebody's.
    """
    unknown: dict[str, str] = {}
    for step in every_step(definition) if ANYBODY not in handlers else ():
        for name in _called(step):
            if name not in MOVES and name not in handlers:
                unknown.setdefault(name, step.id)
    for policy in definition.body.policies:
        if policy.handler and policy.handler not in handlers:
            unknown.setdefault(policy.handler, "policies")
    if unknown:
        named = ", ".join(f"{name!r} (block {block})" for name, block in unknown.items())
        raise RequestError(
            "handler.unknown",
            f"no handler is registered for {named}; register it with Engine(handlers=[...]) first, "
            "or name the queue_name of external workers",
            handlers=sorted(unknown),
        )
    if definition.body.face == "plan":
        _check_sends(definition, handlers)
    for step in every_step(definition):
        for name in _performers(step):
            _check_params(step, None if step.queue_name else handlers.get(name))


def _check_sends(definition: Definition, handlers: Mapping[str, HandlerSpec]) -> None:
    """Refuse a handler that sends to people and may be called again after doubt, by its class."""
    used = dict.fromkeys(step.handler for step in every_step(definition))
    for name in SENDS.values():
        spec = handlers.get(name)
        if name in used and (spec is None or spec.doubt == "repeatable"):
            raise RequestError(
                "plan.send_repeatable",
                f"the handler {name!r} of a plan speaks to people, so it must not be repeated "
                'blindly; register it with on_doubt="once", or a class that tells calls apart',
                handler=name,
            )


def _performers(step: Step) -> list[str]:
    """The handlers that may perform a step, with the same params."""
    return [name for name in (step.handler, step.fallback_handler) if name]


def called_handlers(definition: Definition) -> Iterator[str]:
    """Every handler that a definition may call in this process, but for those of the kernel."""
    for step in every_step(definition):
        yield from (name for name in _called(step) if name not in MOVES)


def _called(step: Step) -> Iterator[str]:
    """The handlers of this process that a step may call: its own, and those beside it."""
    if not step.queue_name:
        yield from _performers(step)
    human, breach = step.wait_for_input, step.on_deadline_breach
    if human is not None and human.escalation_handler is not None:
        yield human.escalation_handler
    if breach is not None:
        yield breach.handler


def _check_params(step: Step, spec: HandlerSpec | None) -> None:
    plain = step.params is None or isinstance(step.params, dict)
    if spec is None or spec.schema is None or not plain:
        return
    if any(mark in str(step.params) for mark in _KNOWN_AT_THE_CALL):
        return
    fault = next(
        iter(jsonschema_rs.validator_for(spec.schema).iter_errors(step.params or {})), None
    )
    if fault is not None:
        place = "/".join(map(str, fault.instance_path)) or "params"
        raise RequestError(
            "request.invalid",
            f"block {step.id!r}: {place} does not fit handler {spec.name!r}: {fault.message}",
        )


def check_schema(definition: Definition, data: Any) -> None:
    """Refuse data that does not match the definition's input schema."""
    schema = definition.body.input_schema
    if schema is None:
        return
    faults = [
        {"pointer": "/" + "/".join(map(str, fault.instance_path)), "reason": fault.message}
        for fault in jsonschema_rs.validator_for(schema).iter_errors(data)
    ]
    if faults:
        text = "; ".join(f"{fault['pointer']}: {fault['reason']}" for fault in faults[:10])
        raise RequestError(
            "payload.schema", f"data does not match the input schema: {text}", faults=faults
        )


def check_holidays(definition: Definition, config: Any) -> None:
    """Refuse a config whose holidays are no dates, where some step counts business days."""
    if isinstance(config, dict) and config.get("holidays") is not None:
        delays = [step.delay for step in every_step(definition)]
        if any(delay is not None and delay.business_days_only for delay in delays):
            holidays_of(config)


def check_timezone(name: str) -> None:
    """Refuse an unknown time zone; never UTC by silence."""
    if type(name) is not str:
        raise invalid("timezone", "an IANA name such as Europe/Paris", name)
    try:
        check_zone(name)
    except RequestError as error:
        raise RequestError(error.code, f"timezone: {error.message}") from None


def _context(request: StartRequest) -> tuple[Raw | None, Raw | None]:
    """Data and config; together they are not larger than a context may be."""
    data, config = _checked("data", request.data), _checked("config", request.config)
    size = sum(memoryview(each).nbytes for each in (data, config) if each is not None)
    if size > limits.CONTEXT_BYTES:
        raise RequestError(
            "payload.too_large",
            f"data and config are {size} bytes together; the limit is {limits.CONTEXT_BYTES}",
        )
    return data, config


def _checked(name: str, value: Any) -> Raw | None:
    """A section of the context as the bytes that will be stored."""
    return (
        None
        if value is None
        else Raw(encode_payload(value, where=name, limit=limits.CONTEXT_BYTES))
    )


def check_labels(tenant: str, namespace: str) -> None:
    """Refuse a tenant or namespace that is no short text."""
    for label, value in (("tenant", tenant), ("namespace", namespace)):
        check_text(label, value, limits.NAME_CHARS)


def check_free(name: str, namespace: str) -> None:
    """Refuse what belongs to the engine: its namespace, and names that begin with its own."""
    if namespace == SYSTEM or name.startswith(f"{SYSTEM}."):
        raise RequestError(
            "request.invalid",
            f"namespace {SYSTEM!r} and names that begin with '{SYSTEM}.' belong to the engine; "
            f"choose others than {namespace!r} and {name!r}",
        )


def tick_of(at: dt.datetime | dt.timedelta, now: Moment) -> int:
    """The first tick not before an instant."""
    now_ms = now.epoch_ms + now.tick * now.resolution_ms
    ms = now_ms + span_ms("at", at) if isinstance(at, dt.timedelta) else instant_ms("at", at)
    span_ms("at", ms - now_ms)
    return max(0, -(-(ms - now.epoch_ms) // now.resolution_ms))
