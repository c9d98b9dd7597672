"""Commands: calls that can be refused; each leaves a verdict."""

from __future__ import annotations

from typing import Any

from detent.kernel import ledger
from detent.kernel.injecting import inject_command
from detent.kernel.lifecycle_moves import begin, cancel, go_on, pause, resume_instance
from detent.kernel.migrate import migrate
from detent.kernel.resume import resume_token
from detent.kernel.retrying import renew, resume_from
from detent.kernel.run import Run
from detent.kernel.slot import wake_up
from detent.kernel.steering import reschedule, set_data, set_state
from detent.kernel.survey import shown_state
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.model.inputs import Commanded

_NEEDS = {
    "pause": "only an instance that is scheduled, running or waiting can be paused",
    "resume": "only a paused instance can be resumed, or one whose pause is held",
    "begin": "only an instance that has not started can begin",
    "cancel": "only an instance that has not ended and is not being cancelled can be cancelled",
}
_ACTIONS = ("happened", "failed", "skip", "again")


def command(run: Run, told: Commanded, index: int) -> None:
    """Carry a command out, or refuse it with nothing changed."""
    source = run.snapshot.state
    try:
        result = _carry_out(run, told, index)
    except RequestError as error:
        run.note("command.refused", "", {"in": index, "verb": told.verb, "code": error.code})
        run.verdicts.append(Verdict(id=told.id, ok=False, code=error.code, message=error.message))
        return
    if told.batch:
        detail = {"action": told.verb, "batch": told.batch, "state": source}
        run.note("batch.action", "", detail)
    run.verdicts.append(Verdict(id=told.id, result=result))


def _carry_out(run: Run, told: Commanded, index: int) -> dict[str, Any]:
    args = told.args if isinstance(told.args, dict) else {}
    snapshot = run.snapshot
    result: dict[str, Any] = {}
    done = True
    match told.verb:
        case "pause":
            done = pause(run, "operator")
        case "resume":
            done = resume_instance(run, "operator")
        case "cancel":
            done = cancel(run, "operator", _reason(args))
        case "begin":
            done = begin(run, args.get("at"))
        case "retry":
            renew(run)
            go_on(run, "retry", None)
        case "resolve":
            _resolve(run, args)
        case "migrate":
            migrate(run, args)
        case _:
            result = _steer(run, told.verb, args, index)
    if not done:
        raise _refusal(told.verb, snapshot.state)
    return {**result, "state": _standing(run)}


def _reason(args: dict[str, Any]) -> str:
    reason = args.get("reason") or ""
    if type(reason) is not str or len(reason) > limits.MESSAGE_CHARS:
        raise RequestError(
            "request.invalid", f"reason must be text of at most {limits.MESSAGE_CHARS} characters"
        )
    return reason


def _standing(run: Run) -> str:
    """The state the instance will show when this turn ends here."""
    snapshot = run.snapshot
    if snapshot.state != "running" or run.more:
        return snapshot.state
    return "paused" if run.held else shown_state(snapshot)


def _steer(run: Run, verb: str, args: dict[str, Any], index: int) -> dict[str, Any]:
    if run.snapshot.namespace == SYSTEM:
        raise RequestError("request.invalid", "the engine's own instances are not steered")
    match verb:
        case "set_data":
            set_data(run, args, index)
        case "set_state":
            set_state(run, args)
        case "reschedule":
            return reschedule(run, args)
        case "resume_from":
            return resume_from(run, args)
        case "inject":
            return inject_command(run, args)
        case _:
            raise RequestError("request.invalid", f"an instance cannot be asked to {verb}")
    return {}


def _refusal(verb: str, state: str) -> RequestError:
    return RequestError(
        "instance.transition", f"{_NEEDS[verb]}; this one is {state}", source=state, verb=verb
    )


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
