"""A run told for people: what happened to which step, when, and why it went on as it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from detent.model.plan import EVENTS, SENDS
from detent.service.histories import instance_audit
from detent.service.plan_ways import PlanStep, plan_steps
from detent.service.plans import find_run, plan_of
from detent.service.reading import timing_of

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.kernel.views import AuditEntry
    from detent.model.definition import Definition
    from detent.ports.store import Store

_SAID = {"email": "sends an email", "voice": "calls"}
_RUN = {
    "run.created": ("enrolled", "is enrolled"),
    "run.started": ("started", "starts"),
    "run.paused": ("paused", "is paused"),
    "run.resumed": ("resumed", "goes on"),
    "run.failed": ("failed", "fails"),
    "run.cancelled": ("cancelled", "is cancelled"),
}


class Happening(Struct, frozen=True, kw_only=True):
    """One line of the story; `at_ms` is the logical time."""

    at_ms: int
    tick: int
    what: str
    step: str
    text: str
    until_ms: int | None = None  # of a wait
    detail: Any = None


def run_story(store: Store, run: str, tenant: str | None) -> list[Happening]:
    """The story of a run so far."""
    row = find_run(store, run, tenant)
    definition = plan_of(store, row.definition)
    entries = instance_audit(store, run, tenant, action="", node="")
    return list(_Teller(definition, timing_of(store)).told(entries))


class _Teller:
    def __init__(self, definition: Definition, timing: Timing) -> None:
        self._steps = {step.id: step for step in plan_steps(definition)}
        self._timing = timing
        self._from: PlanStep | None = None
        self._outcome = ""

    def told(self, entries: Iterable[AuditEntry]) -> Iterator[Happening]:
        for entry in entries:
            said = self._line(entry)
            if said is not None:
                what, step, text = said
                due = entry.detail["due"] if what == "waits" else None
                yield Happening(
                    at_ms=self._timing.ms_of(entry.tick),
                    tick=entry.tick,
                    what=what,
                    step=step,
                    text=text,
                    until_ms=None if due is None else self._timing.ms_of(due),
                    detail=entry.detail,
                )

    def _line(self, entry: AuditEntry) -> tuple[str, str, str] | None:
        action, detail = entry.action, entry.detail or {}
        if action in _RUN:
            what, text = _RUN[action]
            return what, "", f"the run {text}"
        match action:
            case "step.evaluated" if "node" in detail:
                return self._moved(detail["node"])
            case "wait.started" if "due" in detail:
                step = _step(entry.node)
                return "waits", step, f"{step} waits" if step else "the run waits for its start"
            case "effect.planned":
                return self._acts(entry.node, detail)
            case "effect.failed" | "effect.escalated":
                return "failed", _step(entry.node), f"{_step(entry.node)} fails"
            case "step.skipped":
                why = detail.get("reason") or detail.get("why", "")
                return "skipped", _step(entry.node), f"{_step(entry.node)} is skipped: {why}"
            case "event.received" if detail.get("name") in EVENTS:
                told = entry.input or {}
                outcome = f" ({told['outcome']})" if told.get("outcome") else ""
                name, step = detail["name"], detail["step"]
                return "event", step, f"{step} was {name}{outcome}"
            case "plan.exited":
                self._outcome = detail["outcome"]
                return "exited", "", f"an exit condition holds: {detail['outcome']}"
            case "run.cancel_requested" if detail.get("reason"):
                return "cancelling", "", f"somebody cancels it: {detail['reason']}"
            case "run.completed":
                return "completed", "", f"the run ends: {self._outcome or 'completed'}"
        return None

    def _moved(self, name: str) -> tuple[str, str, str] | None:
        """A step was entered: say how a branch chose it, and remember an end's outcome."""
        before, here = self._from, self._steps.get(name)
        self._from = here
        if here is not None and here.kind == "end":
            self._outcome = here.block.outcome
        if before is None or before.kind != "branch":
            return None
        when = next((when for when, to in before.ways if to == name), "")
        why = f"because {when}" if when else "by default"
        return "branched", before.id, f"{before.id} leads to {name}, {why}"

    def _acts(self, node: str, detail: dict[str, Any]) -> tuple[str, str, str] | None:
        step = self._steps.get(_step(node))
        if step is None or detail.get("kind"):
            return None
        handler = detail["handler"]
        request = detail["request"] if isinstance(detail["request"], dict) else {}
        if handler in SENDS.values():
            named = request.get("template") or request.get("script") or ""
            subject = f": {request['subject']}" if request.get("subject") else ""
            return "sends", step.id, f"{step.id} {_SAID[handler]} ({named}){subject}"
        return "acts", step.id, f"{step.id} calls {handler}"


def _step(node: str) -> str:
    """The step that a node of the tree belongs to: `plan[3:ring]/ring` is `ring`."""
    return node.rpartition("/")[2].partition("?")[0]
