"""A tenant's gate from outside: its instance, how that is started, and arguments of changes."""

from __future__ import annotations

import datetime as dt
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
from detent.service.arguments import check_text, instant_ms, shown
from detent.service.starting import PRIORITIES

if TYPE_CHECKING:
    from detent.ports.store import Store

SYSTEM = "detent"
"""The namespace of the engine's own instances."""


# the gate's instance -----------------------------------------------------------------------------


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


# arguments ---------------------------------------------------------------------------------------


def window_ms(window: Any) -> int:
    """A window as whole milliseconds: "1h", a timedelta, milliseconds, or seconds as a float."""
    return _span("limit.invalid", "window", window)


def closing_ms(until: dt.datetime | None, for_: Any, now_ms: int) -> int:
    """The instant at which a closed limit opens again."""
    if (until is None) == (for_ is None):
        raise RequestError("limit.invalid", "say how long a limit is closed: either until or for_")
    if until is not None:
        return instant_ms("until", until)
    return now_ms + _span("limit.invalid", "for_", for_)


def resource_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a resource as they travel: dates as text."""
    start = fields.get("warmup_start")
    if isinstance(start, dt.date) and not isinstance(start, dt.datetime):
        return {**fields, "warmup_start": start.isoformat()}
    return fields


def _span(code: str, name: str, value: Any) -> int:
    ms = to_duration(value)
    if type(ms) is float and abs(ms) <= limits.DURATION_MS:  # NaN compares as False
        ms = round(ms * 1000)
    if type(ms) is not int or not 0 < ms <= limits.DURATION_MS:
        expected = 'a length of time such as "1h", a timedelta or whole milliseconds, above 0'
        raise RequestError(code, f"{name} must be {expected}; got {shown(value)}")
    return ms
