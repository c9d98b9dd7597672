"""The kinds of records about workers: what a caller gives, what is kept of it, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from detent.kernel.routing import RULE, RoutingRule, owner_of
from detent.model import limits
from detent.model.payload import encode_payload
from detent.service import push_targets
from detent.service.arguments import check_text, invalid
from detent.service.holds import PIN, VersionPin
from detent.service.push_targets import KeptTarget, PushTarget
from detent.service.vault import Place, Safe

_MOST_PRIORITY = 2**31 - 1


class WorkerCommand(Struct, frozen=True, kw_only=True):
    """Something a worker is told: `drain` and `resume`, or a word of its own."""

    worker_id: str
    command: str
    tenant_id: str = ""
    payload: Any = None
    acknowledged: bool = False


Body = RoutingRule | VersionPin | PushTarget | WorkerCommand


class Where(NamedTuple):
    """Where a body is kept: its place, what secrets are sealed with, and what was there before."""

    place: Place
    safe: Safe
    earlier: Any = None


class Kind(NamedTuple):
    """A kind of record: what is given and kept, and the fields by which it is unique or found."""

    name: str
    shape: type[Any]
    kept: type[Any]
    settle: Callable[[Any, Where], Any]  # what is kept of a body, or a refusal
    show: Callable[[Any], dict[str, Any]] = asdict
    key: str = ""
    owner: Callable[[str, Any], str | None] = lambda _tenant, _kept: None


def _settle_rule(body: RoutingRule, _where: Where) -> RoutingRule:
    queue = body.queue
    if body.queue_override not in ("", queue):
        raise invalid("queue_override", "the same as queue_name, or left out", body.queue_override)
    check_text("handler_name", body.handler_name, limits.NAME_CHARS)
    check_text("queue_name", queue, limits.NAME_CHARS)
    if body.match_queue:
        check_text("match_queue", body.match_queue, limits.NAME_CHARS)
    if abs(body.priority) > _MOST_PRIORITY:
        raise invalid("priority", f"a whole number up to {_MOST_PRIORITY:,}", body.priority)
    return replace(body, queue_name=queue, queue_override=queue, tenant_id="")


def _settle_pin(body: VersionPin, _where: Where) -> VersionPin:
    _check_texts(body, "handler_name", "version" if body.version else "min_version")
    if body.version and body.min_version:
        raise invalid("a pin", "version or min_version, not both", body.min_version)
    return replace(body, tenant_id="")


def _settle_target(body: PushTarget, where: Where) -> KeptTarget:
    return push_targets.settled(body, where.place, where.safe, where.earlier)


def _settle_command(body: WorkerCommand, _where: Where) -> WorkerCommand:
    _check_texts(body, "worker_id", "command")
    encode_payload(body.payload, where="payload", limit=limits.CHECKPOINT_BYTES)
    return replace(body, tenant_id="")


def _check_texts(body: Any, *names: str) -> None:
    for name in names:
        check_text(name, getattr(body, name), limits.NAME_CHARS)


RULES = Kind(
    RULE,
    RoutingRule,
    RoutingRule,
    _settle_rule,
    owner=lambda tenant, rule: owner_of(tenant, rule.handler_name),
)
PINS = Kind(
    PIN,
    VersionPin,
    VersionPin,
    _settle_pin,
    key="handler_name",
    owner=lambda _tenant, pin: pin.handler_name,
)
TARGETS = Kind(
    push_targets.KIND,
    PushTarget,
    KeptTarget,
    _settle_target,
    show=push_targets.shown,
    key="queue_name",
)
COMMANDS = Kind(
    "worker_command",
    WorkerCommand,
    WorkerCommand,
    _settle_command,
    owner=lambda _tenant, command: command.worker_id,
)
