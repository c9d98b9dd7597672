"""for_each: the body once per element of a collection that is read once."""

from __future__ import annotations

from typing import Any

from detent.expression import Template
from detent.kernel.blocks.conditions import fail_expression
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import (
    DONE,
    FAILED,
    STOPPED,
    WAIT,
    cancel_lanes,
    renew_lanes,
    run_lane,
)
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame, Lane


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Take the collection as it is now; later changes of data do not matter."""
    try:
        items = _collection(run, node)
    except ExpressionError as error:
        fail_expression(run, path, node.id, error)
        return FAILED
    frame.v = items[: node.block.max_iterations] if isinstance(items, list) else []
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Run the body for element after element."""
    total = len(frame.v)
    while True:
        if not frame.lanes:
            if frame.n >= total:
                return _finish(run, node, frame, path)
            if run.held:
                return WAIT
            run.merge({node.block.item_var: frame.v[frame.n]})
            frame.lanes = [Lane()]
        prefix = f"{path}[{frame.n}]/"
        status = run_lane(run, frame.lanes[0], node.lists[0], prefix, frame.stop)
        if status == WAIT:
            return WAIT
        if status != DONE:
            _forget(run, node)
            return status
        frame.n += 1
        frame.lanes = []
        if frame.stop:
            _forget(run, node)
            return STOPPED


def _collection(run: Run, node: Node) -> Any:
    if isinstance(node.params, ExpressionError):
        raise node.params
    if isinstance(node.params, Template):
        return node.params.render(run.scope())
    value = run.snapshot.data
    for name in node.block.collection.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _finish(run: Run, node: Node, frame: Frame, path: str) -> int:
    _forget(run, node)
    output = {"_index": frame.n, "_total": len(frame.v), "_item_var": node.block.item_var}
    run.put_output(node.id, output)
    run.note("step.evaluated", path, {"output": output})
    return DONE


def _forget(run: Run, node: Node) -> None:
    data = run.snapshot.data
    if isinstance(data, dict):
        data.pop(node.block.item_var, None)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel the element under way."""
    gone = cancel_lanes(run, frame, f"{path}[{frame.n}]/")
    if gone:
        _forget(run, node)
    return gone


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Go on with the element that failed."""
    frame.stop = False
    run.merge({node.block.item_var: frame.v[frame.n]})
    renew_lanes(run, frame)
    return True
