"""Outcomes that the dispatcher itself knows: of calls that were cancelled, or never made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.inputs import EffectDoubted, EffectFailed, EffectReconciled, encode_input
from detent.model.payload import clean_text

if TYPE_CHECKING:
    from detent.model.decision import Order


def cancelled(order: Order, dispatch: int) -> bytes:
    """A call cancelled while in flight: doubt, unless it may be repeated anyway."""
    return _unclear(order, dispatch, "cancelled while in flight", "cancelled")


def not_called(order: Order, dispatch: int) -> bytes:
    """A call cancelled after its start mark and certainly before it was made."""
    if order.dispatch and order.doubt != "repeatable":  # an earlier one may have been made
        return cancelled(order, dispatch)
    return _failed(order, dispatch, "cancelled before it was called", "cancelled")


def lapsed(order: Order, dispatch: int) -> bytes:
    """A call with a start mark that was not made before its partition went to another writer."""
    reason = "the lease was lost before the call"
    return encode_input(
        EffectDoubted(key=order.key, dispatch=dispatch, reason=reason, crashed=True)
    )


def broken(order: Order, dispatch: int, error: BaseException) -> bytes:
    """A call whose end could not be read, which is a fault of ours."""
    reason = f"the outcome could not be read: {type(error).__name__}: {error}"
    return _unclear(order, dispatch, clean_text(reason), "consistency")


def _unclear(order: Order, dispatch: int, reason: str, kind: str) -> bytes:
    key = order.key
    if order.mode == "reconcile":
        return encode_input(
            EffectReconciled(key=key, dispatch=dispatch, verdict="retry", message=reason)
        )
    if order.doubt == "repeatable":
        return _failed(order, dispatch, reason, kind)
    return encode_input(EffectDoubted(key=key, dispatch=dispatch, reason=reason))


def _failed(order: Order, dispatch: int, message: str, kind: str) -> bytes:
    return encode_input(
        EffectFailed(key=order.key, dispatch=dispatch, message=message, retryable=False, kind=kind)
    )
