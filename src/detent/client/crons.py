"""`client.crons`: schedules that start instances by themselves, over HTTP."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from msgspec import Struct

from detent.client.sequences import Lookup
from detent.client.talking import Talk
from detent.client.verb import D, part, verb
from detent.model import limits
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.ids import timed_id
from detent.runtime.clock import wall_time_ms
from detent.service import crons
from detent.service.arguments import check_text, instant_ms, reference
from detent.service.clock import ClockView
from detent.service.crons import CronView

_WORDS = {"expr": "cron_expr", "overlap": "overlap_policy", "missed": "missed_policy"}


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


class Fires(Struct, frozen=True):
    """The next times of a schedule."""

    fires: list[dt.datetime]


class Crons(Lookup[D]):
    """Schedules: what they start, at which local times, and what has become of them."""

    @verb
    def create(
        self,
        definition: Definition | str,
        expr: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        namespace: str = "default",
        **options: Unpack[CronOptions],
    ) -> Talk[CronView]:
        """Start instances of a definition at the times of a cron expression.

        A name alone starts its highest version at each fire; `name@version` or a `Definition` pins
        that one.
        """
        whose = self._whose(tenant)
        said = _said({"expr": expr, **options})
        chosen = timed_id(wall_time_ms(), self._manners.chance(10)) if id is None else id
        check_text("id", chosen, limits.NAME_CHARS)
        sequence, _known = yield from self._sequence(definition, whose, namespace)
        body = {
            "tenant_id": whose,
            "namespace": namespace,
            "sequence_id": sequence,
            "follow": _follows(definition),
            "id": chosen,
            **said,
        }
        try:
            yield from self._tell("POST", "/cron", body, tenant=whose)
        except RequestError as error:
            # an id that nobody else can have: an earlier attempt was carried out
            if error.code != "cron.exists" or id is not None:
                raise
        return (yield from self._show(chosen, whose))

    @verb
    def update(
        self,
        id: str,
        definition: Definition | str | None = None,
        *,
        tenant: str | None = None,
        **changes: Unpack[CronChanges],
    ) -> Talk[CronView]:
        """Change a schedule; its next fire is counted from now."""
        return (yield from self._update(id, definition, tenant, dict(changes)))

    @verb
    def enable(self, id: str, *, tenant: str | None = None) -> Talk[CronView]:
        """Let it fire again, from now on: what passed while it was disabled is not made up for."""
        return (yield from self._update(id, None, tenant, {"enabled": True}))

    @verb
    def disable(self, id: str, *, tenant: str | None = None) -> Talk[CronView]:
        """Let it fire nothing until it is enabled; what it has started goes on."""
        return (yield from self._update(id, None, tenant, {"enabled": False}))

    @verb
    def delete(self, id: str, *, tenant: str | None = None) -> Talk[None]:
        """End it; what it has started goes on."""
        yield from self._tell("DELETE", _path(id), tenant=tenant)

    @verb
    def list(self, *, tenant: str | None = None, limit: int = 100) -> Talk[Sequence[CronView]]:
        """Schedules in the order of creation; without a tenant, of all that the key may see."""
        return (yield from self._get("/inspect/crons", list[CronView], tenant, limit=limit))

    @verb
    def show(self, id: str, *, tenant: str | None = None) -> Talk[CronView]:
        """One schedule."""
        return (yield from self._show(id, tenant))

    @verb
    def next_fires(
        self, id: str, n: int = 5, *, tenant: str | None = None
    ) -> Talk[Sequence[dt.datetime]]:
        """The next times of a schedule, in UTC; those of a disabled one as if it were enabled."""
        found = yield from self._get(f"{_path(id)}/next-fires", Fires, tenant, n=n)
        return found.fires

    @verb
    def preview(
        self, expr: str, timezone: str = "UTC", n: int = 5, *, after: dt.datetime | None = None
    ) -> Talk[Sequence[dt.datetime]]:
        """The next times of an expression, in UTC; nothing is stored."""
        if after is None:
            clock = yield from self._get("/inspect/clock", ClockView)
            after_ms = clock.now_ms
        else:
            after_ms = instant_ms("after", after)
        fires = crons.upcoming_fires(expr, timezone, n, after_ms)
        return [dt.datetime.fromtimestamp(ms / 1000, dt.UTC) for ms in fires]

    def _update(
        self,
        id: str,
        definition: Definition | str | None,
        tenant: str | None,
        changes: dict[str, Any],
    ) -> Talk[CronView]:
        body = _said(changes)
        if definition is not None:
            now = yield from self._show(id, tenant)
            sequence, _known = yield from self._sequence(definition, now.tenant, now.namespace)
            body |= {"sequence_id": sequence, "follow": _follows(definition)}
        yield from self._tell("PUT", _path(id), body, tenant=tenant)
        return (yield from self._show(id, tenant))

    def _show(self, id: str, tenant: str | None) -> Talk[CronView]:
        return (yield from self._get(f"/inspect{_path(id, 'crons')}", CronView, tenant))


def _said(options: dict[str, Any]) -> dict[str, Any]:
    """The options as the API takes them; wrong ones are refused by the rules of schedules."""
    crons.settings_of(options)
    return {_WORDS.get(name, name): value for name, value in options.items()}


def _follows(definition: Definition | str) -> bool:
    """Whether a schedule starts the highest version of a name at each fire."""
    return isinstance(definition, str) and reference(definition)[1] is None


def _path(id: str, kind: str = "cron") -> str:
    check_text("id", id, limits.NAME_CHARS)
    return f"/{kind}/{part(id)}"
