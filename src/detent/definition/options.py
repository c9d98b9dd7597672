"""The keyword options of the builders, with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from detent.definition.places import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from detent.definition.durations import Duration

Block = dict[str, Any]
"""A block in wire form, as the builders make it."""


class Named(Protocol):
    """A decorated Python function; its registered name goes into the definition."""

    detent_name: str


Handler = str | Named | Callable[..., Any]  # a decorated function keeps its own type


class StepOptions(TypedDict, total=False):
    """What `step` takes beside id and handler; names and meanings are those of the wire."""

    params: Any
    delay: Duration | Mapping[str, Any] | None
    retry: Mapping[str, Any] | None
    timeout: Duration | None
    rate_limit_key: str | Sequence[str] | None
    send_window: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    context_access: Mapping[str, Any] | None
    cancellable: bool
    wait_for_input: Mapping[str, Any] | None
    queue_name: str | None
    deadline: Duration | None
    on_deadline_breach: Mapping[str, Any] | None
    fallback_handler: Handler | None
    cache_key: str | None
    output_schema: Mapping[str, Any] | None
    when: str | None
    compensation: Any
    pool: str | None
    sticky: bool


class RetryOptions(TypedDict, total=False):
    """What `retry` takes beside the number of attempts."""

    initial_backoff: Duration
    max_backoff: Duration
    backoff_multiplier: float
    jitter: Duration | None
    retry_if: str | None
    non_retryable_codes: Sequence[str]


class WaitOptions(TypedDict, total=False):
    """What `wait` takes beside a duration and a signal."""

    days: float
    hours: float
    minutes: float
    seconds: float
    until: str | Mapping[str, Any]
    business_day: bool
    timezone: str
    holidays: Sequence[str]
    country: str


class LoopOptions(TypedDict, total=False):
    """What `loop` takes beside condition and body; a plain number as interval is in seconds."""

    max_iterations: int
    break_on: str | None
    continue_on_error: bool
    poll_interval: Duration | None
    retain_iterations: int | None


class ForEachOptions(TypedDict, total=False):
    """What `for_each` takes beside collection and body."""

    item_var: str
    max_iterations: int
    retain_iterations: int | None


class SequenceOptions(TypedDict, total=False):
    """What `sequence` takes beside name and blocks."""

    version: int
    input_schema: Mapping[str, Any] | None
    on_failure: Sequence[Block] | None
    on_cancel: Sequence[Block] | None
    policies: Sequence[Mapping[str, Any]]
    mode: Literal["lenient", "strict"]
    pool: str | None
    sticky: bool
    calendars: Mapping[str, Sequence[str]]
    sla: Mapping[str, Any] | None
    interceptors: Mapping[str, Any] | None


def refuse_unknown(builder: str, given: Collection[str], options: Any) -> None:
    """Raise `TypeError` for an option that the options' class lacks, as Python does itself."""
    known = sorted(options.__optional_keys__)
    for name in given:
        if name not in known:
            near = did_you_mean(name, known)
            message = f"{builder}() got an unexpected keyword argument '{name}'{near}"
            raise TypeError(message)
