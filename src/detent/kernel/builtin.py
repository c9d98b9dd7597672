"""Built-in handlers that are kernel moves: no ledger entry, no coroutine, a value at once.

Each takes the run and the rendered params and returns a `Moved` value, a `Sleep`, what to
`Listen` for, what is to be `Called`, or a `Failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, to_builtins

from detent.expression import compile_expression
from detent.kernel import injecting
from detent.kernel.bounds import too_large
from detent.kernel.failure import Failure
from detent.kernel.listening import HANDLER, Listen
from detent.kernel.run import Run, encode
from detent.model import limits
from detent.model.errors import ExpressionError, RequestError


class Moved(Struct, frozen=True):
    """The output of a move."""

    output: Any


class Sleep(Struct, frozen=True):
    """Stand for so long, then give the output."""

    duration_ms: int
    output: Any


class Called(Struct, frozen=True):
    """It is not done with the output: somebody outside is called, by an effect of this name."""

    request: Any
    output: Any  # where nobody can be called


Result = Moved | Sleep | Called | Listen | Failure


def _noop(_run: Run, _params: Any) -> Result:
    return Moved({})


def _log(_run: Run, params: Any) -> Result:
    values = params if isinstance(params, dict) else {}
    return Moved({"message": values.get("message", "no message")})


def _sleep(_run: Run, params: Any) -> Result:
    ms = params.get("duration_ms", 100) if isinstance(params, dict) else 100
    if not isinstance(ms, int) or isinstance(ms, bool) or not 0 <= ms <= limits.DURATION_MS:
        return _bad(f"sleep needs duration_ms as a whole number of milliseconds, got {ms!r}")
    return Sleep(ms, {"slept_ms": ms})


def _fail(_run: Run, params: Any) -> Result:
    values = params if isinstance(params, dict) else {}
    message = values.get("message", "forced failure")
    return Failure(
        message=message if isinstance(message, str) else encode(message).decode(),
        kind="logic",
        retryable=values.get("retryable") is True,
        details=values.get("details"),
    )


def _transform(_run: Run, params: Any) -> Result:
    return Moved(params)


def _assert(run: Run, params: Any) -> Result:
    if not isinstance(params, dict) or "condition" not in params:
        return _bad("assert needs a condition")
    condition = params["condition"]
    passed = condition is True
    if isinstance(condition, str):
        try:
            passed = compile_expression(condition, strict=run.program.strict).test(run.scope())
        except ExpressionError as error:
            return Failure(message=str(error), kind="expression", code=error.code)
    if passed:
        return Moved({"condition": condition, "passed": True})
    return Failure(
        message=str(params.get("message") or f"assertion failed: {condition}"), kind="logic"
    )


def _set_state(run: Run, params: Any) -> Result:
    key = _key(params)
    if key is None or "value" not in params:
        return _bad("set_state needs a key (text) and a value")
    return _keep(run, {key: params["value"]}) or Moved({"key": key, "value": params["value"]})


def _get_state(run: Run, params: Any) -> Result:
    key = _key(params)
    if key is None:
        return _bad("get_state needs a key (text)")
    return Moved({"key": key, "value": run.snapshot.kv.get(key)})


def _delete_state(run: Run, params: Any) -> Result:
    key = _key(params)
    if key is None:
        return _bad("delete_state needs a key (text)")
    run.snapshot.kv.pop(key, None)
    return Moved({"key": key, "deleted": True})


def _merge_state(run: Run, params: Any) -> Result:
    values = params.get("values") if isinstance(params, dict) else None
    if not isinstance(values, dict):
        return _bad("merge_state needs values as an object")
    return _keep(run, values) or Moved({"merged_keys": sorted(values)})


def _keep(run: Run, values: dict[str, Any]) -> Failure | None:
    """Put values into the instance's own state, unless it would grow over its limit."""
    state = {**run.snapshot.kv, **values}
    size = len(encode(state))
    if size > limits.CONTEXT_BYTES:
        return too_large("state", size, limits.CONTEXT_BYTES)
    run.snapshot.kv = state
    return None


def _self_modify(run: Run, params: Any) -> Result:
    """Put blocks in after those of the sequence; what is no proper block fails the step."""
    blocks = params.get("blocks") if isinstance(params, dict) else None
    if not isinstance(blocks, list) or not blocks:
        return _bad("self_modify needs blocks as a list of at least one block")
    told = injecting.checked(run, blocks)
    if isinstance(told, str):
        return Failure(message=told, kind="definition", code="definition.invalid")
    try:
        injecting.inject(run, told, injecting.position_of(params.get("position")))
    except RequestError as error:
        return Failure(message=error.message, kind="definition", code=error.code)
    run.relisted = True
    return Moved(
        {
            "_self_modify": True,
            "blocks": blocks,
            "position": params.get("position"),
            "injected_count": len(blocks),
        }
    )


def _human_review(run: Run, params: Any) -> Result:
    values = params if isinstance(params, dict) else {}
    node = run.program.nodes.get(run.snapshot.runtime.get("current_step", ""))
    human = node.block.wait_for_input if node is not None else None
    choices = [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}]
    if human is not None and human.choices is not None:
        choices = [to_builtins(choice) for choice in human.choices]
    review = {
        "type": "human_review",
        "status": "pending",
        "reviewer": values.get("reviewer", "unassigned"),
        "instructions": values.get("instructions"),
        "review_data": values.get("review_data"),
        "instance_id": run.snapshot.id,
        "block_id": run.snapshot.runtime.get("current_step"),
        "choices": choices,
        "allow_comment": human is not None and human.allow_comment,
    }
    return _notified(run, values, review) if values.get("notify_url") is not None else Moved(review)


def _notified(run: Run, values: dict[str, Any], review: dict[str, Any]) -> Result:
    """A review that somebody is told of by a call."""
    url, headers = values["notify_url"], values.get("notify_headers") or {}
    if not isinstance(url, str) or not isinstance(headers, dict):
        return _bad("human_review needs notify_url as a text and notify_headers as an object")
    if run.snapshot.dry_run:
        would = {"method": "POST", "url": url}
        return Moved({**review, "dry_run": True, "handler": "human_review", "would": would})
    return Called({"notify_url": url, "notify_headers": headers, "review": review}, review)


def _wait_for_event(run: Run, params: Any) -> Result:
    values = params if isinstance(params, dict) else {}
    names = _names(values.get("events"))
    if names is None:
        most = f"1 to {limits.EVENT_NAMES} names of 1 to {limits.NAME_CHARS} characters"
        return _bad(f"wait_for_event needs events, one name or a list: {most}")
    key = values.get("correlation_key")
    if type(key) is int:
        key = str(key)
    if not isinstance(key, str) or not key.strip() or len(key) > limits.KEY_CHARS:
        return _bad(f"wait_for_event needs a correlation_key of 1 to {limits.KEY_CHARS} characters")
    join, count = values.get("join", "all"), values.get("count", 0)
    if join not in ("any", "all", "count"):
        return _bad(f"wait_for_event joins by any, all or count; got {join!r}")
    if join == "count" and (type(count) is not int or not 1 <= count <= limits.EVENT_COUNT):
        return _bad(f"join count needs a count from 1 to {limits.EVENT_COUNT}; got {count!r}")
    if run.snapshot.dry_run:  # a dry run takes no event away from anybody
        return Moved({"dry_run": True, "handler": HANDLER, "would": params, "satisfied": False})
    return Listen(names, key, count if join == "count" else int(join == "any"))


def _names(events: Any) -> tuple[str, ...] | None:
    listed = [events] if isinstance(events, str) else events
    if not isinstance(listed, list) or not 0 < len(listed) <= limits.EVENT_NAMES:
        return None
    for name in listed:
        if not isinstance(name, str) or not name.strip() or len(name) > limits.NAME_CHARS:
            return None
    return tuple(dict.fromkeys(listed))


def _key(params: Any) -> str | None:
    key = params.get("key") if isinstance(params, dict) else None
    return key if isinstance(key, str) and 0 < len(key) <= limits.KEY_CHARS else None


def _bad(message: str) -> Failure:
    return Failure(message=message, kind="definition", code="request.invalid")


MOVES: dict[str, Callable[[Run, Any], Result]] = {
    "noop": _noop,
    "log": _log,
    "sleep": _sleep,
    "fail": _fail,
    "transform": _transform,
    "assert": _assert,
    "set_state": _set_state,
    "get_state": _get_state,
    "delete_state": _delete_state,
    "merge_state": _merge_state,
    "human_review": _human_review,
    HANDLER: _wait_for_event,
    "self_modify": _self_modify,
}
