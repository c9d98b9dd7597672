"""The writer: the one object that owns a store and runs its turns, in one thread or process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from detent.model.link import Decided, Submit
from detent.runtime import controls
from detent.runtime.foreign import dismiss_asked, seconds_to_asked
from detent.runtime.holdings import take_over
from detent.runtime.parts import Parts
from detent.runtime.standstill import refuse_callers
from detent.runtime.turn import jumped, lease_until, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.ports.signer import Signer
    from detent.ports.store import Owner, Store
    from detent.runtime.clock import TurnClock
    from detent.runtime.settings import WriterSettings

CLOSING_TURNS = 1_000


class Batches(Protocol):
    """Where a writer's mail comes from."""

    def get_batch(self, timeout: float) -> list[Submit]:
        """Everything there is; waits up to `timeout` seconds when there is nothing."""


class Writer:
    """Runs turns over the partitions it owns; not to be shared between threads."""

    __slots__ = ("_own", "_parts")

    def __init__(
        self,
        store: Store,
        clock: TurnClock,
        settings: WriterSettings,
        owner: Owner,
        chance: Callable[[int], bytes],
        *,
        own_store: bool = False,
    ) -> None:
        """`own_store` says that nobody else uses the connection, so that it is closed here."""
        self._parts = Parts(store, clock, settings, owner, chance)
        self._own = own_store

    def sign_with(self, signer: Signer | None) -> None:
        """Sign every seal from now on, or none."""
        self._parts.seals.signer = signer

    def succeed(self) -> None:
        """Before opening: it follows a writer of the same engine, whose calls go on."""
        self._parts.lease.successor = True

    def open(self) -> Decided:
        """Acquire partitions and plan recovery; its orders come with the following turns."""
        parts = self._parts
        take_over(parts)
        jumped(parts, parts.clock.tick())
        parts.out.news = True
        return parts.out.take(parts.hold.code, lease_until(parts)) or Decided()

    def submit(self, batch: Submit) -> None:
        """Queue a batch for the next turn."""
        self._parts.inbox.batches.append(batch)

    def turn(self) -> Decided | None:
        """One turn; None when there was nothing to do."""
        return turn(self._parts)

    def idle_seconds(self) -> float:
        """How long nothing is due."""
        parts = self._parts
        if parts.hold.code and not parts.inbox.batches:
            return max(0, parts.hold.retry_at - parts.clock.elapsed_ms()) / 1000
        if parts.clock.mode == "stepped" and not parts.inbox.batches:
            return parts.clock.seconds_until(parts.clock.tick() + 1)
        if controls.has_work(parts):
            return 0.0
        awake = min(
            parts.settings.tick_interval_ms / 1000,
            parts.lease.seconds_to_renewal(),
            parts.lease.seconds_to_look(),
            seconds_to_asked(parts),
        )
        if parts.settings.errand:
            return awake
        called = parts.gates.next_due()
        return min(
            awake,
            parts.clock.seconds_until(parts.dues.next),
            parts.clock.seconds_until(parts.dues.next if called is None else called),
        )

    def next_due(self) -> int | None:
        """The next tick at which something happens; for whoever moves a virtual clock."""
        return controls.next_due(self._parts)

    def any_due(self) -> bool:
        """Whether a user's instance moves by itself some time."""
        return controls.any_due(self._parts)

    @property
    def closing(self) -> bool:
        """Whether it was told to close."""
        return self._parts.closing

    @property
    def settled(self) -> bool:
        """Whether no input and no mark waits, so that closing loses nothing."""
        parts = self._parts
        if parts.hold.code:
            return True
        if parts.inbox.batches or parts.inbox.inputs or parts.marks.pending:
            return False
        return not parts.queue or not any(entry.inputs for entry in parts.queue.entries())

    def dismiss(self) -> Decided | None:
        """Answer every caller who still waits that the engine is closed."""
        parts = self._parts
        parts.hold.begin("engine.closed", "the engine is closed", 0)
        dismiss_asked(parts)
        refuse_callers(parts)
        return parts.out.take("engine.closed", 0)

    def close(self) -> None:
        """Release the lease, and the store if it is this writer's own.

        An orphan keeps the lease: its calls died with their process, and a lease that was not given
        up tells the next owner so.
        """
        parts = self._parts
        try:
            if parts.clock.mode != "wall":  # no wall tells the next owner how late it is
                parts.lease.keep_tick(parts.clock.tick())
            if not parts.orphaned:
                parts.lease.release()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """It fell over: the lease stays, since calls it has ordered may be running."""
        if self._own:
            self._parts.store.close()


def run_writer(writer: Writer, inbox: Batches, publish: Callable[[Decided], None]) -> None:
    """Run turns until told to close: wait for mail or the next due tick, turn, publish."""
    left = CLOSING_TURNS
    try:
        publish(writer.open())
        while left and not (writer.closing and writer.settled):
            left -= writer.closing
            for batch in inbox.get_batch(writer.idle_seconds()):
                writer.submit(batch)
            decided = writer.turn()
            if decided is not None:
                publish(decided)
        farewell = writer.dismiss()
        if farewell is not None:
            publish(farewell)
    except BaseException:
        writer.abandon()
        raise
    writer.close()
