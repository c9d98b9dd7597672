"""What only plans have: their end, their exits, waits by the calendar, and the names of these."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

GRAPH: Final = "plan"
"""The id of the one graph that a plan is."""

DEFAULT: Final = "default"
"""The condition that always holds; a branch ends with it."""

SENDS: Final = {"send_email": "email", "send_voice": "voice"}
"""Kinds of steps that speak to a person -> the handler that performs them."""

ROOTS: Final = frozenset(("run", "contact", "clock"))
"""What conditions and templates of a plan see beside the roots that all definitions have."""

FINISHED: Final = "completed"
"""The outcome of a run that came to the end of its steps without one of its own."""

EVENTS: Final = {
    "delivered": "delivery",
    "opened": "open",
    "clicked": "click",
    "replied": "reply",
    "bounced": "bounce",
    "unsubscribed": "unsubscribe",
    "called": "outcome",
}
"""Kinds of events that a run takes in -> the flag that each leaves in the snapshot."""

OUTCOMES: Final = ("answered", "voicemail", "no_answer", "busy", "failed", "declined")
"""How a call to a person can end."""


class Until(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The local moment a wait goes on to, once its duration is over."""

    time: str | None = None  # HH:MM, the next one; or YYYY-MM-DDTHH:MM:SS
    business_day: bool = False
    timezone: str | None = None
    holidays: tuple[str, ...] = ()
    country: str | None = None
    gap: Literal["next", "shift", "before"] = "next"
    fold: Literal["first", "second"] = "first"


class Exit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition that ends a run wherever it stands, and the outcome it ends with."""

    when: str
    outcome: str


class End(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="end"):
    """The end of a run, with its outcome."""

    id: str
    outcome: str = "completed"
