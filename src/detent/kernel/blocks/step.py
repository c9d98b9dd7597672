"""step: one handler, through the stages guard, delay, policy, person, passage, act, and retries.

Stages in call order: `enter` (when, deadline, delay) -> `_judge` (policies) -> `_ask_person` ->
`_pass` (windows and the tenant's gate, see `passage`) -> `_act` (cache, params, built-in move or
planned effect) -> `result.finish` or `result.failed`. A stage that must stand sets `phase` and a
wait; `resume` goes on from there. A frame that waits for nothing stands because the instance is
held: in phase "gate" by a policy, which only a person's resume passes; in "held", "answered" (what
follows is the passage) and "unanswered" before a stage that would act meanwhile.
"""

from __future__ import annotations

from typing import Any

from detent.kernel import alerts, breaking, budget, intercept, ledger, listening, policy, timing
from detent.kernel.blocks import aside, own_call, passage, person, seeing, worker
from detent.kernel.blocks.result import APPLIED, breach, disown, failed, finish, give_up, heard
from detent.kernel.builtin import MOVES, Called, Moved, Sleep
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run, encode
from detent.kernel.walk import DONE, WAIT
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame

LATE = "late"  # in place of a sleep's output: the step's own timeout comes first


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Guard and delay, then on to the policies."""
    run.entries.append(("step.entered", path))
    block = node.block
    if node.when is not None:
        try:
            if isinstance(node.when, ExpressionError):
                raise node.when
            wanted = node.when.test(seeing.scope_of(run, node)) if block.when else False
        except ExpressionError as error:
            return give_up(run, node, path, seeing.failure_of(error))
        if not wanted:
            run.note("step.skipped", path, {"why": "when"})
            return DONE
    if run.program.sla is not None:
        alerts.arm(run, frame)
    if not node.timed:
        return _judge(run, node, frame, path)
    if block.deadline is not None:
        frame.deadline = run.after(block.deadline)
    return _judge(run, node, frame, path) if block.delay is None else _delay(run, node, frame, path)


def _delay(run: Run, node: Node, frame: Frame, path: str) -> int:
    due = timing.delay_due(run, node, frame, path)
    if isinstance(due, Failure):
        return give_up(run, node, path, due)
    frame.phase = "delay"
    frame.wanted = due if node.block.send_window is not None else None
    run.wait(frame, path, "delay", due)
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Go on after a wait, an outcome, an answer, or a person's release."""
    if frame is not run.woken:
        if frame.wait is not None or run.held:
            return WAIT
        return _released(run, node, frame, path)
    run.woken = None
    why, value = run.woken_why, run.woken_value
    if why == "applied" and frame.phase == "act":  # nearly always: its own call has worked
        return _applied(run, node, frame, path, value)
    if why == "deadline":
        return breach(run, node, frame, path)
    if why == "due":
        return _due(run, node, frame, path)
    if why == "signal":
        return _answered(run, node, frame, path, value)
    if why == "events":
        return heard(run, node, frame, path, value)
    if why in ("called", "gate"):
        return _called(run, node, frame, path, why)
    if frame.phase == "policy":
        return _policy_said(run, node, frame, path)
    if why == "skipped":
        run.note("step.skipped", path, {"why": "a person chose to skip the effect"})
        return DONE
    if frame.phase == "escalated":
        return _escalated(run, node, frame, path)
    if why == "failed":
        passage.close_after(run, frame, value)
        pause = worker.pause_ms(run, node, frame, path, value)
        if pause is not None:
            return _act(run, node, frame, path, pause)
        return failed(run, node, frame, path, value)
    return _applied(run, node, frame, path, value)


def _applied(run: Run, node: Node, frame: Frame, path: str, value: Any) -> int:
    frame.phase = APPLIED
    return finish(run, node, frame, path, value, merge=worker.spec(run, node, frame).merge)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """End at once, withdrawing or disowning its call; a step that is not cancellable stays."""
    if not node.block.cancellable:
        return False
    disown(run, frame)
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """A failed step is entered afresh, in a new generation."""
    return False


# stages ------------------------------------------------------------------------------------------


def _released(run: Run, node: Node, frame: Frame, path: str) -> int:
    """The pause is over: go on with the stage before which the frame was held."""
    match frame.phase:
        case "gate":
            if run.released:
                run.note("policy.released", path, {"policy": frame.n})
                frame.n += 1
            return _judge(run, node, frame, path)
        case "held":
            return _judge(run, node, frame, path)
        case "answered":
            return _pass(run, node, frame, path)
        case "unanswered":
            return _no_answer(run, node, frame, path)
        case _:
            return WAIT


def _judge(run: Run, node: Node, frame: Frame, path: str) -> int:
    if run.held:
        frame.phase = "held"
        return WAIT
    if run.snapshot.budget is not None and budget.exceeded(run, path):
        frame.phase = "held"
        return WAIT
    if run.snapshot.policies:
        acting = node.block.handler not in MOVES
        index, verdict = policy.judge(run, path, frame.n, acting)
        frame.n = index
        if verdict is None:
            return _ask_policy(run, node, frame, path)
        if not verdict.allowed:
            return _refused(run, node, frame, path, verdict)
        frame.n = 0
    if frame.attempt == 0 and node.asks:
        return _ask_person(run, node, frame, path)
    return _pass(run, node, frame, path)


def _pass(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Through the windows and the gate, unless the output is known already."""
    if node.free and not breaking.holds(run, node, path):
        return _act(run, node, frame, path)
    if node.cache_key is not None and seeing.known(run, node, frame):
        return _act(run, node, frame, path)
    stands = passage.clear(run, node, frame, path)
    return _act(run, node, frame, path) if stands is None else stands


def _called(run: Run, node: Node, frame: Frame, path: str, why: str) -> int:
    """The gate speaks: what the data policies said when it was asked is asked again."""
    if run.snapshot.policies and not run.held:
        _, verdict = policy.judge(run, path, 0, acting=False)
        if verdict is not None and not verdict.allowed:
            return _refused(run, node, frame, path, verdict)
    told = passage.called if why == "called" else passage.answered
    stands = told(run, node, frame, path)
    return _act(run, node, frame, path) if stands is None else stands


def _ask_policy(run: Run, node: Node, frame: Frame, path: str) -> int:
    frame.phase = "policy"
    handler = run.snapshot.policies[frame.n]["handler"]
    request = encode(
        {
            "step": node.id,
            "handler": node.block.handler,
            "params": node.block.params,
            "data": run.snapshot.data,
            "config": run.snapshot.config,
            "attempt": frame.attempt + 1,
            "now_ms": run.now_ms(),
        }
    )
    suffix = f"?policy:{frame.n}:{run.snapshot.tokens}"
    ledger.plan(
        run,
        ledger.Plan(path + suffix, node.key, handler, request, kind="policy"),
        frame,
    )
    return WAIT


def _policy_said(run: Run, node: Node, frame: Frame, path: str) -> int:
    handler = run.snapshot.policies[frame.n]["handler"]
    if run.woken_why == "applied":
        verdict = policy.read_verdict(run, run.woken_value)
    else:
        text = run.woken_value.message if isinstance(run.woken_value, Failure) else "it was skipped"
        verdict = policy.Judgement(
            False, "fail", f"the policy {handler} could not be asked: {text}"
        )
    policy.record(run, path, handler, verdict)
    if not verdict.allowed:
        return _refused(run, node, frame, path, verdict)
    frame.n += 1
    return _judge(run, node, frame, path)


def _refused(run: Run, node: Node, frame: Frame, path: str, verdict: policy.Judgement) -> int:
    if verdict.action == "skip_with_log":
        run.note("step.skipped", path, {"why": "policy", "reason": verdict.reason})
        return DONE
    if verdict.action == "defer":
        frame.n = 0  # what holds then is judged by all policies anew
        run.wait(frame, path, "defer", verdict.until, verdict.reason)
        return WAIT
    if verdict.action == "pause":
        frame.phase = "gate"
        run.snapshot.paused_reason = f"policy: {verdict.reason}"
        run.held = True
        return WAIT
    failure = Failure(message=verdict.reason or "refused by policy", kind="authorization")
    return give_up(run, node, path, failure)


def _ask_person(run: Run, node: Node, frame: Frame, path: str) -> int:
    answer = person.kept_answer(run, node)
    if answer is not None:
        return _answered(run, node, frame, path, answer)
    frame.phase = "human"
    human = node.block.wait_for_input
    due = None if human.timeout is None else run.after(human.timeout)
    run.wait(frame, path, "human", due, person.signal_name(node.id))
    return WAIT


def _answered(run: Run, node: Node, frame: Frame, path: str, payload: Any) -> int:
    frame.wait = None
    person.accept(run, node, path, payload)
    frame.wanted = None
    if run.held:
        frame.phase = "answered"
        return WAIT
    return _pass(run, node, frame, path)


def _due(run: Run, node: Node, frame: Frame, path: str) -> int:
    kind = run.woken_value
    run.note("wait.completed", path, {"kind": kind})
    if kind == "sleep":
        return _slept(run, node, frame, path)
    if kind in ("human", "event"):
        return _no_answer(run, node, frame, path)
    if kind == "window":
        frame.phase = "answered"
        return WAIT if run.held else _pass(run, node, frame, path)
    return _judge(run, node, frame, path)


def _slept(run: Run, node: Node, frame: Frame, path: str) -> int:
    """A sleep is over: its own time, or the time that its step may take."""
    output = frame.v["slept"]
    if output != LATE:
        return finish(run, node, frame, path, output, merge=False)
    text = f"timeout after {node.block.timeout} ms"
    return failed(run, node, frame, path, Failure(message=text, kind="timeout", retryable=True))


def _no_answer(run: Run, node: Node, frame: Frame, path: str) -> int:
    human = node.block.wait_for_input
    listening.leave(run, frame)
    if human.escalation_handler is None:
        failure = Failure(message=person.unanswered(node), kind="timeout")
        return give_up(run, node, path, failure)
    if run.held:
        frame.phase = "unanswered"
        return WAIT
    return _escalate(run, node, frame, path, human.escalation_handler)


def _escalate(run: Run, node: Node, frame: Frame, path: str, handler: str) -> int:
    """Call the escalation handler; of a worker, who may never come, nothing is waited for."""
    request = person.escalation_request(run, node)
    result = aside.at_once(run, handler, request)
    if result is None:
        outside = worker.is_outside(run, handler)
        frame.phase = "escalated"
        plan = ledger.Plan(f"{path}?escalation", node.key, handler, encode(request), "escalation")
        ledger.plan(run, plan, None if outside else frame)
        run.note("human.escalated", path, {"handler": handler})
        return _escalation_over(run, node, path, None) if outside else WAIT
    run.note("human.escalated", path, {"handler": handler})
    if isinstance(result, Failure):
        return give_up(run, node, path, result)
    return _escalation_over(run, node, path, result[0])


def _escalated(run: Run, node: Node, frame: Frame, path: str) -> int:
    """The escalation ended; if it failed the step fails, for nobody ever allowed its handler."""
    if isinstance(run.woken_value, Failure) and run.woken_why == "failed":
        return give_up(run, node, path, run.woken_value)
    return _escalation_over(run, node, path, run.woken_value)


def _escalation_over(run: Run, node: Node, path: str, result: Any) -> int:
    output = person.escalated(node.block, result)
    run.put_output(node.id, output)
    run.note("step.executed", path, {"output": output})
    return DONE


def _act(run: Run, node: Node, frame: Frame, path: str, pause_ms: int = 0) -> int:
    ends = _do(run, node, frame, path, pause_ms)
    if frame.granted:
        passage.unspent(run, frame)
    return ends


def _do(run: Run, node: Node, frame: Frame, path: str, pause_ms: int) -> int:
    block = node.block
    frame.phase = "act"
    frame.attempt += 1
    if run.program.interceptors and frame.attempt == 1:
        intercept.before_step(run, node.id)
    runtime = run.snapshot.runtime = {"current_step": node.id, "attempt": frame.attempt - 1}
    resource = frame.granted["key"] if frame.granted else ""
    if resource:
        runtime["resource_key"] = resource
    try:
        if node.cache_key is not None:
            cached = seeing.cached(run, node, frame)
            if cached is not None:
                run.note("step.cached", path)
                return finish(run, node, frame, path, cached[0], merge=False)
        params = seeing.params_of(run, node)
    except ExpressionError as error:
        return give_up(run, node, path, seeing.failure_of(error))
    handler = block.handler
    if block.fallback_handler is not None:
        handler = breaking.performer(run, node, frame, path)
    move = MOVES.get(handler)
    if move is not None:
        result = move(run, params)
        if not isinstance(result, Called):
            return _moved(run, node, frame, path, result)
        order = own_call.Order(handler, encode(result.request), params, resource)
        return own_call.plan(run, node, frame, path, order)
    if run.snapshot.dry_run and worker.spec(run, node).worker:
        would = {"dry_run": True, "handler": block.handler, "would": params}
        return finish(run, node, frame, path, would, merge=False)
    request = node.table
    if request is None:
        request = encode(params)
        if node.params is None or node.params.constant:  # type: ignore[union-attr]
            node.table = request  # constant params are encoded once per program
    order = own_call.Order(handler, request, params, resource, pause_ms)
    return own_call.plan(run, node, frame, path, order)


def _moved(
    run: Run,
    node: Node,
    frame: Frame,
    path: str,
    result: Moved | Sleep | Failure | listening.Listen,
) -> int:
    if isinstance(result, Moved):
        return finish(run, node, frame, path, result.output, merge=False)
    if isinstance(result, Failure):
        return failed(run, node, frame, path, result)
    if isinstance(result, listening.Listen):
        human = node.block.wait_for_input
        late = None if human is None or human.timeout is None else run.after(human.timeout)
        listening.stand(run, frame, path, result, late)
        return WAIT
    limit = node.block.timeout
    late = limit is not None and limit < result.duration_ms
    frame.v = {**(frame.v or {}), "slept": LATE if late else result.output}
    run.wait(frame, path, "sleep", run.after(limit if late else result.duration_ms))
    return WAIT
