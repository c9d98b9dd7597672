"""What an expression or template can see: one frozen value, built per evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from detent.model.errors import ExpressionError


def _unseeded() -> int:
    raise ExpressionError(
        "expression.unknown",
        "`uuid` and `random` need the instance's own seed, and none exists here; "
        "use them in a definition that runs.",
    )


class Scope(Struct, frozen=True, kw_only=True):
    """The values behind the roots; containers are read, never changed, and may be shared.

    `now_ms` is logical time, `draw` gives the next 64-bit number of the instance's own seed: no
    clock and no chance of the machine is ever read. `events` holds flags such as `reply:step_1`.
    """

    data: Any = None
    config: Any = None
    outputs: Any = {}
    state: Any = {}
    runtime: Any = {}
    audit: Any = []
    instance_id: str = ""
    now_ms: int = 0
    draw: Callable[[], int] = _unseeded
    events: Mapping[str, Any] = {}
    roots: Mapping[str, Any] = {}
