"""One module per block kind; `KINDS` is how the walk finds them."""

from __future__ import annotations

from detent.kernel import walk
from detent.kernel.blocks import (
    ab_split,
    cancellation_scope,
    correlator,
    end,
    for_each,
    gatekeeper,
    goto,
    graph,
    loop,
    parallel,
    race,
    router,
    saga,
    schedule,
    step,
    sub_sequence,
    try_catch,
    wait,
)

walk.KINDS.update(
    {
        "step": step,
        "parallel": parallel,
        "race": race,
        "loop": loop,
        "for_each": for_each,
        "router": router,
        "try_catch": try_catch,
        "sub_sequence": sub_sequence,
        "a_b_split": ab_split,
        "cancellation_scope": cancellation_scope,
        "saga": saga,
        "wait": wait,
        "graph": graph,
        "goto": goto,
        "end": end,
        "gatekeeper": gatekeeper,
        "schedule": schedule,
        "correlator": correlator,
    }
)
