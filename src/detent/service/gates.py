"""A tenant's gate from outside: its instance, how that is started, and arguments of changes."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from detent.definition.durations import to_duration
from detent.definition.system import GATE
from detent.kernel.gate.config import change
from detent.model import limits
from detent.model.decision import Birth
from detent.model.errors import RequestError
from detent.model.ids import derived_id
from detent.model.inputs import Started, encode_input
from detent.model.link import Submission
from detent.service.arguments import check_text, instant_ms, shown, storable
from detent.service.starting import PRIORITIES

if TYPE_CHECKING:
    from detent.ports.store import Store

SYSTEM = "detent"
"""The namespace of the engine's own instances."""

RESOURCE_FIELDS = (
    "name",
    "weight",
    "enabled",
    "daily_cap",
    "timezone",
    "warmup_start",
    "warmup_days",
    "warmup_start_cap",
    "warmup_schedule",
)

_TEXTS = ("key", "pool", "name", "id", "resource_key", "strategy", "timezone", "warmup_start")
_OPTIONAL = ("warmup_start", "warmup_schedule")


# the gate's instance -----------------------------------------------------------------------------


def pool_id(tenant: str, name: str) -> str:
    """What clients of the API know a pool by."""
    return derived_id(tenant, "gate", f"pool:{name}")


def gate_id(tenant: str) -> str:
    """The id of a tenant's gate."""
    check_text("tenant", tenant, limits.NAME_CHARS)
    return derived_id(tenant, "gate", "")


def gate_start(tenant: str, seed: str) -> Submission:
    """The submission that starts a tenant's gate; a second one finds it there."""
    instance = gate_id(tenant)
    birth = Birth(
        id=instance,
        tenant=tenant,
        namespace=SYSTEM,
        definition=GATE.hash,
        priority=PRIORITIES["Critical"],
        key=GATE.name,
    )
    started = Started(
        instance=instance,
        tenant=tenant,
        namespace=SYSTEM,
        definition=GATE.hash,
        priority=birth.priority,
        key=birth.key,
        seed=seed,
    )
    return Submission(instance, encode_input(started), birth=birth)


def gate_started(store: Store, tenant: str) -> bool:
    """Whether a tenant has a gate."""
    return store.instance(gate_id(tenant)) is not None


def check_first_change(verb: str, args: dict[str, Any], now_ms: int) -> None:
    """Refuse a change that a gate without any configuration would refuse."""
    change({}, verb, args, now_ms)


def check_resource(args: dict[str, Any], now_ms: int) -> None:
    """Refuse a resource that every pool would refuse; its pool may or may not be there."""
    kv: dict[str, Any] = {}
    change(kv, "pool.set", {"name": args["pool"], "strategy": "weighted"}, now_ms)
    change(kv, "resource.set", args, now_ms)


# arguments ---------------------------------------------------------------------------------------


def check_arguments(verb: str, args: Mapping[str, Any]) -> None:
    """Refuse what would travel as something else, or not at all, by the code of its verb."""
    code = "limit.invalid" if verb.startswith("limit.") else "pool.invalid"
    for name, value in args.items():
        if name in _TEXTS:
            right = storable(value) and 0 < len(value) <= limits.NAME_CHARS
            expected = f"text of 1 to {limits.NAME_CHARS} characters without NUL and surrogates"
        else:
            right = all(map(_plain, value if isinstance(value, list | tuple) else (value,)))
            expected = "whole numbers" if isinstance(value, list | tuple) else "a whole number"
        if not right and not (value is None and name in _OPTIONAL):
            raise RequestError(code, f"{name} must be {expected}; got {shown(value)}")


def _plain(value: Any) -> bool:
    """Whether a value travels as it is; what it may be is the gate's affair."""
    if type(value) is int:
        return value.bit_length() < limits.INTEGER_BITS
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool or storable(value)


def window_ms(window: Any) -> int:
    """A window as whole milliseconds: "1h", a timedelta, or milliseconds."""
    return _span("window", window, limits.LIMIT_WINDOW_MS, "366 days")


def closing_ms(until: dt.datetime | None, for_: Any, now_ms: int) -> int:
    """The instant at which a closed limit opens again."""
    if (until is None) == (for_ is None):
        raise RequestError("limit.invalid", "say how long a limit is closed: either until or for_")
    if until is None:
        return now_ms + _span("for_", for_, limits.DURATION_MS, "100 years")
    ms = instant_ms("until", until)
    if not now_ms < ms <= now_ms + limits.DURATION_MS:
        now = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC).isoformat(timespec="seconds")
        raise RequestError(
            "limit.invalid",
            f"until must lie ahead, by 100 years at most; got {until.isoformat()}, and it is {now}",
        )
    return ms


def resource_fields(fields: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a resource as they travel, dates as text; `now` is the resource with them."""
    for name in fields:
        if name not in RESOURCE_FIELDS:
            near = get_close_matches(str(name), RESOURCE_FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(RESOURCE_FIELDS)}"
            raise RequestError("pool.invalid", f"a resource has no field {shown(name)}; {hint}")
    _check_warmup(fields, now)
    start = fields.get("warmup_start")
    if isinstance(start, dt.date) and not isinstance(start, dt.datetime):
        return {**fields, "warmup_start": start.isoformat()}
    if isinstance(start, str):
        _check_day(start)
    return dict(fields)


def _check_warmup(fields: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse what would have no effect: a part of a warm-up where there is none."""
    if now.get("warmup_days") or now.get("warmup_schedule"):
        return
    for name, needed in (
        ("warmup_start_cap", "warmup_days with a daily_cap"),
        ("warmup_start", "warmup_days with a daily_cap, or a warmup_schedule"),
    ):
        if fields.get(name):
            raise RequestError("pool.invalid", f"{name} has no effect alone: it needs {needed}")


def _check_day(text: str) -> None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return  # the gate refuses it
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        raise RequestError("pool.invalid", f"warmup_start: there is no day {text}") from None


def _span(name: str, value: Any, most: int, words: str) -> int:
    ms = to_duration(value)
    if type(ms) is int and 0 < ms <= most:
        return ms
    expected = 'a text such as "1h" or "90s", a timedelta, or whole milliseconds'
    if type(ms) is float:
        expected += ", not a float, which may be seconds or milliseconds"
    expected += f"; above 0 and at most {words}"
    raise RequestError("limit.invalid", f"{name} must be {expected}; got {shown(value)}")
