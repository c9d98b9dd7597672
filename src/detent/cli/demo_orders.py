"""The world of the demonstration: an order of a shop, its handlers, and the people around it.

What goes wrong is decided by the number of the order, so every demonstration is the same.
"""

from __future__ import annotations

from typing import Any

from detent.bootstrap.engine import Engine
from detent.definition import parallel, retry, route, router, sequence, step, try_catch, wait
from detent.handlers import Failed, HandlerContext, handler
from detent.kernel.lifecycle import TERMINAL
from detent.ports.store import Page, Store
from detent.service.explaining import approvals, doubts

APPROVAL_ABOVE = 900
OFFICE_OPENS = 5
FIRST_DELIVERY = 24
_ITEMS = ("a lamp", "a clock", "a chair", "a kettle", "a globe", "a map")


def _falls(number: int, *, every: int, on: int) -> bool:
    """Whether something befalls this order: one of so many."""
    return number % every == on


def _forgotten(number: int) -> bool:
    """Orders that wait for an approval which nobody gives."""
    return _falls(number, every=48, on=40)


@handler("reserve")
def reserve(order: int, item: str, ctx: HandlerContext) -> dict[str, Any]:
    """Reserve the goods; the warehouse is sometimes busy, and sometimes sold out."""
    if _falls(order, every=60, on=21):
        raise Failed(f"{item} is sold out", retryable=False)
    if _falls(order, every=8, on=3) and ctx.attempt == 1:
        raise Failed("the warehouse is busy")
    return {"reserved": item}


@handler("charge", on_doubt="once")
def charge(order: int, amount: int) -> dict[str, Any]:
    """Take the money, once; sometimes the bank's answer is lost and nobody knows."""
    if _falls(order, every=50, on=7):
        raise ConnectionError("the bank's answer was lost")
    return {"charged": amount}


@handler("pack", on_doubt="keyed")
async def pack(item: str) -> dict[str, Any]:
    """Pack the goods."""
    return {"packed": item}


@handler("invoice", on_doubt="keyed")
async def invoice(amount: int) -> dict[str, Any]:
    """Write the invoice."""
    return {"invoiced": amount}


@handler("ship", on_doubt="keyed")
async def ship(order: int, ctx: HandlerContext) -> dict[str, Any]:
    """Hand the parcel to the carrier, who is late now and then and refuses some parcels."""
    if _falls(order, every=25, on=11) or (_falls(order, every=9, on=4) and ctx.attempt == 1):
        raise Failed("the carrier did not come")
    return {"parcel": f"P{order:05}"}


@handler("refund", on_doubt="keyed")
async def refund(amount: int) -> dict[str, Any]:
    """Give the money back."""
    return {"refunded": amount}


@handler("mail")
async def mail(text: str) -> dict[str, Any]:
    """Write to the customer."""
    return {"mailed": text}


HANDLERS = [reserve, charge, pack, invoice, ship, refund, mail]

ORDER = sequence(
    "order",
    step(
        "reserve",
        reserve,
        params={"order": "{{data.order}}", "item": "{{data.item}}"},
        retry=retry(3, initial_backoff="2m"),
    ),
    step("charge", charge, params={"order": "{{data.order}}", "amount": "{{data.amount}}"}),
    wait("cool_off", duration="2h"),
    router(
        "check",
        route(
            f"data.amount > {APPROVAL_ABOVE}",
            step(
                "approve",
                "noop",
                wait_for_input={"prompt": "Ship this valuable order?", "store_as": "approved"},
            ),
        ),
    ),
    parallel(
        "prepare",
        step("pack", pack, params={"item": "{{data.item}}"}),
        step("invoice", invoice, params={"amount": "{{data.amount}}"}),
    ),
    try_catch(
        "delivery",
        do=[
            step(
                "ship",
                ship,
                params={"order": "{{data.order}}"},
                retry=retry(3, initial_backoff="1h", max_backoff="4h"),
            ),
            wait("arrival", signal="delivered", duration="3d"),
        ],
        catch=step("refund", refund, params={"amount": "{{data.amount}}"}),
    ),
    step("thank", mail, params={"text": "Thank you for buying {{data.item}}."}),
)


def orders(count: int) -> list[dict[str, Any]]:
    """The data of so many orders."""
    return [
        {
            "order": number,
            "item": _ITEMS[number % len(_ITEMS)],
            "amount": 950 + number if _falls(number, every=12, on=4) else 20 + number * 7 % 800,
        }
        for number in range(1, count + 1)
    ]


class People:
    """Everybody outside: approves, decides on doubts, changes their mind, reports deliveries."""

    def __init__(self, engine: Engine, store: Store, ids: list[str]) -> None:
        self._engine = engine
        self._store = store
        self._number = {instance: number for number, instance in enumerate(ids, 1)}
        self._cancelled = False
        self.answered = 0
        self.decided = 0
        self.signalled = 0

    def act(self, hour: int) -> None:
        """What they do at an hour of the story."""
        if hour >= 1 and not self._cancelled:
            self._cancel_some()
        if hour >= OFFICE_OPENS:
            self._answer()
            self._decide()
        if hour >= FIRST_DELIVERY:
            self._deliver(hour)

    def _cancel_some(self) -> None:
        self._cancelled = True
        for instance, number in self._number.items():
            row = self._store.instance(instance)
            if _falls(number, every=40, on=13) and row is not None and row.state not in TERMINAL:
                self._engine.cancel(instance)

    def _answer(self) -> None:
        for question in approvals(self._store, None, limit=1_000):
            number = self._number[question.instance]
            if not _forgotten(number):
                answer = {"value": "yes"}
                self._engine.signal(question.instance, f"human_input:{question.block}", answer)
                self.answered += 1

    def _decide(self) -> None:
        for call in doubts(self._store, None, limit=1_000):
            if call.resolutions:
                amount = {"charged": "confirmed by the bank's statement"}
                self._engine.resolve(call.instance, call.effect, "happened", amount)
                self.decided += 1

    def _deliver(self, hour: int) -> None:
        page = Page(states=("waiting",), limit=1_000)
        for row in self._store.instances(page):
            number = self._number[row.id]
            if _falls(number, every=24, on=hour % 24) and number % 7 and not _forgotten(number):
                self._engine.signal(row.id, "delivered", {"hour": hour})
                self.signalled += 1
