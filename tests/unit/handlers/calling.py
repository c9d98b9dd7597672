"""Orders as the kernel makes them, and the outcome of performing one."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw

from detent.handlers import Registry
from detent.model.decision import Order
from detent.model.inputs import decode_input

INSTANCE = "0190a6d2-0000-7000-8000-000000000001"


def order_for(handler, request=None, **fields):
    """One order; `request`, `data` and `config` are given as values."""
    for name in ("data", "config"):
        if name in fields:
            fields[name] = Raw(msgspec.json.encode(fields[name]))
    fields.setdefault("key", "k1")
    return Order(
        instance=INSTANCE,
        tenant="acme",
        node="pay",
        block="pay",
        handler=handler,
        request=Raw(msgspec.json.encode(request)),
        **fields,
    )


def registry_of(*functions):
    registry = Registry()
    registry.collect(functions)
    return registry


def call(function, request=None, **fields):
    """Perform one order with a decorated function, as the dispatcher would; the decoded outcome."""
    registry = registry_of(function)
    spec = registry.specs()[function.detent_name]
    fields.setdefault("doubt", spec.doubt)
    return perform(registry, order_for(spec.name, request, **fields))


def perform(registry, order, dispatch=7):
    performer = registry.performer(order.handler, order.mode)
    body = performer.perform(order, dispatch)
    if performer.is_async:
        body = asyncio.run(_awaited(body))
    return decode_input(body)


async def _awaited(coroutine):
    return await coroutine
