"""Interceptors: rows among the outputs that say when a step, a signal or the end came by."""

from __future__ import annotations

from typing import Any

from detent.kernel.run import Run

PREFIX = "_interceptor:"
RECORDED = "interceptor.recorded"


def before_step(run: Run, block: str) -> None:
    """A step is about to act for the first time."""
    _record(run, "before_step", f"before:{block}")


def after_step(run: Run, block: str) -> None:
    """A step has its output."""
    _record(run, "after_step", f"after:{block}")


def on_signal(run: Run, name: str) -> None:
    """A signal was taken in."""
    _record(run, "on_signal", "on_signal", {"_signal": name})


def on_end(run: Run, end: str) -> None:
    """The instance is about to be completed or failed."""
    moment = {"completed": "on_complete", "failed": "on_failure"}.get(end)
    if moment is not None:
        _record(run, moment, moment)


def step_of(block: str) -> str:
    """The step that a row of an interceptor tells of; "" when it tells of none."""
    name = block.removeprefix(PREFIX)
    moment, _, step = name.partition(":")
    return step if name != block and moment in ("before", "after") else ""


def _record(run: Run, moment: str, name: str, more: dict[str, Any] | None = None) -> None:
    call = run.program.interceptors.get(moment)
    if call is None:
        return
    output = call.get("params")
    if more is not None:
        output = {**(output if isinstance(output, dict) else {}), **more}
    run.note(RECORDED, PREFIX + name, {"handler": call["handler"], "output": output})
