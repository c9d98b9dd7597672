"""A journey in Python: what was booked is undone, the last first, when something cannot be had."""

from __future__ import annotations

from detent import Failed, handler, saga, saga_step, sequence, step


@handler(on_doubt="keyed")
def book(what: str, city: str, sold_out: bool) -> dict[str, str]:  # noqa: FBT001 - a JSON value
    """Book a flight, a room or a car."""
    if sold_out and what == "car":
        raise Failed(f"no {what} left in {city}", retryable=False)
    return {what: f"{what} in {city}"}


@handler(on_doubt="keyed")
def give_back(what: str) -> dict[str, str]:
    """Undo a booking."""
    return {f"{what}_returned": "yes"}


def booking(what: str) -> dict[str, object]:
    """One step of the journey and what undoes it."""
    params = {"what": what, "city": "{{data.city}}", "sold_out": "{{data.sold_out}}"}
    return saga_step(
        what,
        step(f"book_{what}", book, params=params),
        step(f"return_{what}", give_back, params={"what": what}),
    )


journey = sequence("journey", saga("bookings", booking("flight"), booking("room"), booking("car")))
