"""Commands: calls that can be refused; each leaves a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from detent.kernel import ledger
from detent.kernel.ending import advance, tell_of_retry
from detent.kernel.lifecycle_moves import cancel, pause, resume_instance
from detent.kernel.migrate import migrate
from detent.kernel.program import Program
from detent.kernel.resume import resume_token
from detent.kernel.run import Run
from detent.kernel.slot import wake_up
from detent.kernel.walk import renew_lanes
from detent.model.decision import Verdict
from detent.model.errors import RequestError
from detent.model.inputs import Commanded
from detent.model.snapshot import Frame

_NEEDS = {
    "pause": "only an instance that is scheduled, running or waiting can be paused",
    "resume": "only a paused instance can be resumed, or one whose pause is held",
    "cancel": "only an instance that has not ended and is not being cancelled can be cancelled",
    "retry": "only a failed instance can be retried",
}
_ACTIONS = ("happened", "failed", "skip", "again")


def command(run: Run, told: Commanded, index: int) -> None:
    """Carry a command out, or refuse it with nothing changed."""
    try:
        result = _carry_out(run, told)
    except RequestError as error:
        run.note("command.refused", "", {"in": index, "verb": told.verb, "code": error.code})
        run.verdicts.append(Verdict(id=told.id, ok=False, code=error.code, message=error.message))
        return
    run.verdicts.append(Verdict(id=told.id, result=result))


def _carry_out(run: Run, told: Commanded) -> Any:
    args = told.args if isinstance(told.args, dict) else {}
    snapshot = run.snapshot
    done = True
    match told.verb:
        case "pause":
            done = pause(run, "operator")
        case "resume":
            done = resume_instance(run, "operator")
        case "cancel":
            done = cancel(run, "operator")
        case "retry":
            retry(run)
        case "resolve":
            _resolve(run, args)
        case "migrate":
            migrate(run, args)
    if not done:
        raise _refusal(told.verb, snapshot.state)
    return {"state": snapshot.state}


def retry(run: Run) -> None:
    """Go on from the failed nodes in a new generation; nothing completed is repeated."""
    snapshot = run.snapshot
    if snapshot.state != "failed" or snapshot.root is None:
        raise _refusal("retry", snapshot.state)
    repeated = list(_failed_blocks(snapshot.root))
    for effect in snapshot.effects:
        if effect.kind == "call" and _stands_below(run.program, effect.block, repeated):
            raise RequestError(
                "effect.unsettled",
                f"the effect {effect.key} of {effect.node} is not settled yet; "
                "wait for its outcome or resolve it",
            )
    run.move("scheduled", "retry", "run.retried")
    snapshot.generation += 1
    snapshot.ended = None
    snapshot.error = None
    snapshot.root.stop = False
    renew_lanes(run, snapshot.root)
    tell_of_retry(run)
    run.held = False
    wake_up(run, "retry")
    advance(run)


def _refusal(verb: str, state: str) -> RequestError:
    return RequestError(
        "instance.transition", f"{_NEEDS[verb]}; this one is {state}", source=state, verb=verb
    )


def _failed_blocks(frame: Frame) -> Iterator[str]:
    """The blocks a retry enters again: the innermost failed ones."""
    for lane in frame.lanes:
        if lane.end == "failed" and lane.open is not None:
            within = list(_failed_blocks(lane.open))
            yield from within or [lane.open.b]


def _stands_below(program: Program, block: str, above: list[str]) -> bool:
    key = block
    while key in program.nodes:
        if key in above:
            return True
        key = program.nodes[key].parent
    return False


def _resolve(run: Run, args: dict[str, Any]) -> None:
    effect = run.effect(str(args.get("key", "")))
    action = args.get("action")
    if effect is None:
        raise RequestError(
            "effect.not_found", f"the instance has no open effect {args.get('key')!r}"
        )
    if action not in _ACTIONS:
        raise RequestError(
            "request.invalid", f"action must be one of {', '.join(_ACTIONS)}; got {action!r}"
        )
    if effect.state != "indeterminate":
        raise RequestError(
            "effect.state",
            f"the effect is {effect.state}; only an indeterminate one is resolved by a person",
        )
    wake = ledger.resolve(run, effect, action, args.get("result"))
    if action == "again" and run.snapshot.concurrency is not None and not effect.unwanted:
        wake_up(run, "resolve")  # it is on its way again, so it needs its key again
    resume_token(run, wake)
