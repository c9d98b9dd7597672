"""Handlers of approval.yaml."""

from __future__ import annotations

import detent


@detent.handler
def tell(who: str, days: int) -> dict[str, str]:
    """Tell somebody how it was decided."""
    return {"told": f"{who}, about {days} days"}


@detent.handler
def remind_the_boss(
    instance_id: str, block_id: str, prompt: str, choices: list[str], timeout_ms: int
) -> dict[str, str]:
    """Nobody has answered in time."""
    return {"reminded": f"{prompt} ({', '.join(choices)}) {block_id} {instance_id} {timeout_ms}"}
