"""The timeline of an instance: journal entries in words, without the bookkeeping between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from detent.cli.palette import colour
from detent.cli.reader import Reader
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import one_line
from detent.cli.times import local, span
from detent.kernel.views import AuditEntry

# Entries that repeat in more detail what another one says.
_QUIET = (
    "run.created",
    "step.evaluated",
    "policy.evaluated",
    "effect.applied",
    "effect.failed",
    "block.entered",
    "run.scheduled",
    "run.running",
)
_COLOURS = {
    "completed": "completed",
    "executed": "completed",
    "failed": "failed",
    "occurred": "failed",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "paused": "paused",
    "escalated": "indeterminate",
    "retried": "waiting",
    "waiting": "waiting",
    "started": "running",
    "resumed": "running",
}


class Event(Struct, frozen=True, kw_only=True):
    """One line of the timeline."""

    id: str
    tick: int
    at: str
    after_ms: int
    action: str
    node: str
    text: str
    detail: Any


def events_of(entries: Iterable[AuditEntry], reader: Reader, *, everything: bool) -> list[Event]:
    """The entries as events, counted from the first one."""
    kept = list(entries)
    first = kept[0].tick if kept else 0
    ms = reader.clock.resolution_ms
    applied: dict[str, Any] = {}
    events: list[Event] = []
    for each in kept:
        if each.action in ("effect.applied", "effect.resolved"):
            applied[each.node] = _result(each)
        if everything or each.action not in _QUIET:
            detail = _detail(each, applied)
            events.append(
                Event(
                    id=each.id,
                    tick=each.tick,
                    at=local(reader.ms_of(each.tick)),
                    after_ms=(each.tick - first) * ms,
                    action=each.action,
                    node=each.node,
                    text=said(each.action, detail, reader),
                    detail=detail,
                )
            )
    return events


def _result(entry: AuditEntry) -> Any:
    """The result that an outcome, or a person's decision, brought."""
    told = entry.input if isinstance(entry.input, dict) else {}
    return told.get("args", told).get("result")


def _detail(entry: AuditEntry, applied: dict[str, Any]) -> Any:
    """The detail; a step without one has the result of its effect for its output."""
    if entry.action == "step.executed" and entry.detail is None:
        return {"output": applied.pop(entry.node, None)}
    return entry.detail


def show_events(screen: Screen, events: list[Event]) -> None:
    """Print a timeline."""
    screen.table(
        Table(
            columns=("when", "after", "node", "what", "detail"),
            rows=[event_row(each) for each in events],
            empty="nothing has happened yet",
        )
    )


def event_row(event: Event) -> tuple[str | Cell, ...]:
    """One event as cells."""
    what = event.action.rpartition(".")[2]
    return (
        Cell(event.at, "bright_black"),
        Cell(f"+{span(event.after_ms)}" if event.after_ms else "", "bright_black"),
        event.node,
        Cell(event.action, colour(_COLOURS.get(what, ""))),
        event.text,
    )


def said(action: str, detail: Any, reader: Reader) -> str:
    """What an entry's detail says, in few words."""
    if not isinstance(detail, dict):
        return one_line(detail)
    if "from" in detail and "to" in detail:
        why = detail.get("trigger", "")
        return f"{detail['from']} → {detail['to']}" + (f" ({why})" if why else "")
    if action == "effect.planned":
        attempt = detail.get("attempt", 1)
        again = f", attempt {attempt}" if attempt > 1 else ""
        return f"{detail.get('handler')}{again} {one_line(detail.get('request'), 60)}"
    if action == "wait.started":
        return _wait(detail, reader)
    if action == "gate.closed":
        return f"{', '.join(detail['keys'])} until {local(reader.ms_of(detail['until']))}"
    if "output" in detail:
        return one_line(detail["output"])
    left = {name: value for name, value in detail.items() if name not in ("in", "key")}
    message = left.get("message")
    return str(message) if message else one_line(left)


def _wait(detail: dict[str, Any], reader: Reader) -> str:
    named = str(detail.get("for") or "")
    due = detail.get("due")
    until = f"until {local(reader.ms_of(due))}" if isinstance(due, int) else ""
    kind = str(detail.get("kind", ""))
    return ", ".join(filter(None, (f"{kind} {named}".strip(), until)))
