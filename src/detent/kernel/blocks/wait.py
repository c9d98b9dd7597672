"""wait: for a duration, a signal, or the first of both; the output says which."""

from __future__ import annotations

from typing import Any

from detent.kernel import timing
from detent.kernel.bounds import too_large
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import DONE, FAILED, WAIT
from detent.model import limits
from detent.model.snapshot import Frame


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Take a kept signal of the name, or stand."""
    block = node.block
    if block.signal is not None:
        for index, kept in enumerate(run.snapshot.signals):
            if kept.name == block.signal:
                del run.snapshot.signals[index]
                return _end(run, node, path, kept.payload)
    due = None if block.duration is None else run.after(block.duration)
    if block.until is not None:
        found = timing.wait_due(run, node, path)
        if isinstance(found, Failure):
            run.fail(found.at(path, node.id))
            return FAILED
        due = found
    run.wait(frame, path, "timer" if block.signal is None else "signal", due, block.signal or "")
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """End with the signal's payload, or with the time-out."""
    if frame is not run.woken:
        return WAIT
    run.woken = None
    return _end(
        run, node, path, run.woken_value if run.woken_why == "signal" else {"timed_out": True}
    )


def _end(run: Run, node: Node, path: str, output: Any) -> int:
    if node.block.store_as:
        stored = {node.block.store_as: output}
        size = run.merged_too_large(stored)
        if size:
            run.fail(too_large("context.data", size, limits.CONTEXT_BYTES).at(path, node.id))
            return FAILED
        run.merge(stored)
    run.put_output(node.id, output)
    run.note("wait.completed", path, {"output": output})
    return DONE


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """A wait ends at once."""
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It is entered afresh."""
    return False
