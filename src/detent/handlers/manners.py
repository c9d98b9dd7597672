"""How the end of a function becomes an outcome: as a handler, as its reconcile, as a policy.

Each manner answers the same four questions: what a returned value means, what an exception means,
what it means when the parameters did not fit, and what a timeout means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw

from detent.handlers.answers import Applied, Failed, NotApplied, Retry
from detent.handlers.outcomes import applied, code_of, doubted, failed, reconciled, text_of
from detent.handlers.policies import PolicyAnswer
from detent.model.errors import RequestError
from detent.model.payload import clean_text, encode_payload

if TYPE_CHECKING:
    from detent.model.decision import Order

_encode = msgspec.json.Encoder().encode


class Manner(Protocol):
    """The meaning of each way a function can end."""

    called_in_dry_runs: bool

    def returned(self, order: Order, dispatch: int, value: Any) -> bytes:
        """What the function returned."""

    def raised(self, order: Order, dispatch: int, error: BaseException) -> bytes:
        """What the function raised."""

    def refused(self, order: Order, dispatch: int, error: RequestError) -> bytes:
        """Why the function was not called: its parameters do not fit."""

    def timed_out(self, order: Order, dispatch: int) -> bytes:
        """The function did not end in time."""


class AsHandler:
    """A handler: its class of doubt decides what an unclear end means."""

    __slots__ = ("_where", "called_in_dry_runs")

    def __init__(self, name: str, *, previews: bool = False) -> None:
        self._where = f"the result of handler {name!r}"
        self.called_in_dry_runs = previews

    def returned(self, order: Order, dispatch: int, value: Any) -> bytes:
        """The result; one that cannot be stored is an unreadable answer after a success."""
        try:
            body = encode_payload(value, where=self._where)
        except RequestError as error:
            if order.doubt == "repeatable":
                details = {"code": error.code, **error.details}
                return failed(
                    order,
                    dispatch,
                    error.message,
                    retryable=False,
                    kind="definition",
                    details=details,
                )
            return doubted(order, dispatch, f"it was called, but {error.message}")
        return applied(order, dispatch, body)

    def raised(self, order: Order, dispatch: int, error: BaseException) -> bytes:
        """`Failed` says that nothing happened; after any other exception nobody knows."""
        if isinstance(error, Failed):
            return failed(
                order, dispatch, error.message, retryable=error.retryable, details=_details(error)
            )
        if order.doubt == "repeatable":
            return failed(order, dispatch, text_of(error), retryable=True, details=code_of(error))
        return doubted(order, dispatch, text_of(error))

    def refused(self, order: Order, dispatch: int, error: RequestError) -> bytes:
        """The parameters do not fit: nothing was called, and no retry can change that.

        An order that was tried before stays in doubt: that call may have been made.
        """
        if order.dispatch and order.doubt != "repeatable":
            return doubted(order, dispatch, f"it was tried before, and now {error.message}")
        details = {"code": error.code, **error.details}
        return failed(
            order, dispatch, error.message, retryable=False, kind="definition", details=details
        )

    def timed_out(self, order: Order, dispatch: int) -> bytes:
        """An attempt that may be repeated has failed; any other is in doubt."""
        text = f"timeout after {order.timeout_ms} ms"
        if order.doubt == "repeatable":
            return failed(order, dispatch, text, retryable=True, kind="timeout")
        return doubted(order, dispatch, text)


class AsReconcile:
    """A reconcile function: whatever is not a clear answer is `retry`."""

    __slots__ = ("_name", "called_in_dry_runs")

    def __init__(self, name: str) -> None:
        self._name = name
        self.called_in_dry_runs = True

    def returned(self, order: Order, dispatch: int, value: Any) -> bytes:
        """`Applied`, `NotApplied` or `Retry`."""
        match value:
            case Applied(result):
                where = f"the reconciled result of handler {self._name!r}"
                try:
                    body = encode_payload(result, where=where)
                except RequestError as error:
                    return reconciled(order, dispatch, "retry", message=error.message)
                return reconciled(order, dispatch, "applied", result=body)
            case NotApplied(message):
                return reconciled(order, dispatch, "failed", message=str(message))
            case Retry(message):
                return reconciled(order, dispatch, "retry", message=str(message))
        got = type(value).__name__
        text = f"reconcile of handler {self._name!r} must return Applied, NotApplied or Retry"
        return reconciled(order, dispatch, "retry", message=f"{text}, got {got}")

    def raised(self, order: Order, dispatch: int, error: BaseException) -> bytes:
        """It could not tell."""
        return reconciled(order, dispatch, "retry", message=text_of(error))

    def refused(self, order: Order, dispatch: int, error: RequestError) -> bytes:
        """It could not be asked."""
        return reconciled(order, dispatch, "retry", message=error.message)

    def timed_out(self, order: Order, dispatch: int) -> bytes:
        """It did not answer."""
        text = f"reconcile gave no answer within {order.timeout_ms} ms"
        return reconciled(order, dispatch, "retry", message=text)


class AsPolicy:
    """A policy: whatever is not a clear answer is a refusal that fails the step."""

    __slots__ = ("_name", "called_in_dry_runs")

    def __init__(self, name: str) -> None:
        self._name = name
        self.called_in_dry_runs = True  # it decides and does not act, so a dry run needs its answer

    def returned(self, order: Order, dispatch: int, value: Any) -> bytes:
        """The verdict."""
        if not isinstance(value, PolicyAnswer):
            text = f"policy {self._name!r} must return allow(), pause(), fail(), skip() or defer()"
            return _refusal(order, dispatch, f"{text}, got {type(value).__name__}")
        try:
            body = encode_payload(value, where=f"the verdict of policy {self._name!r}")
        except RequestError as error:
            return _refusal(order, dispatch, error.message)
        return applied(order, dispatch, body)

    def raised(self, order: Order, dispatch: int, error: BaseException) -> bytes:
        """Fails closed."""
        return _refusal(order, dispatch, f"policy {self._name!r} raised {text_of(error)}")

    def refused(self, order: Order, dispatch: int, error: RequestError) -> bytes:
        """Fails closed."""
        return _refusal(order, dispatch, error.message)

    def timed_out(self, order: Order, dispatch: int) -> bytes:
        """Fails closed."""
        text = f"policy {self._name!r} gave no answer within {order.timeout_ms} ms"
        return _refusal(order, dispatch, text)


def would_do(order: Order, dispatch: int) -> bytes:
    """The result of a dry run: what would have been called, and was not."""
    preview = {"dry_run": True, "handler": order.handler, "would": Raw(bytes(order.request))}
    return applied(order, dispatch, _encode(preview))


def _refusal(order: Order, dispatch: int, reason: str) -> bytes:
    answer = PolicyAnswer(allowed=False, action="fail", reason=clean_text(reason))
    return applied(order, dispatch, _encode(answer))


def _details(error: Failed) -> Any:
    if error.code is None:
        return error.details
    if error.details is None:
        return {"code": str(error.code)}
    if isinstance(error.details, dict):
        return {"code": str(error.code), **error.details}
    return {"code": str(error.code), "details": error.details}
