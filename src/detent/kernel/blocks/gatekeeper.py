"""gatekeeper: a tenant's gate as an instance; its `kv` is the configuration.

It stands for ever. `configure` is its only move: the change is checked, made in `kv` and journaled,
and the writer hands the new configuration to the gate in the same turn.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.gate.config import change
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import WAIT
from detent.model.snapshot import Frame


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Stand."""
    run.wait(frame, path, "service", None)
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Nothing wakes it but a change."""
    return WAIT


def configure(run: Run, frame: Frame, verb: str, args: dict[str, Any]) -> Any:
    """Make one change to limits and pools, or raise RequestError with nothing changed."""
    return change(run.snapshot.kv, verb, args, run.now_ms(), run.computed)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """A gate is never ended: limits would be gone without a word."""
    return False


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It never fails."""
    return False
