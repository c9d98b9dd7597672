"""Circuit breakers of a tenant: handlers that fail again and again are left alone for a while.

A breaker counts the failures of one handler since its last success. From `threshold` on it is open:
nothing passes before `until`, a cool-down after the newest failure. Then one call passes, the
probe, which moves `until` on by another cool-down: a success closes the breaker, a failure opens it
anew, and a probe that nobody ever answers makes room for the next one. So an open breaker is a rule
that lets one pass in a cool-down, and the gate's lines treat it as they treat any other rule.

A breaker carries the threshold and the cool-down by which it last counted.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from detent.model import limits


class BreakerRules(NamedTuple):
    """How many failures in a row open a breaker (0: none ever do), and for how long."""

    threshold: int = limits.BREAKER_THRESHOLD
    cooldown_ms: int = limits.BREAKER_COOLDOWN_MS


class Breaker(Struct, kw_only=True, omit_defaults=True):
    """How one handler fares; its encoded form is a row of the gate."""

    failures: int = 0  # since the last success
    opened: int = 0  # the tick of the newest failure, while it is open
    until: int = 0  # the tick at which one call may pass; 0: closed
    probe: int = -1  # the tick at which that call passed; -1: none is under way
    threshold: int
    cooldown_ms: int

    def broke(self, tick: int, rules: BreakerRules, resolution_ms: int) -> None:
        """Count a failure; from the threshold on, nothing passes for a cool-down."""
        self.threshold, self.cooldown_ms = rules
        self.failures += 1
        if self.until or self.failures >= self.threshold:
            self.opened, self.until = tick, self._later(tick, resolution_ms)
            self.probe = -1

    def close(self) -> None:
        """Forget the failures."""
        self.failures = self.opened = self.until = 0
        self.probe = -1

    def let_pass(self, tick: int, resolution_ms: int) -> None:
        """Let the probe pass, and nobody else for a cool-down."""
        self.probe, self.until = tick, self._later(tick, resolution_ms)

    def take_back(self, tick: int) -> None:
        """The probe of that tick was not made: another may be."""
        if self.probe == tick:
            self.probe, self.until = -1, max(1, tick)

    def state(self, tick: int) -> str:
        """closed, open, or half_open: a probe is under way, or the next call is one."""
        if not self.until:
            return "closed"
        return "open" if self.probe < 0 and tick < self.until else "half_open"

    def _later(self, tick: int, resolution_ms: int) -> int:
        return tick + max(1, -(-self.cooldown_ms // resolution_ms))


class Breakers:
    """The breakers of one tenant, by handler; only handlers that failed once have one."""

    def __init__(self, resolution_ms: int) -> None:
        self.known: dict[str, Breaker] = {}
        self._resolution_ms = resolution_ms
        self._changed: dict[str, None] = {}

    def free_at(self, handler: str) -> int:
        """When a call of a handler may pass; 0 while its breaker is closed."""
        breaker = self.known.get(handler)
        return 0 if breaker is None else breaker.until

    def let_pass(self, handler: str, tick: int) -> bool:
        """A call passes; True when it is the probe of an open breaker."""
        breaker = self.known.get(handler)
        if breaker is None or not breaker.until:
            return False
        breaker.let_pass(tick, self._resolution_ms)
        self._changed[handler] = None
        return True

    def take_back(self, handler: str, tick: int) -> None:
        """A probe that passed at a tick was not made."""
        breaker = self.known.get(handler)
        if breaker is not None:
            breaker.take_back(tick)
            self._changed[handler] = None

    def broke(self, handler: str, tick: int, rules: BreakerRules) -> Breaker:
        """Count a failure of a handler."""
        breaker = self.known.get(handler)
        if breaker is None:
            self._make_room()
            breaker = Breaker(threshold=rules.threshold, cooldown_ms=rules.cooldown_ms)
            self.known[handler] = breaker
        breaker.broke(tick, rules, self._resolution_ms)
        self._changed[handler] = None
        return breaker

    def close(self, handler: str) -> bool:
        """Close a breaker and forget its failures; False when there was nothing to forget."""
        breaker = self.known.get(handler)
        if breaker is None or not breaker.failures:
            return False
        breaker.close()
        self._changed[handler] = None
        return True

    # rows ----------------------------------------------------------------------------------------

    def read(self, handler: str, body: bytes) -> None:
        """Take a stored breaker in."""
        self.known[handler] = read_breaker(body)

    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._changed)

    def take_rows(self) -> dict[tuple[str, str, int], bytes | None]:
        """The rows changed since the last time; None removes one."""
        changed, self._changed = self._changed, {}
        return {
            ("breaker", handler, 0): _encode(self.known[handler]) if handler in self.known else None
            for handler in changed
        }

    def _make_room(self) -> None:
        """Forget the healthiest when there are too many."""
        if len(self.known) < limits.BREAKERS_PER_TENANT:
            return
        gone = min(self.known, key=lambda name: (self.known[name].until, self.known[name].failures))
        del self.known[gone]
        self._changed[gone] = None


_decode = msgspec.json.Decoder(Breaker).decode
_encode = msgspec.json.Encoder().encode


def read_breaker(body: bytes) -> Breaker:
    """A breaker as its row says."""
    return _decode(body)
