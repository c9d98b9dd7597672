"""`send_signal`, `query_instance` and `emit_event`: effects that the engine performs on itself.

They are plain functions on the dispatcher's pool and reach the engine through `Inside`, which is
not the public, guarded door: so they are exempt from `engine.reentrant`, and users' handlers are
not. A signal's id, and that of an instance which an event starts, is derived from the effect's key
or from the author's own, so that a repeated call is one; that is why all are `keyed` and need no
start mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.declare import Declaration
from detent.model.ids import derived_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.handlers.context import HandlerContext
    from detent.handlers.registry import Registry
    from detent.model.decision import Verdict

_SIGNALS = ("pause", "resume", "cancel", "update_context")
_CUSTOM = "custom:"
# What the engine answers when the target itself is the reason; asking again changes nothing.
_FINAL = (
    "definition.unknown",
    "handler.unknown",
    "instance.not_found",
    "instance.terminal",
    "payload.invalid",
    "payload.schema",
    "payload.too_large",
    "request.invalid",
    "trigger.disabled",
    "trigger.not_found",
)


class Event(Struct, frozen=True, kw_only=True):
    """An event on its way to a trigger; `key` makes what it starts one, `id` the telling of it."""

    trigger: str
    data: Any
    meta: Any
    key: str
    id: str
    tenant: str
    sender: str


class Inside(Protocol):
    """The engine's inner door; its calls may block, but never on the caller's own turn."""

    def signal(
        self, target: str, name: str, payload: Any, *, id: str, tenant: str, sender: str
    ) -> Verdict:
        """Tell an instance of the same tenant a signal; the same id twice is one signal."""

    def query(self, target: str, tenant: str) -> dict[str, Any]:
        """The state of an instance of the same tenant, `{"found": false}` where there is none."""

    def emit(self, event: Event) -> Verdict:
        """Start what a trigger of the same tenant names; the result is the step's output."""


def register_inside(registry: Registry, inside: Inside) -> None:
    """Add the three handlers to an engine's registry."""

    def send_signal(
        instance_id: str,
        signal_type: str | dict[str, str],
        ctx: HandlerContext,
        payload: Any = None,
    ) -> dict[str, str]:
        target, name = _target(instance_id), _signal(signal_type)
        signal_id = derived_id(ctx.tenant, "signal", ctx.key)
        verdict = inside.signal(
            target, name, payload, id=signal_id, tenant=ctx.tenant, sender=ctx.instance_id
        )
        if not verdict.ok:
            _refuse(verdict)
        return {"signal_id": signal_id}

    def query_instance(instance_id: str, ctx: HandlerContext) -> dict[str, Any]:
        return inside.query(_target(instance_id), ctx.tenant)

    def emit_event(
        trigger_slug: str,
        ctx: HandlerContext,
        data: Any = None,
        meta: Any = None,
        dedupe_key: str | None = None,
        dedupe_scope: Literal["parent", "tenant"] = "parent",
    ) -> Any:
        key = _event_key(trigger_slug, ctx, dedupe_key, dedupe_scope)
        event = Event(
            trigger=trigger_slug,
            data={} if data is None else data,
            meta={} if meta is None else meta,
            key=key,
            id=derived_id(ctx.tenant, "event", f"told\x00{ctx.key}"),
            tenant=ctx.tenant,
            sender=ctx.instance_id,
        )
        verdict = inside.emit(event)
        if not verdict.ok:
            _refuse(verdict)
        return verdict.result

    for function in (send_signal, query_instance, emit_event):
        registry.add_builtin(_builtin(function))


def _builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    function.detent_handler = Declaration(  # type: ignore[attr-defined]
        name=function.__name__,
        doubt="keyed",
        withdrawable=False,
        merge=False,
        opens=False,  # what they are given becomes part of another instance
    )
    return function


def _target(instance_id: str) -> str:
    try:
        return str(UUID(instance_id))
    except ValueError as error:
        message = f"instance_id must be a UUID, got {instance_id!r}"
        raise Failed(message, retryable=False, code="request.invalid") from error


def _event_key(slug: str, ctx: HandlerContext, own: str | None, scope: str) -> str:
    """What makes the started instance one: this effect, or the author's key in its scope."""
    if own is None:
        words = ["effect", ctx.key]
    elif not own:
        message = "dedupe_key must not be empty; leave it out to start an instance for each event"
        raise Failed(message, retryable=False, code="request.invalid")
    else:
        words = [scope, ctx.instance_id if scope == "parent" else "", slug, own]
    return "event:" + derived_id(ctx.tenant, "event", "\x00".join(words))


def _signal(given: str | dict[str, str]) -> str:
    """The signal's name as inputs carry it: a word of our own, or `custom:<name>`."""
    if isinstance(given, dict) and list(given) == ["custom"]:
        given = _CUSTOM + given["custom"]
    if isinstance(given, str):
        custom = given.startswith(_CUSTOM) and len(given) > len(_CUSTOM)
        if custom or given in _SIGNALS:
            return given
    known = ", ".join(_SIGNALS)
    message = f'signal_type must be one of {known} or {{"custom": name}}, got {given!r}'
    raise Failed(message, retryable=False, code="request.invalid")


def _refuse(verdict: Verdict) -> None:
    if verdict.code in _FINAL:
        raise Failed(verdict.message, retryable=False, code=verdict.code)
    # Not known whether it arrived: doubt, and the same id is sent again.
    raise RuntimeError(f"{verdict.message} [{verdict.code}]")
