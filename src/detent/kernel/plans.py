"""Plans while they run: events taken in as flags, exits, and what is remembered of each step.

An event changes flags and lets the exits be looked at; it wakes no frame, so it cannot shorten a
wait. Exits are looked at before each step, too. The first that holds ends the run with its outcome.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.blocks.conditions import fail_expression, holds
from detent.kernel.ending import end_instance
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.run import Run
from detent.model.decision import Verdict
from detent.model.errors import ExpressionError
from detent.model.inputs import EventIngested
from detent.model.plan import EVENTS, FINISHED, GRAPH

_EXIT = "exit"


def ingest(run: Run, told: EventIngested, index: int) -> None:
    """Take an event in, then look at the exits."""
    refusal = _refusal(run, told)
    if refusal is not None:
        run.note("event.ignored", "", {"in": index, "name": told.kind, "why": refusal[1]})
        _answer(run, told.id, *refusal)
        return
    run.note("event.received", "", {"in": index, "name": told.kind, "step": told.step})
    flag = f"{EVENTS[told.kind]}:{told.step}"
    if told.kind == "called":
        run.snapshot.events[flag] = told.outcome
    else:
        run.snapshot.events[flag] = _counted(run.snapshot.events.get(flag), run.tick)
    _look_at_exits(run)
    _answer(run, told.id)


def exits(run: Run) -> bool:
    """Whether an exit holds now; the run then has its outcome. Raises ExpressionError."""
    for index, condition in enumerate(run.program.exits):
        if holds(run, condition):
            found = run.program.definition.body.exits[index]
            run.snapshot.outcome = found.outcome
            run.note("plan.exited", GRAPH, {"exit": index, "outcome": found.outcome})
            return True
    return False


def leave_step(run: Run, name: str, path: str, visit: int) -> None:
    """Remember how a step ended; it did so in this very turn of the instance."""
    node = f"{path}[{visit}:{name}]/{name}"
    skipped = next((entry for entry in run.entries if entry[:2] == ("step.skipped", node)), None)
    result: dict[str, Any] = {"status": "completed", "tick": run.tick}
    if skipped is not None:
        result["status"] = "skipped"
        result |= {key: skipped[2][key] for key in ("why", "reason") if key in skipped[2]}
        run.snapshot.outputs.pop(name, None)
    run.snapshot.results.pop(name, None)
    run.snapshot.results[name] = result


def choose(run: Run, name: str, target: str) -> None:
    """Remember where a branch led."""
    run.put_output(name, {"goto": target})


def finish(run: Run) -> None:
    """The steps have ended; without an outcome of its own the run is completed."""
    run.snapshot.outcome = run.snapshot.outcome or FINISHED


def _look_at_exits(run: Run) -> None:
    snapshot, root = run.snapshot, run.snapshot.root
    if root is None or root.phase or snapshot.cancel_requested or snapshot.end_requested:
        return  # it is ending already
    try:
        if not exits(run):
            return
        end = "completed"
    except ExpressionError as error:
        fail_expression(run, GRAPH, GRAPH, error)
        snapshot.error = run.failure.plain() if run.failure is not None else None
        end = "failed"
    if snapshot.state == "paused":  # a pause does not keep a run that is to end
        snapshot.paused_reason = ""
        run.move("scheduled", _EXIT)
    end_instance(run, end, _EXIT)


def _refusal(run: Run, told: EventIngested) -> tuple[str, str] | None:
    state = run.snapshot.state
    if state in TERMINAL:
        return "instance.terminal", f"the run is {state}; it takes no events"
    if not run.program.is_plan:
        return "request.invalid", "the instance runs no plan; only runs of plans take events"
    if told.step not in run.program.nodes[GRAPH].names:
        return "request.invalid", f"the plan has no step {told.step!r}"
    return None


def _counted(before: Any, tick: int) -> dict[str, int]:
    if not isinstance(before, dict):
        return {"count": 1, "first": tick, "last": tick}
    return {**before, "count": before["count"] + 1, "last": tick}


def _answer(run: Run, id: str, code: str = "", message: str = "") -> None:
    if id:
        run.verdicts.append(Verdict(id=id, ok=not code, code=code, message=message))
