"""The outcome inputs that handlers produce, as bytes ready for the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw

from detent.model.errors import DetentError, RequestError
from detent.model.inputs import (
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
    encode_input,
)
from detent.model.payload import clean_text, encode_payload

if TYPE_CHECKING:
    from detent.model.decision import Order


def applied(order: Order, dispatch: int, result: bytes) -> bytes:
    """The call was made and this came back."""
    return encode_input(EffectApplied(key=order.key, dispatch=dispatch, result=Raw(result)))


def failed(
    order: Order,
    dispatch: int,
    message: str,
    *,
    retryable: bool,
    kind: str = "transport",
    details: Any = None,
) -> bytes:
    """Definitely not done; details that cannot be stored are replaced by the reason."""
    return encode_input(
        EffectFailed(
            key=order.key,
            dispatch=dispatch,
            message=clean_text(message),
            retryable=retryable,
            kind=kind,
            details=_storable(details),
        )
    )


def doubted(order: Order, dispatch: int, reason: str) -> bytes:
    """Nobody knows whether it happened."""
    return encode_input(EffectDoubted(key=order.key, dispatch=dispatch, reason=clean_text(reason)))


def reconciled(
    order: Order,
    dispatch: int,
    verdict: Literal["applied", "failed", "retry"],
    *,
    message: str = "",
    result: bytes | None = None,
) -> bytes:
    """What the handler's own reconcile function found."""
    return encode_input(
        EffectReconciled(
            key=order.key,
            dispatch=dispatch,
            verdict=verdict,
            result=None if result is None else Raw(result),
            message=clean_text(message),
        )
    )


def text_of(error: BaseException) -> str:
    """`TypeName: text`, whatever the exception does when asked for its text."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the failure itself
        text = "(its text cannot be read)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def code_of(error: BaseException) -> Any:
    """Details that name the stable code of one of our own errors."""
    return {"code": error.code} if isinstance(error, DetentError) else None


def _storable(details: Any) -> Any:
    if details is None:
        return None
    try:
        return Raw(encode_payload(details, where="the failure's details"))
    except RequestError as error:
        return {"code": error.code, "message": error.message}
