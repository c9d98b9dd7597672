"""`engine.crons`: schedules that start instances by themselves, for owner and visitor.

A schedule is one of the engine's own instances. Making one starts it, a change is asked of it, and
deleting cancels it; what is read comes from the store.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypedDict, Unpack

from detent.bootstrap.gates import Door
from detent.bootstrap.known_handlers import recall
from detent.definition import load
from detent.definition.system import CRON
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.ports.definitions import DefinitionQuery
from detent.service import crons
from detent.service.arguments import instant_ms, reference
from detent.service.catalogue import check_definition, find_definition, settled
from detent.service.crons import CronView
from detent.service.policies import check_policies
from detent.service.sending import Verb
from detent.service.starting import (
    check_free,
    check_handlers,
    check_holidays,
    check_labels,
    check_schema,
)

_TAKEN = ("waiting", "paused", "failed", "cancelled")


class CronOptions(TypedDict, total=False):
    """What can be said about a schedule beside what it starts, and when."""

    timezone: str
    overlap: str  # allow | skip | buffer_one | cancel_previous
    missed: str  # one | all | none
    missed_limit: int
    priority: str
    metadata: dict[str, Any] | None
    data: Any
    config: Any
    enabled: bool


class CronChanges(CronOptions, total=False):
    """What can be changed of a schedule."""

    expr: str


class Host(Protocol):
    """The verbs of an engine or a visitor that are used here."""

    def command(self, instance: str, verb: Verb) -> Verdict: ...
    def wait_for(self, instance: str, state: Sequence[str]) -> str: ...


class Crons:
    """Schedules: what they start, at which local times, and what has become of them."""

    def __init__(
        self,
        door: Door,
        host: Host,
        keep: Callable[[Definition, str, str], None],
        policies: tuple[Any, ...] = (),
    ) -> None:
        """`keep` stores a definition for a tenant and namespace."""
        self._door = door
        self._host = host
        self._keep = keep
        self._policies = policies

    def create(
        self,
        definition: Definition | str,
        expr: str,
        *,
        id: str | None = None,
        tenant: str = "default",
        namespace: str = "default",
        **options: Unpack[CronOptions],
    ) -> CronView:
        """Start instances of a definition at the times of a cron expression.

        A name alone starts its highest version at each fire; `name@version` or a `Definition` pins
        that one. Options: `timezone`, `overlap`, `missed`, `missed_limit`, `priority`, `metadata`,
        `data`, `config`, `enabled`.
        """
        settings = crons.settings_of({"expr": expr, **options})
        now = self._door.moment()
        crons.check_future(settings, now.epoch_ms + now.tick * now.resolution_ms)
        found = self._find(definition, tenant, namespace)
        check_schema(found, settings.get("data"))
        check_holidays(found, settings.get("config"))
        settings |= _target(found, definition)
        chosen = now.fresh_id if id is None else id
        made = crons.cron_start(settings, (tenant, namespace), now, chosen, self._policies)
        self._door.look(lambda store: crons.check_unused(store, tenant, chosen))
        if not isinstance(definition, str):
            self._keep_new(found, tenant, namespace)
        self._door.begin(CRON, tenant, made)
        self._host.wait_for(made.instance, _TAKEN)
        self._door.look(lambda store: crons.check_ours(store, tenant, chosen, now.seed))
        return self.show(chosen, tenant=tenant)

    def update(
        self,
        id: str,
        definition: Definition | str | None = None,
        *,
        tenant: str | None = None,
        **changes: Unpack[CronChanges],
    ) -> CronView:
        """Change a schedule; its next fire is counted from now."""
        settings = crons.settings_of(changes)
        now = self.show(id, tenant=tenant)
        expression = {"cron_expr": now.cron_expr, "timezone": now.timezone, **settings}
        retimed = not settings.keys().isdisjoint(("cron_expr", "timezone", "enabled"))
        if retimed and settings.get("enabled", now.enabled):
            crons.check_future(expression, self._now_ms())
        if definition is not None:
            found = self._find(definition, now.tenant, now.namespace)
            check_schema(found, settings.get("data", now.data))
            check_holidays(found, settings.get("config", now.config))
            settings |= _target(found, definition)
            if not isinstance(definition, str):
                self._keep_new(found, now.tenant, now.namespace)
        self._door.configure(now.instance, "cron.update", settings)
        return self.show(id, tenant=now.tenant)

    def enable(self, id: str, *, tenant: str | None = None) -> CronView:
        """Let it fire again, from now on: what passed while it was disabled is not made up for."""
        return self.update(id, tenant=tenant, enabled=True)

    def disable(self, id: str, *, tenant: str | None = None) -> CronView:
        """Let it fire nothing until it is enabled; what it has started goes on."""
        return self.update(id, tenant=tenant, enabled=False)

    def delete(self, id: str, *, tenant: str | None = None) -> None:
        """End it; what it has started goes on."""
        row = self._door.look(lambda store: crons.find_cron(store, id, tenant))
        self._host.command(row.id, "cancel")

    def list(self, *, tenant: str | None = None, limit: int = 100) -> Sequence[CronView]:
        """Schedules in the order of creation; without a tenant, of all."""
        return self._door.look(lambda store: crons.list_crons(store, tenant, limit))

    def show(self, id: str, *, tenant: str | None = None) -> CronView:
        """One schedule."""
        return self._door.look(lambda store: crons.show_cron(store, id, tenant))

    def next_fires(
        self, id: str, n: int = 5, *, tenant: str | None = None
    ) -> Sequence[dt.datetime]:
        """The next times of a schedule, in UTC; those of a disabled one as if it were enabled."""
        found = self.show(id, tenant=tenant)
        return self.preview(found.cron_expr, found.timezone, n)

    def preview(
        self, expr: str, timezone: str = "UTC", n: int = 5, *, after: dt.datetime | None = None
    ) -> Sequence[dt.datetime]:
        """The next times of an expression, in UTC; nothing is stored."""
        after_ms = self._now_ms() if after is None else instant_ms("after", after)
        fires = crons.upcoming_fires(expr, timezone, n, after_ms)
        return [dt.datetime.fromtimestamp(ms / 1000, dt.UTC) for ms in fires]

    def _now_ms(self) -> int:
        now = self._door.moment()
        return now.epoch_ms + now.tick * now.resolution_ms

    def _keep_new(self, found: Definition, tenant: str, namespace: str) -> None:
        """Store a definition, unless the tenant has it already, in whatever namespace."""
        query = DefinitionQuery(tenant=tenant, hash=found.hash, limit=1)
        if not self._door.look(lambda store: store.find_definitions(query)):
            self._keep(found, tenant, namespace)

    def _find(self, definition: Definition | str, tenant: str, namespace: str) -> Definition:
        """A definition that could be started: every handler it names was registered some time."""
        check_labels(tenant, namespace)
        if isinstance(definition, str):
            name, version = reference(definition)
            row = self._door.look(
                lambda store: find_definition(store, (tenant, namespace), name, version)
            )
            definition = load(row.body)
        check_definition(definition)
        check_free(definition.name, namespace)
        asked = definition
        definition = self._door.look(lambda store: settled(store, (tenant, namespace), asked))
        specs = self._door.look(recall)
        check_policies(self._policies, specs)
        check_handlers(definition, specs)
        return definition


def _target(found: Definition, asked: Definition | str) -> dict[str, Any]:
    """What a schedule starts: a name, or one version of it."""
    if isinstance(asked, str) and reference(asked)[1] is None:
        return {"sequence": found.name, "version": None, "definition": None}
    return {"sequence": found.name, "version": found.version, "definition": found.hash}
