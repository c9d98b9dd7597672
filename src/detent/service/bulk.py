"""Bulk actions: whom they reach, what each is asked, and how the verdicts are counted.

A bulk action asks every instance by itself; the kernel says yes or no to each. One whose state does
not allow it is skipped, never forced.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.model.inputs import SignalReceived, encode_input
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.ports.store import Page
from detent.service import steering
from detent.service.arguments import invalid, wanted_states
from detent.service.reading import check_tenant, still_there
from detent.service.sending import Verb, command_submission, signal_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import Verdict
    from detent.ports.store import InstanceRow, Store
    from detent.service.starting import Moment

Action = Literal["retry", "pause", "resume", "cancel", "signal", "set_state", "reschedule"]
_SKIPPED = ("instance.transition", "instance.terminal")
_PAGE = 1_000


class BulkFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which instances: what is left empty does not filter; the engine's own are never meant."""

    tenant: str | None = None
    namespace: str = ""
    definition: str = ""  # hash
    states: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}  # members of the top level, each equal


Where = BulkFilter | Mapping[str, Any]
"""Which instances a bulk action reaches."""


class BulkOptions(TypedDict, total=False):
    """How far a bulk action goes: to so many instances, or only to counting them."""

    limit: int
    dry_run: bool


class BulkAction(Struct, frozen=True, kw_only=True):
    """One action with its checked arguments, under an id that names it in every journal."""

    action: Action
    id: str
    args: dict[str, Any] | None = None


class BulkResult(Struct, frozen=True, kw_only=True):
    """How many instances the filter found, and what became of the action on them."""

    matched: int
    applied: int = 0
    skipped: int = 0
    failed: int = 0
    dry_run: bool = False


class _Labelled(Struct):
    """The part of a snapshot that the filter may ask for."""

    metadata: Any = None


_labelled = msgspec.json.Decoder(_Labelled)


def bulk_filter(given: Where) -> BulkFilter:
    """The filter a caller means, checked."""
    if not isinstance(given, BulkFilter):
        try:
            given = msgspec.convert(given, BulkFilter)
        except msgspec.ValidationError as error:
            expected = ", ".join(BulkFilter.__struct_fields__)
            raise invalid("a filter", f"an object of {expected} ({error})", given) from None
    check_tenant(given.tenant)
    if given.states:
        wanted_states(given.states)
    return given


def bulk_action(action: str, id: str, args: Any, now: Moment) -> BulkAction:
    """The action a caller means, checked; `args` are those of the single verb, by name."""
    if action not in get_args(Action):
        raise invalid("an action", f"one of {', '.join(get_args(Action))}", action)
    given = dict(args) if isinstance(args, Mapping) else {}
    checked: dict[str, Any] | None = None
    match action:
        case "signal":
            checked = {"name": signal_name(given.get("name")), "payload": given.get("payload")}
            encode_payload(checked["payload"], where="payload")
        case "set_state":
            at: dt.datetime | dt.timedelta | None = given.get("at")
            checked = steering.set_state(given.get("state"), at, now)
        case "reschedule":
            checked = steering.reschedule(given.get("offset", 0))
    return BulkAction(action=action, id=id, args=checked)  # type: ignore[arg-type]


def told_action(action: Action, id: str, args: Any, now: Moment) -> BulkAction:
    """The action with arguments as the kernel takes them, from whoever may have made them up."""
    if action in ("set_state", "reschedule"):
        return BulkAction(action=action, id=id, args=steering.command_args(action, args))
    return bulk_action(action, id, args, now)


def bulk_targets(store: Store, wanted: BulkFilter, limit: int) -> list[str]:
    """The ids of the instances that a filter finds, oldest first, at most so many."""
    check_limit(limit)
    return _first(store, wanted, limit)


def check_limit(limit: Any) -> None:
    """Refuse a limit that a bulk action cannot have."""
    if type(limit) is not int or not 0 < limit <= limits.BULK_INSTANCES:
        raise invalid("limit", f"a whole number from 1 to {limits.BULK_INSTANCES}", limit)


def every_target(store: Store, wanted: BulkFilter) -> list[str]:
    """The ids of all instances that a filter finds; one that finds too many is refused."""
    found = _first(store, wanted, limits.BULK_REACH + 1)
    if len(found) > limits.BULK_REACH:
        raise RequestError(
            "request.invalid",
            f"the filter finds more than {limits.BULK_REACH:,} instances; narrow it",
        )
    return found


def bulk_submission(asked: BulkAction, instance: str, ack: int) -> Submission:
    """What one instance is asked; the same action asks it once, however often it is sent."""
    id = f"{asked.id}:{instance}"
    if asked.action == "signal":
        args = asked.args or {}
        told = SignalReceived(name=args["name"], payload=args["payload"], id=id, batch=asked.id)
        return Submission(instance, encode_input(told), ack=ack, id=id, ask=True)
    verb: Verb = asked.action
    return command_submission(instance, verb, asked.args, id, ack, batch=asked.id)


def bulk_result(verdicts: Sequence[Verdict]) -> BulkResult:
    """The verdicts, counted."""
    skipped = sum(1 for each in verdicts if each.code in _SKIPPED)
    applied = sum(1 for each in verdicts if each.ok)
    return BulkResult(
        matched=len(verdicts),
        applied=applied,
        skipped=skipped,
        failed=len(verdicts) - applied - skipped,
    )


def _first(store: Store, wanted: BulkFilter, limit: int) -> list[str]:
    found: list[str] = []
    for rows in _pages(store, wanted):
        found += (
            _matching(store, rows, wanted.metadata) if wanted.metadata else [r.id for r in rows]
        )
        if len(found) >= limit:
            break
    return found[:limit]


def _pages(store: Store, wanted: BulkFilter) -> Iterator[list[InstanceRow]]:
    page = Page(
        tenant=wanted.tenant or "",
        namespace=wanted.namespace,
        definition=wanted.definition,
        states=wanted.states,
        limit=_PAGE,
        without=SYSTEM,
    )
    if wanted.namespace == SYSTEM:
        return
    while rows := store.instances(page):
        yield still_there(store, rows)
        page = page._replace(after=rows[-1].n)


def _matching(store: Store, rows: list[InstanceRow], metadata: dict[str, Any]) -> Iterator[str]:
    loaded = store.load([row.id for row in rows])
    for row in rows:
        body = loaded[row.id].body if row.id in loaded else None
        labels = None if body is None else _labelled.decode(body).metadata
        if isinstance(labels, dict) and all(
            name in labels and _same(labels[name], value) for name, value in metadata.items()
        ):
            yield row.id


def _same(found: Any, value: Any) -> bool:
    """Equal as JSON: in Python 1, 1.0 and True would be equal."""
    return type(found) is type(value) and bool(found == value)
