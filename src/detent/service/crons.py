"""Schedules from outside: how one is started, changed and read.

A schedule is an instance of the engine's own definition `detent.cron`; its id derives from tenant
and schedule id, so a second one of the same id cannot be. What people see is read from the snapshot
of that instance. One that was deleted has ended, and nobody finds it here any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, to_builtins

from detent.calendar import check_zone, parse_cron
from detent.definition.system import CRON
from detent.kernel.cron import Cron, check, read_cron, unknown_setting
from detent.kernel.lifecycle import TERMINAL
from detent.model import limits
from detent.model.decision import Birth
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM, derived_id
from detent.model.inputs import Started, encode_input
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.ports.own import OwnQuery
from detent.service.arguments import check_text, invalid, shown
from detent.service.reading import check_tenant, read_snapshot
from detent.service.starting import PRIORITIES, Moment, check_labels

if TYPE_CHECKING:
    from detent.ports.definitions import DefinitionRow
    from detent.ports.store import InstanceRow, Store

_OPEN = ("scheduled", "running", "waiting", "paused")
_PAYLOADS = ("metadata", "data", "config")
# what a caller says -> what a schedule keeps; what it starts is said by a definition alone
_WORDS = {
    "expr": "cron_expr",
    "timezone": "timezone",
    "overlap": "overlap_policy",
    "missed": "missed_policy",
    "missed_limit": "missed_limit",
    "priority": "priority",
    "metadata": "metadata",
    "data": "data",
    "config": "config",
    "enabled": "enabled",
}
_SAID = {kept: said for said, kept in _WORDS.items()}


class CronView(Struct, frozen=True, kw_only=True):
    """A schedule; instants are epoch milliseconds."""

    id: str
    instance: str  # that carries it out
    tenant: str
    namespace: str
    sequence: str
    version: int | None  # None: the highest one at each fire
    definition: str | None  # hash, where a version is named
    cron_expr: str
    timezone: str
    enabled: bool
    paused: bool  # or will be before its next fire; what passes meanwhile is missed
    priority: str
    metadata: dict[str, Any] | None
    data: Any
    config: Any
    overlap_policy: str
    missed_policy: str
    missed_limit: int
    fires: int
    skipped_fires: int
    failed_fires: int
    last_triggered_ms: int | None
    last_skipped_ms: int | None
    last_error: str
    next_fire_ms: int | None
    held_fire_ms: int | None
    running: tuple[str, ...]
    created_ms: int
    updated_ms: int


def cron_instance(tenant: str, id: str) -> str:
    """The id of the instance that carries a schedule out."""
    check_text("id", id, limits.NAME_CHARS)
    return derived_id(tenant, "schedule", id)


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a schedule keeps them, out of what a caller says; wrong ones are refused."""
    for name in options:
        if name in _SAID and name not in _WORDS:
            raise RequestError("request.invalid", f"{name!r} is called {_SAID[name]!r} here")
        if name not in _WORDS:
            raise unknown_setting(name, _WORDS)
    settings = {_WORDS[name]: value for name, value in options.items()}
    if "priority" in settings:
        name = settings["priority"]
        if type(name) is not str or name not in PRIORITIES:
            raise invalid("priority", f"one of {', '.join(PRIORITIES)}", name)
        settings["priority"] = PRIORITIES[name]
    check(settings, _SAID)
    for name in _PAYLOADS:
        encode_payload(settings.get(name), where=name, limit=limits.CONTEXT_BYTES)
    return settings


def check_future(settings: Mapping[str, Any], now_ms: int) -> None:
    """Refuse an expression whose last time has passed."""
    times, zone = parse_cron(settings["cron_expr"]), settings.get("timezone", "UTC")
    if times.next(now_ms, zone) is None:
        raise RequestError(
            "calendar.cron", f"{times.text!r} has no time left at which it fires; name later ones"
        )


def cron_start(
    settings: Mapping[str, Any],
    place: tuple[str, str],
    now: Moment,
    id: str,
    policies: tuple[Any, ...] = (),
) -> Submission:
    """The submission that starts a schedule at (tenant, namespace); `settings_of` checked it."""
    tenant, namespace = place
    check_labels(tenant, namespace)
    instance = cron_instance(tenant, id)
    asked = Cron(id=id, namespace=namespace, **settings)
    started = Started(
        instance=instance,
        tenant=tenant,
        namespace=SYSTEM,
        definition=CRON.hash,
        priority=PRIORITIES["High"],
        timezone=asked.timezone,
        data=Raw(encode_payload(to_builtins(asked), where="the schedule")),
        key=id,
        policies=policies,
        seed=now.seed,
    )
    birth = Birth(
        id=instance,
        tenant=tenant,
        namespace=SYSTEM,
        definition=CRON.hash,
        priority=PRIORITIES["High"],
        key=id,
    )
    return Submission(instance, encode_input(started), birth=birth)


def check_unused(store: Store, tenant: str, id: str) -> None:
    """Refuse the id of a schedule that is or was there."""
    row = store.instance(cron_instance(tenant, id))
    if row is not None:
        raise _exists(id, "was deleted" if row.state in TERMINAL else "is there already")


def check_ours(store: Store, tenant: str, id: str, seed: str) -> None:
    """Refuse a schedule that somebody else made of the same id at the same moment."""
    row = store.instance(cron_instance(tenant, id))
    snapshot = None if row is None else read_snapshot(store, row)
    if snapshot is not None and snapshot.seed != seed:
        raise _exists(id, "was made by somebody else just now")


def _exists(id: str, why: str) -> RequestError:
    return RequestError("cron.exists", f"a schedule {shown(id)} {why}; choose another id", id=id)


def find_cron(store: Store, id: str, tenant: str | None) -> InstanceRow:
    """The row of a schedule's instance; `cron.not_found` when this tenant has none of that id."""
    check_tenant(tenant)
    check_text("id", id, limits.NAME_CHARS)
    if tenant is not None:
        row = store.instance(cron_instance(tenant, id))
        found = [] if row is None or row.state in TERMINAL else [row]
    else:
        found = [row for row in _rows(store, "") if row.key == id]
    if len(found) > 1:
        raise RequestError(
            "request.invalid", f"several tenants have a schedule {shown(id)}; name the tenant"
        )
    if not found:
        raise RequestError("cron.not_found", f"there is no schedule {shown(id)}", id=id)
    return found[0]


def show_cron(store: Store, id: str, tenant: str | None) -> CronView:
    """One schedule."""
    found = _view(store, find_cron(store, id, tenant))
    if found is None:
        raise RequestError(
            "cron.not_found", f"the schedule {shown(id)} is not taken in yet; ask again", id=id
        )
    return found


def list_crons(store: Store, tenant: str | None, limit: int = 100) -> tuple[CronView, ...]:
    """The schedules of a tenant, or of all, in the order of creation."""
    check_tenant(tenant)
    if type(limit) is not int or not 0 < limit <= limits.CRONS_LISTED:
        raise invalid("limit", f"a whole number from 1 to {limits.CRONS_LISTED}", limit)
    views: list[CronView] = []
    for row in _rows(store, tenant or ""):
        view = _view(store, row)
        if view is not None:
            views.append(view)
        if len(views) == limit:
            break
    return tuple(views)


def crons_of(store: Store, sequence: DefinitionRow) -> list[CronView]:
    """The schedules that start this version, and no other."""
    found = [_view(store, row) for row in _rows(store, sequence.tenant)]
    return [view for view in found if view is not None and view.definition == sequence.hash]


def upcoming_fires(expr: str, timezone: str, n: int, after_ms: int) -> list[int]:
    """The next fires of an expression after an instant."""
    if type(n) is not int or not 0 < n <= limits.CRON_PREVIEW:
        raise invalid("n", f"a whole number from 1 to {limits.CRON_PREVIEW}", n)
    check({"cron_expr": expr}, _SAID)
    return parse_cron(expr).upcoming(after_ms, check_zone(timezone), n)


def _rows(store: Store, tenant: str) -> list[InstanceRow]:
    """The instances of all schedules that have not ended; a fork of one is none."""
    query = OwnQuery(CRON.hash, tenant, _OPEN, limit=1_000)
    rows: list[InstanceRow] = []
    while found := store.own_instances(query):
        rows += found
        query = query._replace(before=found[-1].n)
    rows.reverse()
    return [row for row in rows if row.key and row.id == cron_instance(row.tenant, row.key)]


def _view(store: Store, row: InstanceRow) -> CronView | None:
    """A schedule as it stands; None while nobody has taken its start in."""
    snapshot = read_snapshot(store, row)
    if snapshot is None or not snapshot.kv:
        return None
    paused = row.state == "paused" or snapshot.pause_requested
    return view_of(read_cron(snapshot.kv), row, paused=paused)


def view_of(cron: Cron, row: InstanceRow, *, paused: bool) -> CronView:
    """A schedule as people see it."""
    names = {number: name for name, number in PRIORITIES.items()}
    return CronView(
        id=cron.id,
        instance=row.id,
        tenant=row.tenant,
        namespace=cron.namespace,
        sequence=cron.sequence,
        version=cron.version,
        definition=cron.definition,
        cron_expr=cron.cron_expr,
        timezone=cron.timezone,
        enabled=cron.enabled,
        paused=paused,
        priority=names[cron.priority],
        metadata=cron.metadata,
        data=cron.data,
        config=cron.config,
        overlap_policy=cron.overlap_policy,
        missed_policy=cron.missed_policy,
        missed_limit=cron.missed_limit,
        fires=cron.fires,
        skipped_fires=cron.skipped_fires,
        failed_fires=cron.failed_fires,
        last_triggered_ms=cron.last_triggered_at,
        last_skipped_ms=cron.last_skipped_at,
        last_error=cron.last_error,
        next_fire_ms=cron.next_fire_at,
        held_fire_ms=cron.held_fire_at,
        running=tuple(cron.running),
        created_ms=cron.created_at,
        updated_ms=cron.updated_at,
    )
