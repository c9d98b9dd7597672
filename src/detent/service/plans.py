"""Runs of plans from outside: how a contact is enrolled, what a run shows, and what it is told.

A run is an instance whose id derives from tenant, namespace, plan and contact, so that a contact is
in a plan once. The contact stands in its config, the variables in its data, and labels say which
plan and whom it is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from detent.definition import load
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.plan_context import current_step, results_of
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.inputs import EventIngested, encode_input
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.model.plan import EVENTS, OUTCOMES
from detent.service.arguments import check_instance, check_text, invalid, shown
from detent.service.plan_ways import steps_after
from detent.service.reading import find_instance, read_snapshot, timing_of
from detent.service.starting import StartRequest, check_timezone, instance_id

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.model.definition import Definition
    from detent.model.snapshot import Snapshot
    from detent.ports.store import InstanceRow, Store

Status = Literal["PENDING", "ACTIVE", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
STATUSES: dict[Status, tuple[str, ...]] = {
    "PENDING": ("scheduled", "running"),
    "ACTIVE": ("scheduled", "running"),
    "WAITING": ("waiting",),
    "PAUSED": ("paused",),
    "COMPLETED": ("completed",),
    "FAILED": ("failed",),
    "CANCELLED": ("cancelled",),
}
"""What a run shows -> the states of the core it can be in meanwhile."""

LABEL = ("face", "plan")
ENROLLED = ("refuse", "return")
_FIELDS = ("id", "email", "phone", "attributes", "timezone", "consent", "unsubscribed", "bounced")
_TEXTS = ("email", "phone")
_OBJECTS = ("attributes", "consent")
_FLAGS = ("unsubscribed", "bounced")


class RunView(Struct, frozen=True, kw_only=True):
    """One run; instants are epoch milliseconds."""

    id: str
    tenant: str
    namespace: str
    plan_id: str
    plan_version: int
    contact: dict[str, Any]
    status: Status
    current_step: str | None
    steps_completed: tuple[str, ...]
    steps_remaining: tuple[str, ...]
    start_tick: int | None
    current_tick: int
    started_ms: int | None
    completed_ms: int | None
    outcome: str | None
    variables: Any
    step_results: dict[str, Any] = {}
    pause_requested: bool = False
    paused_reason: str = ""
    reason: str = ""  # why it was cancelled
    error: Any = None
    held: bool = False  # enrolled only: `execute` starts it


def read_contact(given: Any) -> dict[str, Any]:
    """A contact as a run keeps it; what it must not be is refused."""
    if not isinstance(given, Mapping):
        raise invalid("contact", f"an object of {', '.join(_FIELDS)}", given)
    for name in given:
        if name not in _FIELDS:
            raise RequestError(
                "request.invalid",
                f"a contact has no field {shown(name)}; put it into its attributes",
            )
    contact = {name: given[name] for name in _FIELDS if given.get(name) is not None}
    check_text("contact.id", contact.get("id"), limits.CONTACT_CHARS)
    for name in _TEXTS:
        if name in contact:
            check_text(f"contact.{name}", contact[name], limits.NAME_CHARS)
    if not any(name in contact for name in _TEXTS):
        raise RequestError("request.invalid", "a contact needs an email or a phone; give one")
    for name in _OBJECTS:
        if name in contact and not isinstance(contact[name], Mapping):
            raise invalid(f"contact.{name}", "an object", contact[name])
    for name in _FLAGS:
        if name in contact and type(contact[name]) is not bool:
            raise invalid(f"contact.{name}", "True or False", contact[name])
    if "timezone" in contact:
        check_timezone(contact["timezone"])
    return contact


def run_key(plan: str, namespace: str, contact: str) -> str:
    """The key under which a contact is in a plan; texts of any content do not run together."""
    words = f"{namespace}\x00{plan}\x00{contact}"
    return f"plan:{hashlib.sha256(words.encode()).hexdigest()[:40]}"


def run_id(plan: str, place: tuple[str, str], contact: str, *, dry_run: bool = False) -> str:
    """The id of the run of a contact in a plan of (tenant, namespace)."""
    tenant, namespace = place
    return instance_id(tenant, run_key(plan, namespace, contact), dry_run=dry_run)


def run_request(
    definition: Definition, contact: Any, variables: Any, shared: StartRequest
) -> StartRequest:
    """The start of a run; `shared` holds what is the same for any start."""
    check_plan(definition)
    if variables is not None and not isinstance(variables, Mapping):
        raise invalid("variables", "an object", variables)
    kept = read_contact(contact)
    return replace(
        shared,
        data=dict(variables or {}),
        config={"contact": kept},
        metadata={LABEL[0]: LABEL[1], "plan": definition.name, "contact": kept["id"]},
        key=run_key(definition.name, shared.namespace, kept["id"]),
        timezone=kept.get("timezone", "UTC"),
    )


def check_plan(definition: Definition) -> None:
    """Refuse a definition that is no plan."""
    if definition.body.face != "plan":
        raise RequestError(
            "plan.expected",
            f"{definition.name!r} is a sequence; a contact is enrolled in a plan, made with "
            "detent.plan or with steps",
        )


def check_choice(if_enrolled: Any) -> None:
    """Refuse what is no way to treat a contact that is in the plan already."""
    if if_enrolled not in ENROLLED:
        raise invalid("if_enrolled", f"one of {', '.join(ENROLLED)}", if_enrolled)


def enrolled(view: RunView) -> RequestError:
    """The refusal of a second enrolment."""
    return RequestError(
        "plan.enrolled",
        f"contact {shown(view.contact.get('id'))} is in the plan {view.plan_id!r} already, by run "
        f'{view.id}, which is {view.status}; pass if_enrolled="return" to be given that run',
        run=view.id,
        status=view.status,
    )


def enrolled_otherwise(view: RunView) -> RequestError:
    """The refusal to start a run with other variables than it was enrolled with."""
    return RequestError(
        "plan.enrolled",
        f"run {view.id} was enrolled with variables of its own; execute it without any",
        run=view.id,
        status=view.status,
    )


def find_run(store: Store, run: str, tenant: str | None) -> InstanceRow:
    """The row of a run; `instance.not_found`, or `plan.expected` where it runs no plan."""
    row = find_instance(store, run, tenant)
    check_plan(plan_of(store, row.definition))
    return row


def plan_of(store: Store, digest: str) -> Definition:
    """A stored definition by its hash."""
    stored = store.definition(digest)
    if stored is None:
        raise RequestError("definition.unknown", f"definition {digest} is not stored")
    return load(stored.body)


def show_run(store: Store, run: str, tenant: str | None, tick: int) -> RunView:
    """One run as people see it."""
    row = find_run(store, run, tenant)
    return view_of(store, row, tick)


def started_by(store: Store, run: str) -> str | None:
    """The seed of whoever made a run, or None while it is not taken in."""
    row = store.instance(run)
    snapshot = None if row is None else read_snapshot(store, row)
    return None if snapshot is None else snapshot.seed


def view_of(store: Store, row: InstanceRow, tick: int) -> RunView:
    """A run out of its row and snapshot."""
    definition, timing = plan_of(store, row.definition), timing_of(store)
    snapshot = read_snapshot(store, row)
    common: dict[str, Any] = {
        "id": row.id,
        "tenant": row.tenant,
        "namespace": row.namespace,
        "plan_id": definition.name,
        "plan_version": definition.version,
        "current_tick": tick,
    }
    if snapshot is None:
        return RunView(
            **common,
            contact={},
            status="PENDING",
            current_step=None,
            steps_completed=(),
            steps_remaining=steps_after(definition, None),
            start_tick=None,
            started_ms=None,
            completed_ms=None,
            outcome=None,
            variables=None,
        )
    return RunView(**common, **_shown(definition, snapshot, timing))


def _shown(definition: Definition, snapshot: Snapshot, timing: Timing) -> dict[str, Any]:
    over = snapshot.state in TERMINAL
    at = None if over else current_step(snapshot)
    config = snapshot.config if isinstance(snapshot.config, dict) else {}
    return {
        "contact": config.get("contact") or {},
        "status": status_of(snapshot),
        "current_step": at,
        "steps_completed": tuple(snapshot.results),
        "steps_remaining": () if over else steps_after(definition, at),
        "start_tick": snapshot.started,
        "started_ms": None if snapshot.started is None else timing.ms_of(snapshot.started),
        "completed_ms": None if snapshot.ended is None else timing.ms_of(snapshot.ended),
        "outcome": snapshot.outcome or None,
        "variables": snapshot.data,
        "step_results": results_of(snapshot),
        "pause_requested": snapshot.pause_requested,
        "paused_reason": snapshot.paused_reason,
        "reason": snapshot.reason,
        "error": snapshot.error,
        "held": is_held(snapshot),
    }


def status_of(snapshot: Snapshot) -> Status:
    """What a run shows; one that never started is pending, whatever the core makes of it."""
    match snapshot.state:
        case "completed":
            return "COMPLETED"
        case "failed":
            return "FAILED"
        case "cancelled":
            return "CANCELLED"
        case "paused":
            return "PAUSED"
        case "waiting":
            return "WAITING"
        case _:
            return "PENDING" if snapshot.started is None else "ACTIVE"


def is_held(snapshot: Snapshot) -> bool:
    """Whether a run is enrolled only, and waits to be executed."""
    wait = snapshot.root.wait if snapshot.root is not None else None
    return wait is not None and wait.kind == "start" and wait.due is None


def event_submission(run: str, event: EventIngested, ack: int) -> Submission:
    """An event for a run, checked; the same id twice is one."""
    check_instance(run)
    check_text("id", event.id, limits.KEY_CHARS)
    check_text("step", event.step, limits.NAME_CHARS)
    if event.kind not in EVENTS:
        raise invalid("an event", f"one of {', '.join(EVENTS)}", event.kind)
    if event.kind == "called" and event.outcome not in OUTCOMES:
        raise invalid("outcome", f"one of {', '.join(OUTCOMES)}", event.outcome)
    if event.kind != "called" and event.outcome:
        raise invalid("outcome", "left out, except of a call", event.outcome)
    encode_payload(event.payload, where="payload")
    return Submission(run, encode_input(event), ack=ack, id=event.id)
