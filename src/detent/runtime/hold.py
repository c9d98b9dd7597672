"""Why a writer stands still, and when it tries again.

While it holds, callers are refused with the code, and what nobody can send again (outcomes, marks,
arrivals) stays queued. The next try is an ordinary turn; if it succeeds, the hold is over.
"""

from __future__ import annotations

FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 5_000


class Hold:
    """The present hold; `code` is empty when there is none."""

    __slots__ = ("_pause_ms", "begun", "code", "message", "retry_at")

    def __init__(self) -> None:
        self.begun = 0  # how often it began or was prolonged
        self.code = ""
        self.message = ""
        self.retry_at = 0
        self._pause_ms = FIRST_PAUSE_MS

    def begin(self, code: str, message: str, now_ms: int, pause_ms: int = 0) -> bool:
        """Hold from now on; True when that is news. Without a fixed pause each try waits longer."""
        self.begun += 1
        news = code != self.code
        if news:
            self._pause_ms = FIRST_PAUSE_MS
        self.code = code
        self.message = message
        self.retry_at = now_ms + (pause_ms or self._pause_ms)
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        return news

    def standing(self, now_ms: int) -> bool:
        """Whether it is too early to try again."""
        return bool(self.code) and now_ms < self.retry_at

    def end(self) -> bool:
        """Go on; True when there was a hold."""
        held = bool(self.code)
        self.code = ""
        self.message = ""
        return held
