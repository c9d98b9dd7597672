"""Builders for sequences and steps: Python calls to wire form, then the same `normalize`.

A builder never judges a value: what cannot be converted stays as it is, so that one report names
every fault with its path, however the definition was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from detent.definition.durations import Duration, to_duration
from detent.definition.normalize import normalize
from detent.definition.options import (
    Block,
    Handler,
    RetryOptions,
    SequenceOptions,
    StepOptions,
    WaitOptions,
    refuse_unknown,
)

if TYPE_CHECKING:
    from detent.model.definition import Definition

_BACKOFF_MS = 1_000
_BACKOFF_MAX_MS = 60_000
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
_CALENDAR = ("business_day", "timezone", "holidays", "country")


def sequence(name: str, /, *blocks: Block, **options: Unpack[SequenceOptions]) -> Definition:
    """Make a definition of blocks that run one after another; the version is 1 if not given."""
    refuse_unknown("sequence", options, SequenceOptions)
    raw: dict[str, Any] = {"version": 1, **options, "name": name, "blocks": list(blocks)}
    raw["policies"] = [
        _converted(policy, handlers=("handler",)) for policy in raw.get("policies") or ()
    ]
    raw["sla"] = _converted(raw.get("sla"), durations=("max_runtime", "max_step_runtime"))
    if isinstance(raw.get("interceptors"), Mapping):
        raw["interceptors"] = {
            moment: _converted(call, handlers=("handler",))
            for moment, call in raw["interceptors"].items()
        }
    return normalize(raw)


def step(block_id: str, handler: Handler, /, **options: Unpack[StepOptions]) -> Block:
    """Make a step that runs one handler, given by name or as a decorated function."""
    refuse_unknown("step", options, StepOptions)
    block: Block = {**options, "type": "step", "id": block_id, "handler": handler_name(handler)}
    delay = block.get("delay")
    if delay is not None and not isinstance(delay, Mapping):
        delay = {"duration": delay}
    block["delay"] = _converted(delay, durations=("duration", "jitter"))
    block["send_window"] = _windows(block.get("send_window"))
    block["retry"] = _converted(
        block.get("retry"), durations=("initial_backoff", "max_backoff", "jitter")
    )
    block["wait_for_input"] = _converted(
        block.get("wait_for_input"), durations=("timeout",), handlers=("escalation_handler",)
    )
    block["on_deadline_breach"] = _converted(block.get("on_deadline_breach"), handlers=("handler",))
    out: Block = _converted(
        block, durations=("timeout", "deadline"), handlers=("fallback_handler",)
    )
    return out


def retry(max_attempts: int, **options: Unpack[RetryOptions]) -> dict[str, Any]:
    """Make a retry policy of so many executions; the backoff is 1 s, doubling to one minute."""
    refuse_unknown("retry", options, RetryOptions)
    policy: dict[str, Any] = {"initial_backoff": _BACKOFF_MS, **options}
    policy = _converted(policy, durations=("initial_backoff", "max_backoff", "jitter"))
    first = policy["initial_backoff"]
    longest = max(first, _BACKOFF_MAX_MS) if type(first) is int else _BACKOFF_MAX_MS
    return {"max_backoff": longest, **policy, "max_attempts": max_attempts}


def wait(
    block_id: str,
    /,
    duration: Duration | None = None,
    signal: str | None = None,
    store_as: str | None = None,
    **options: Unpack[WaitOptions],
) -> Block:
    """Make a wait for a duration, for a signal, or for the first of both.

    `days`, `hours`, `minutes` and `seconds` add up to a duration; `until` (a local time) and
    `business_day` say to which moment it goes on when that is over.
    """
    refuse_unknown("wait", options, WaitOptions)
    block: Block = {"type": "wait", "id": block_id, "signal": signal, "store_as": store_as}
    block["until"] = _until(options)
    return {**block, "duration": _total(to_duration(duration), options)}


def _until(options: Mapping[str, Any]) -> dict[str, Any] | None:
    until = {name: options[name] for name in _CALENDAR if options.get(name) is not None}
    moment = options.get("until")
    if isinstance(moment, Mapping):
        return {**moment, **until}
    return {"time": moment, **until} if moment is not None else until or None


def _total(duration: Any, options: Mapping[str, Any]) -> Any:
    """The sum of what was given; what is no number stays as it is, for `normalize` to name."""
    given = [(options[name], unit) for name, unit in _UNITS_MS.items() if name in options]
    for count, _ in given:
        if type(count) is not int and type(count) is not float:
            return count
    if not given:
        return duration
    whole = sum(round(count * unit) for count, unit in given)
    if type(duration) is float:  # seconds with a fraction
        return round(duration * 1000) + whole
    if type(duration) is int:
        return duration + whole
    return whole if duration is None else duration


def handler_name(handler: Any) -> Any:
    """Give the name of a handler; anything but a name or a decorated function stays as it is."""
    return getattr(handler, "detent_name", handler)


def _windows(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return [_converted(window, durations=("send_late_within",)) for window in given]
    return _converted(given, durations=("send_late_within",))


def _converted(
    given: Any, *, durations: tuple[str, ...] = (), handlers: tuple[str, ...] = ()
) -> Any:
    """Copy a mapping with durations and handlers in wire form."""
    if not isinstance(given, Mapping):
        return given
    out = dict(given)
    for name in durations:
        if name in out:
            out[name] = to_duration(out[name])
    for name in handlers:
        if name in out:
            out[name] = handler_name(out[name])
    return out
