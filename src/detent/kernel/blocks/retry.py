"""Retries of a step: whether one follows a failure, and after how long."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec.structs import replace

from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.definition import Retry
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame


def backoff_ms(run: Run, node: Node, frame: Frame, path: str, failure: Failure) -> int | None:
    """The pause before the next attempt, or None when this failure is final."""
    policy = node.block.retry
    if policy is None or not failure.retryable or frame.attempt >= policy.max_attempts:
        return None
    if _named_final(policy.non_retryable_codes, failure.details):
        return None
    condition = node.conditions[0]
    if condition is not None and not _wanted(run, condition, failure):
        return None
    pause = _pause(policy, frame.attempt - 1) + _jitter(run, path, frame.attempt, policy.jitter)
    return max(0, pause, _asked_for(frame, failure.details))


def _asked_for(frame: Frame, details: Any) -> int:
    """The pause that the other side asked for; where the step has limits, these are closed."""
    asked = details.get("retry_after_ms") if isinstance(details, dict) else None
    return asked if type(asked) is int and not frame.granted else 0


def _pause(policy: Retry, n: int) -> int:
    """Grow initial by multiplier^n up to the cap; multiplication is the same on every machine."""
    if n == 0 or policy.initial_backoff == 0:
        return policy.initial_backoff
    grown, factor = float(policy.initial_backoff), policy.backoff_multiplier
    while n:
        if n & 1:
            grown *= factor
        factor *= factor
        n >>= 1
    return int(min(grown, policy.max_backoff))


def _named_final(codes: tuple[str, ...], details: Any) -> bool:
    if not codes or not isinstance(details, dict):
        return False
    return any(
        str(details[name]) in codes for name in ("error_code", "code", "status") if name in details
    )


def _wanted(run: Run, condition: Any, failure: Failure) -> bool:
    error = {"message": failure.message, "details": failure.details}
    scope = run.scope({"_error": error})
    data = scope.data if isinstance(scope.data, dict) else {}
    scope = replace(scope, data={**data, "_error": error})
    if isinstance(condition, ExpressionError):
        return False
    try:
        return bool(condition.test(scope))
    except ExpressionError:
        return False


def _jitter(run: Run, path: str, attempt: int, spread: int | None) -> int:
    """Within plus or minus the spread, from the place and attempt alone."""
    if not spread:
        return 0
    words = f"{run.snapshot.id}\x00{run.snapshot.generation}\x00{path}\x00{attempt}\x00jitter"
    point = int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big")
    return point % (2 * spread + 1) - spread
