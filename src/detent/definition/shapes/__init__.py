"""The shapes of a definition: one per block kind, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from detent.definition.shapes import flow, graph, step

if TYPE_CHECKING:
    from detent.definition.walk import Shape

BLOCKS: Final[dict[str, Shape]] = {
    "step": step.STEP,
    "parallel": flow.PARALLEL,
    "race": flow.RACE,
    "loop": flow.LOOP,
    "for_each": flow.FOR_EACH,
    "router": flow.ROUTER,
    "try_catch": flow.TRY_CATCH,
    "sub_sequence": flow.SUB_SEQUENCE,
    "a_b_split": flow.A_B_SPLIT,
    "cancellation_scope": flow.CANCELLATION_SCOPE,
    "saga": flow.SAGA,
    "wait": graph.WAIT,
    "graph": graph.GRAPH,
    "goto": graph.GOTO,
    "end": graph.END,
}
