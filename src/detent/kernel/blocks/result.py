"""What a step's result or failure leads to: its output, a retry, or the end of the step."""

from __future__ import annotations

from typing import Any

from detent.kernel import intercept, ledger, listening
from detent.kernel.blocks import aside, retry
from detent.kernel.bounds import too_large
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run, encode
from detent.kernel.walk import DONE, FAILED, WAIT
from detent.model import limits
from detent.model.inputs import EventsMatched
from detent.model.snapshot import Frame

APPLIED = "applied"  # the phase of a frame whose output stands in the outcome it was woken by


def finish(run: Run, node: Node, frame: Frame, path: str, result: Any, *, merge: bool) -> int:
    """Take a result as the step's output."""
    if node.schema is not None:
        fault = _schema_fault(node, result)
        if fault is not None:
            return give_up(run, node, path, fault)
    snapshot = run.snapshot
    merge = merge and not run.program.is_plan  # what a plan's run is given stays as it is
    if merge and isinstance(result, dict) and not snapshot.dry_run:
        size = run.merged_too_large(result)
        if size:
            return give_up(run, node, path, too_large("context.data", size, limits.CONTEXT_BYTES))
        run.merge(result)
    run.put_output(node.id, result)
    snapshot.steps += 1
    if isinstance(frame.v, dict) and "cache" in frame.v:
        _remember(run, frame.v["cache"], result)
    if frame.phase == APPLIED:
        run.entries.append(("step.executed", path))
    else:
        run.entries.append(("step.executed", path, {"output": result}))
    if run.program.interceptors:
        intercept.after_step(run, node.id)
    return DONE


def heard(run: Run, node: Node, frame: Frame, path: str, told: EventsMatched) -> int:
    """The events a step waits for have come, or it could not be registered for them."""
    if told.error:
        failure = Failure(message=told.error, kind="definition", code="event.full")
        return give_up(run, node, path, failure)
    output = listening.output_of(frame, told)
    human = node.block.wait_for_input
    stored = {human.store_as: output} if human is not None and human.store_as else {}
    size = run.merged_too_large(stored)
    if size:
        return give_up(run, node, path, too_large("context.data", size, limits.CONTEXT_BYTES))
    run.merge(stored)
    return finish(run, node, frame, path, output, merge=False)


def failed(run: Run, node: Node, frame: Frame, path: str, failure: Failure) -> int:
    """Wait for the next attempt, or give up."""
    backoff = retry.backoff_ms(run, node, frame, path, failure)
    if backoff is None:
        return give_up(run, node, path, failure)
    run.note("error.occurred", path, {"message": failure.message, "kind": failure.kind})
    frame.phase = "retry"
    due = run.after(backoff)
    frame.wanted = due if node.block.send_window is not None else None
    run.wait(frame, path, "retry", due, failure.message[:200])
    run.note("error.retried", path, {"attempt": frame.attempt + 1})
    return WAIT


def give_up(run: Run, node: Node, path: str, failure: Failure) -> int:
    """End the step with a failure that nothing repeats."""
    run.fail(failure.at(path, node.id))
    return FAILED


def breach(run: Run, node: Node, frame: Frame, path: str) -> int:
    """The step's deadline has passed: disown the call, tell the breach handler once, fail."""
    block = node.block
    disown(run, frame)
    frame.wait = None
    elapsed = (run.tick - frame.since) * run.facts.resolution_ms
    output = {
        "_error": "sla_deadline_breached",
        "_deadline_ms": block.deadline,
        "_elapsed_ms": elapsed,
    }
    run.note("deadline.breached", path, {"output": output})
    if block.on_deadline_breach is not None:
        _tell_of_breach(run, node, path, elapsed)
    failure = Failure(
        message=f"the step was not done within its deadline of {block.deadline} ms",
        kind="timeout",
        code="step.deadline",
        details=output,
    )
    return give_up(run, node, path, failure)


def _tell_of_breach(run: Run, node: Node, path: str, elapsed: int) -> None:
    block = node.block
    call = block.on_deadline_breach
    request = {
        **(call.params if isinstance(call.params, dict) else {}),
        "_breach_block_id": node.id,
        "_breach_deadline_ms": block.deadline,
        "_breach_elapsed_ms": elapsed,
        "_breach_instance_id": run.snapshot.id,
    }
    result = aside.at_once(run, call.handler, request)
    if result is None:
        plan = ledger.Plan(f"{path}?breach", node.key, call.handler, encode(request), "breach")
        ledger.plan(run, plan, None)
        return
    told = {"message": result.message} if isinstance(result, Failure) else {"result": result[0]}
    run.note("deadline.told", path, {"handler": call.handler, **told})


def disown(run: Run, frame: Frame) -> None:
    """Withdraw the call a frame waits for, or let it be settled unwanted."""
    listening.leave(run, frame)
    if frame.wait is not None and frame.wait.kind in ("effect", "decision", "worker"):
        effect = run.effect(frame.wait.name)
        if effect is not None:
            ledger.release(run, effect)


def _schema_fault(node: Node, result: Any) -> Failure | None:
    fault = next(iter(node.schema.iter_errors(result)), None)
    if fault is None:
        return None
    place = list(fault.instance_path)
    text = f"the output does not match output_schema at {place}: {fault.message}"
    return Failure(message=text, kind="definition", code="payload.schema")


def _remember(run: Run, key: str, result: Any) -> None:
    cache = run.snapshot.cache
    if len(cache) >= limits.CACHE_ENTRIES:
        del cache[next(iter(cache))]
    cache[key] = result
