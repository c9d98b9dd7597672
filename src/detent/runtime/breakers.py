"""Circuit breakers in the writer: which handlers fail, as far as the steps here must know.

`shaky` holds every breaker with failures, of all tenants. Those of gates whose home is here are the
gate's own; where another writer has the gate, they are copies, read from its rows now and then, and
what happens here is sent there. So such a writer hears of an opening within `LOOK_AGAIN_MS`, and
may let a probe of its own pass where a step has a fallback.

What is said while a step is decided is kept by name until the next one, so that a step that starts
over hears the same and reports nothing twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from detent.kernel.gate.asks import Reported
from detent.kernel.gate.breakers import Breaker, BreakerRules, read_breaker
from detent.model.limits import BREAKERS_LISTED

if TYPE_CHECKING:
    from detent.kernel.gate.gate import Gate
    from detent.ports.store import Meta, Store
    from detent.runtime.clock import TurnClock

LOOK_AGAIN_MS = 1_000


class Homes(Protocol):
    """What is lent by the gates of the writer."""

    tick: int

    def here(self, tenant: str) -> Gate | None:
        """A tenant's gate, if its home is here; it counts as touched."""

    def is_here(self, tenant: str) -> bool:
        """Whether a tenant's gate is at home here."""

    def all_here(self) -> bool:
        """Whether no other writer has any."""

    def send(self, tenant: str, told: Reported) -> None:
        """Leave a letter for the gate of another writer."""


class Known(NamedTuple):
    """Where breakers come from, and by which rules they count."""

    store: Store
    meta: Meta
    clock: TurnClock
    rules: BreakerRules


class WriterBreakers:
    """The breakers that steps of this writer look at."""

    def __init__(self, known: Known, gates: Homes) -> None:
        self.shaky: dict[tuple[str, str], Breaker] = {}
        self._known = known
        self._gates = gates
        self.said: dict[str, Any] = {}  # to, or by, the step being decided
        self._stale = True
        self._look_at = 0

    # for the step being decided ------------------------------------------------------------------

    def choose(self, tenant: str, handler: str, name: str) -> Any:
        """What an open breaker says to a step with a fallback; None while it is closed."""
        if name not in self.said:
            breaker = self.shaky.get((tenant, handler))
            if breaker is None or not breaker.until:
                return None
            until = breaker.until
            told = "probe" if self._probes(tenant, handler, breaker) else "fallback"
            self.said[name] = {"told": told, "until": until}
        return self.said[name]

    def report(self, tenant: str, handler: str, effect: str, *, worked: bool) -> None:
        """A call has worked, or not."""
        place = (tenant, handler)
        if effect in self.said or not self._known.rules.threshold:
            return
        if worked and place not in self.shaky:
            return
        self.said[effect] = True
        gate = self._gates.here(tenant)
        if gate is not None:
            self.heard(tenant, gate, handler, worked=worked)
            return
        self._gates.send(tenant, Reported(tenant=tenant, handler=handler, worked=worked))
        if worked:
            del self.shaky[place]
            return
        rules, ms = self._known.rules, self._known.meta.resolution_ms
        copy = self.shaky.setdefault(place, Breaker(threshold=0, cooldown_ms=0))
        copy.broke(self._gates.tick, rules, ms)

    # for the gates -------------------------------------------------------------------------------

    def heard(self, tenant: str, gate: Gate, handler: str, *, worked: bool) -> None:
        """What became of a call, for a gate at home here."""
        tick = self._gates.tick
        if worked:
            self.shaky.pop((tenant, handler), None)
            gate.close_breaker(handler, tick)
        elif self._known.rules.threshold:
            self.shaky[(tenant, handler)] = gate.broke(handler, tick, self._known.rules)

    def adopt(self, tenant: str, gate: Gate) -> None:
        """A gate was read: its breakers are the ones to look at."""
        for handler, breaker in gate.meters.breakers.known.items():
            if breaker.failures:
                self.shaky[(tenant, handler)] = breaker

    def drop(self) -> None:
        """What is in memory may never have happened."""
        self.said = {}
        self._stale = True

    def begin_turn(self) -> None:
        """Read what other writers have changed, if it is time; everything after a failure."""
        if not self._stale and self._gates.all_here():
            return
        now = self._known.clock.elapsed_ms()
        if self._stale or now >= self._look_at:
            self._read()
            self._look_at = now + LOOK_AGAIN_MS

    # inside --------------------------------------------------------------------------------------

    def _read(self) -> None:
        found: dict[tuple[str, str], Breaker] = {}
        after = ("", "")
        while rows := self._known.store.breaker_rows(None, BREAKERS_LISTED, after):
            after = (rows[-1].tenant, rows[-1].key)
            for row in rows if self._known.rules.threshold else ():
                breaker = read_breaker(row.body or b"")
                if breaker.failures:
                    found[(row.tenant, row.key)] = breaker
        if not self._stale:
            self._keep_ours(found)
        self.shaky, self._stale = found, False

    def _keep_ours(self, found: dict[tuple[str, str], Breaker]) -> None:
        """Gates here know better than their rows; a probe from here holds off the next one."""
        for place in [place for place in found if self._gates.is_here(place[0])]:
            del found[place]
        for place, breaker in self.shaky.items():
            stored = found.get(place)
            if self._gates.is_here(place[0]):
                found[place] = breaker
            elif stored is not None and stored.opened == breaker.opened:
                stored.until = max(stored.until, breaker.until)

    def _probes(self, tenant: str, handler: str, breaker: Breaker) -> bool:
        gate = self._gates.here(tenant)
        if gate is not None:
            return gate.probe(handler, self._gates.tick)
        if breaker.until > self._gates.tick:
            return False
        breaker.let_pass(self._gates.tick, self._known.meta.resolution_ms)
        return True
