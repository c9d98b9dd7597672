"""What a user's own policy answers: allow, or not, with a reason and what to do instead.

A policy that raises, times out or answers anything else is taken as `fail`: it fails closed.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from detent.model.errors import RequestError
from detent.model.limits import DURATION_MS


class PolicyAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy's verdict; made by the functions below."""

    allowed: bool
    action: Literal["", "pause", "fail", "skip_with_log", "defer"] = ""
    reason: str = ""
    until_ms: int | None = None
    for_ms: int | None = None


def allow() -> PolicyAnswer:
    """The step may act."""
    return PolicyAnswer(allowed=True)


def pause(reason: str) -> PolicyAnswer:
    """The instance pauses until a person resumes it."""
    return PolicyAnswer(allowed=False, action="pause", reason=reason)


def fail(reason: str) -> PolicyAnswer:
    """The step fails."""
    return PolicyAnswer(allowed=False, action="fail", reason=reason)


def skip(reason: str) -> PolicyAnswer:
    """The step is passed over, with an entry in the journal."""
    return PolicyAnswer(allowed=False, action="skip_with_log", reason=reason)


def defer(reason: str, *, until_ms: int | None = None, for_ms: int | None = None) -> PolicyAnswer:
    """The step is asked again later: at an instant (`until_ms`, Unix time) or after a while."""
    if (until_ms is None) == (for_ms is None):
        raise RequestError("request.invalid", "defer expects either until_ms or for_ms; give one")
    if for_ms is not None and not 0 <= for_ms <= DURATION_MS:
        limit = f"from 0 to {DURATION_MS:,}"
        raise RequestError("request.invalid", f"defer expects for_ms {limit}, got {for_ms:,}")
    return PolicyAnswer(
        allowed=False, action="defer", reason=reason, until_ms=until_ms, for_ms=for_ms
    )
