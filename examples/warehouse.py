"""Handlers of shipping.json."""

from __future__ import annotations

import detent


@detent.handler
async def pack(order: int) -> dict[str, bool]:
    """Pack an order."""
    return {"packed": order > 0}


@detent.handler
async def label(order: int) -> dict[str, str]:
    """Print its label."""
    return {"label": f"L{order:05}"}


@detent.handler(on_doubt="keyed")
async def hand_over(order: int, ctx: detent.HandlerContext) -> dict[str, str]:
    """Give it to the carrier, who comes late the first time; `ctx.key` tells calls apart."""
    if ctx.attempt == 1:
        raise detent.Failed("the carrier has not come yet")
    return {"parcel": f"{order}-{ctx.key[:6]}"}
