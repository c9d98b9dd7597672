"""The step and its options."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, item
from detent.definition.shapes.delays import DELAY
from detent.definition.shapes.expressions import (
    error_condition,
    guard,
    named,
    template,
    templated,
)
from detent.definition.shapes.fields import (
    data,
    factor,
    flag,
    listed,
    members,
    refuse_unsupported,
    shaped,
    text,
    unique,
    whole,
    words,
    wrong_type,
)
from detent.definition.shapes.nesting import block_shape
from detent.definition.shapes.schemas import schema
from detent.definition.shapes.times import duration, spread
from detent.definition.shapes.windows import send_window
from detent.definition.support import OWN_HANDLERS, UNSUPPORTED_HANDLERS
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.limits import KEY_CHARS, NAME_CHARS, RATE_LIMIT_KEYS

_INT32 = 2**31 - 1
_handler_name = words(KEY_CHARS)
_limit_key = named(KEY_CHARS)
_limit_list = listed(
    _limit_key, least=1, most=RATE_LIMIT_KEYS, empty="expected at least one rate limit key"
)
pool = named(NAME_CHARS)


def handler(walk: Walk, path: str, value: Any) -> Any:
    """Check the name of a handler."""
    if _handler_name(walk, path, value) is NOTHING:
        return NOTHING
    if value in UNSUPPORTED_HANDLERS:
        refuse_unsupported(walk, path, f"handler {value}", UNSUPPORTED_HANDLERS[value])
    if value in OWN_HANDLERS:
        message = f"handler {value} is the engine's own; name another"
        walk.fault(path, "definition.unsupported", message)
    if walk.lint:
        walk.handlers.append((path, value))
    return value


def _retry_rule(walk: Walk, path: str, out: dict[str, Any], _raw: dict[str, Any]) -> None:
    first, last = out.get("initial_backoff"), out.get("max_backoff")
    if first is not None and last is not None and first > last:
        message = f"initial_backoff must be <= max_backoff, found {first} > {last}; change one"
        walk.fault(below(path, "initial_backoff"), "definition.range", message)


def _limits(walk: Walk, path: str, value: Any) -> Any:
    """Check one key or several; the canonical form of a list of one is that one."""
    if type(value) is str:
        return _limit_key(walk, path, value)
    if type(value) is not list:
        return wrong_type(walk, path, "a text or a list of texts", value)
    out = _limit_list(walk, path, value)
    if out is NOTHING:
        return NOTHING
    keys = [(item(path, index), key) for index, key in enumerate(out) if type(key) is str]
    unique(walk, keys, "rate limit key")
    return out[0] if len(out) == 1 else out


def _choices(walk: Walk, path: str, value: Any) -> Any:
    out = _choice_list(walk, path, value)
    if out is not NOTHING:
        values = [
            (below(item(path, index), "value"), chosen["value"])
            for index, chosen in enumerate(out)
            if type(chosen) is dict and "value" in chosen
        ]
        unique(walk, values, "value of a choice")
    return out


def _visible(walk: Walk, path: str, value: Any) -> Any:
    if type(value) is bool:
        return value
    if value in ("all", "none"):
        return value == "all"
    if type(value) is dict:
        return members(walk, path, value, _FIELDS)
    return wrong_type(walk, path, 'true, false, "all", "none" or {"fields": […]}', value)


_FIELDS = Shape("context_access.data", (Field("fields", listed(text), required=True),))

_RETRY = Shape(
    "retry",
    (
        Field("max_attempts", whole(1, _INT32), required=True),
        Field("initial_backoff", duration, required=True),
        Field("max_backoff", duration, required=True),
        Field("backoff_multiplier", factor, default=2.0),
        Field("jitter", spread),
        Field("retry_if", error_condition),
        Field("non_retryable_codes", listed(words()), default=[]),
    ),
    _retry_rule,
)

_CHOICE = Shape(
    "choice", (Field("label", text, required=True), Field("value", text, required=True))
)
_choice_list = listed(shaped(_CHOICE), least=1, empty="expected at least one choice")

_HUMAN_INPUT = Shape(
    "wait_for_input",
    (
        Field("prompt", text, default=""),
        Field("timeout", duration),
        Field("escalation_handler", handler),
        Field("choices", _choices),
        Field("store_as", words()),
        Field("allow_comment", flag, default=False),
    ),
)

_CONTEXT_ACCESS = Shape(
    "context_access",
    (
        Field("data", _visible, default=True),
        Field("config", flag, default=True),
        Field("audit", flag, default=False),
        Field("runtime", flag, default=False),
    ),
)

CALL = Shape("call", (Field("handler", handler, required=True), Field("params", templated)))

STEP = block_shape(
    "step",
    Field("handler", handler, required=True),
    Field("params", templated),
    Field("delay", shaped(DELAY)),
    Field("retry", shaped(_RETRY)),
    Field("timeout", duration),
    Field("rate_limit_key", _limits),
    Field("send_window", send_window),
    Field("context_access", shaped(_CONTEXT_ACCESS)),
    Field("cancellable", flag, default=True),
    Field("wait_for_input", shaped(_HUMAN_INPUT)),
    Field("queue_name", words()),
    Field("deadline", duration),
    Field("on_deadline_breach", shaped(CALL)),
    Field("fallback_handler", handler),
    Field("cache_key", template),
    Field("output_schema", schema),
    Field("when", guard),
    Field("compensation", data),
    Field("pool", pool),
    Field("sticky", flag, default=True),
)
