"""The guard against an engine call inside a handler, which would wait for itself.

The dispatcher's loop and its threads run with the flag set, once for all calls: tasks inherit it,
and so does what a handler starts with `asyncio.to_thread`.
"""

from __future__ import annotations

from contextvars import ContextVar

from detent.model.errors import RequestError

inside_handler: ContextVar[bool] = ContextVar("detent_inside_handler", default=False)


def guard_reentrant(verb: str = "this engine call") -> None:
    """Raise `engine.reentrant` when a handler is what calls."""
    if inside_handler.get():
        raise RequestError(
            "engine.reentrant",
            f"{verb} was made inside a handler, where it could wait for itself; return the data "
            "and let a later step act, or use the send_signal and query_instance steps",
        )
