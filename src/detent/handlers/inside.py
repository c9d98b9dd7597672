"""`send_signal` and `query_instance`: effects that the engine performs on itself.

They are plain functions on the dispatcher's pool and reach the engine through `Inside`, which is
not the public, guarded door: so they are exempt from `engine.reentrant`, and users' handlers are
not. A signal's id is derived from the effect's key, so that a repeated call is one signal; that is
why both are `keyed` and need no start mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

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
_FINAL = ("instance.not_found", "instance.terminal", "request.invalid", "payload.too_large")


class Inside(Protocol):
    """The engine's inner door; both calls may block, but never on the caller's own turn."""

    def signal(
        self, target: str, name: str, payload: Any, *, id: str, tenant: str, sender: str
    ) -> Verdict:
        """Tell an instance of the same tenant a signal; the same id twice is one signal."""

    def query(self, target: str, tenant: str) -> dict[str, Any]:
        """The state of an instance of the same tenant, `{"found": false}` where there is none."""


def register_inside(registry: Registry, inside: Inside) -> None:
    """Add the two handlers to an engine's registry."""

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

    for function in (send_signal, query_instance):
        registry.add_builtin(_builtin(function))


def _builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    function.detent_handler = Declaration(  # type: ignore[attr-defined]
        name=function.__name__, doubt="keyed", withdrawable=False, merge=False
    )
    return function


def _target(instance_id: str) -> str:
    try:
        return str(UUID(instance_id))
    except ValueError as error:
        message = f"instance_id must be a UUID, got {instance_id!r}"
        raise Failed(message, retryable=False, code="request.invalid") from error


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
