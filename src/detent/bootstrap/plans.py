"""`engine.plans`: contacts enrolled in plans, what became of their runs, and what they are told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, Unpack

from msgspec.structs import replace

from detent.bootstrap.gates import Door
from detent.bootstrap.inspector import Inspector
from detent.kernel.debug import Debugger
from detent.kernel.replay import Replay
from detent.kernel.views import AuditEntry
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.inputs import EventIngested
from detent.model.link import Submission
from detent.runtime.dispatch_guard import guard_reentrant
from detent.service import plans
from detent.service.plan_lists import RunFilter, RunList, RunPage, list_runs
from detent.service.plan_story import Happening, run_story
from detent.service.plans import RunView
from detent.service.sending import Verb
from detent.service.starting import StartRequest, start_submission, tick_of

Enrolled = Literal["refuse", "return"]
"""What becomes of a second enrolment: it is refused, or gives the run that is there."""


class RunLabels(TypedDict, total=False):
    """What an enrolment takes as any start does."""

    tenant: str
    namespace: str
    priority: str
    dry_run: bool
    auto_approve: bool
    budget: Mapping[str, int] | None


class Host(Protocol):
    """The verbs of an engine that are used here."""

    @property
    def inspect(self) -> Inspector: ...
    def command(self, instance: str, verb: Verb, args: Any = None) -> Verdict: ...


class Starts(NamedTuple):
    """How an engine starts something."""

    ready: Callable[[Definition | str, str, str], Definition]  # whose handlers are all here
    keep: Callable[[Definition, str, str], None]
    ask: Callable[[Callable[[int], Submission]], Verdict]
    policies: tuple[Any, ...]


class Plans:
    """Runs of plans; a contact is in a plan once."""

    def __init__(self, door: Door, host: Host, starts: Starts) -> None:
        self._door = door
        self._host = host
        self._starts = starts

    # enrolling -----------------------------------------------------------------------------------

    def execute(
        self,
        plan: Definition | str,
        contact: Mapping[str, Any],
        variables: Mapping[str, Any] | None = None,
        start_at: dt.datetime | dt.timedelta | None = None,
        *,
        if_enrolled: Enrolled = "refuse",
        **labels: Unpack[RunLabels],
    ) -> RunView:
        """Start the run of a contact, now or at `start_at`, or one that was only enrolled.

        `labels` are `tenant`, `namespace`, `priority` and `dry_run`, as of any start.
        """
        shared = StartRequest(at=start_at, policies=self._starts.policies, **labels)
        view, made = self._enroll(plan, contact, variables, shared, if_enrolled)
        if made or not view.held:
            return view
        if variables is not None and dict(variables) != view.variables:
            raise plans.enrolled_otherwise(view)
        now = self._door.moment()
        at = None if start_at is None else tick_of(start_at, now)
        self._host.command(view.id, "begin", None if at is None else {"at": at})
        return self.get_run(view.id)

    def enroll(
        self,
        plan: Definition | str,
        contact: Mapping[str, Any],
        variables: Mapping[str, Any] | None = None,
        *,
        if_enrolled: Enrolled = "refuse",
        **labels: Unpack[RunLabels],
    ) -> RunView:
        """Make the run of a contact, which is pending until `execute` starts it."""
        shared = StartRequest(hold=True, policies=self._starts.policies, **labels)
        view, made = self._enroll(plan, contact, variables, shared, if_enrolled)
        if not made and view.held and if_enrolled == "refuse":
            raise plans.enrolled(view)
        return view

    def _enroll(
        self,
        plan: Definition | str,
        contact: Mapping[str, Any],
        variables: Mapping[str, Any] | None,
        shared: StartRequest,
        if_enrolled: Enrolled,
    ) -> tuple[RunView, bool]:
        """The run, and whether it was made here; one that is held is never refused here."""
        plans.check_choice(if_enrolled)
        ready = self._starts.ready(plan, shared.tenant, shared.namespace)
        request = plans.run_request(ready, contact, variables, shared)
        place = (request.tenant, request.namespace)
        run = plans.run_id(
            ready.name, place, request.config["contact"]["id"], dry_run=request.dry_run
        )
        there = self._door.look(lambda store: store.instance(run) is not None)
        made = False
        if not there:
            made = self._start(ready, request, run)
        view = self.get_run(run)
        if not made and not view.held and if_enrolled == "refuse":
            raise plans.enrolled(view)
        return view, made

    def _start(self, ready: Definition, request: StartRequest, run: str) -> bool:
        """Start it; False when somebody else did so at the same moment."""
        guard_reentrant("a blocking engine call")
        now = self._door.moment()
        start = start_submission(ready, request, now, 0)
        self._starts.keep(ready, request.tenant, request.namespace)
        self._starts.ask(lambda ack: replace(start, ack=ack))
        return self._door.look(lambda store: plans.started_by(store, run)) == now.seed

    # looking -------------------------------------------------------------------------------------

    def get_run(self, run: str, *, tenant: str | None = None) -> RunView:
        """One run."""
        tick = self._door.moment().tick
        return self._door.look(lambda store: plans.show_run(store, run, tenant, tick))

    def list_runs(
        self,
        *,
        tenant: str | None = None,
        limit: int = 100,
        cursor: int | None = None,
        **wanted: Unpack[RunFilter],
    ) -> RunList:
        """Runs by `status`, `plan`, `contact`, `started_after`, `started_before`; newest first."""
        page = RunPage(tenant, limit, cursor, self._door.moment().tick)
        return self._door.look(lambda store: list_runs(store, wanted, page))

    def timeline(self, run: str, *, tenant: str | None = None) -> list[Happening]:
        """What happened in a run, for people."""
        return self._door.look(lambda store: run_story(store, run, tenant))

    def logs(self, run: str, *, action: str = "", tenant: str | None = None) -> list[AuditEntry]:
        """Every entry of a run's journal, or those of one action."""
        self._known(run, tenant)
        return self._host.inspect.audit(run, action=action, tenant=tenant)

    def replay(self, run: str, *, tenant: str | None = None) -> Replay:
        """Run it again from its record, with no effect, and compare entry by entry."""
        self._known(run, tenant)
        return self._host.inspect.replay(run, tenant=tenant)

    def debug(self, run: str, *, tenant: str | None = None) -> Debugger:
        """Walk through the record of a run row by row."""
        self._known(run, tenant)
        return self._host.inspect.debug(run, tenant=tenant)

    # telling and asking --------------------------------------------------------------------------

    def ingest_event(
        self,
        run: str,
        event: str,
        step: str,
        *,
        outcome: str = "",
        payload: Any = None,
        id: str | None = None,
    ) -> str:
        """Tell a run what became of what a step sent, and return the event's id once durable.

        `event` is delivered, opened, clicked, replied, bounced or unsubscribed; or called, with the
        `outcome` of the call. The same `id` twice counts once.
        """
        told = self._door.moment().fresh_id if id is None else id
        made = EventIngested(kind=event, step=step, outcome=outcome, payload=payload, id=told)
        self._starts.ask(lambda ack: plans.event_submission(run, made, ack))
        return told

    def pause(self, run: str) -> RunView:
        """Pause; in a wait the pause is held until the wait ends."""
        return self._asked(run, "pause")

    def resume(self, run: str) -> RunView:
        """Go on from a pause, or withdraw one that is held."""
        return self._asked(run, "resume")

    def cancel(self, run: str, reason: str = "") -> RunView:
        """Cancel a run; the reason is kept with it."""
        return self._asked(run, "cancel", {"reason": reason} if reason else None)

    def _asked(self, run: str, verb: Verb, args: Any = None) -> RunView:
        self._known(run, None)
        self._host.command(run, verb, args)
        return self.get_run(run)

    def _known(self, run: str, tenant: str | None) -> None:
        self._door.look(lambda store: plans.find_run(store, run, tenant))
