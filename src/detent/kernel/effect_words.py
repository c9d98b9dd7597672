"""Open effects in words: what `explain` says of them."""

from __future__ import annotations

from detent.model.snapshot import OpenEffect


def worker_words(effect: OpenEffect) -> str:
    """Which worker an effect waits for."""
    queue = f" in queue {effect.queue}" if effect.queue else ""
    return f"a worker of handler {effect.handler}{queue}"


def late_words(effect: OpenEffect) -> str:
    """What follows when no outcome comes in time."""
    if effect.next_try is not None:
        planned = effect.state == "planned"
        return "it is called in its send windows" if planned else "the next attempt to find out"
    return {
        "repeatable": "without an outcome it counts as failed",
        "once": "without an outcome a person is asked",
    }.get(effect.doubt, "without an outcome it is looked into")


def loop_words(effect: OpenEffect) -> str:
    """Why a call is not made again that ends the process each time."""
    return (
        f"the process died {effect.crashes} times while {effect.handler} was being performed; "
        f"it is not called again"
    )
