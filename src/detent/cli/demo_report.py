"""What a demonstration shows at its end: figures, one life, one who stands, and the proof."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from detent.bootstrap.known_handlers import recall
from detent.cli.audits import show_verification
from detent.cli.demo_burst import Burst
from detent.cli.demo_limits import Chapter, show_limits
from detent.cli.explanation_view import show_explanation
from detent.cli.palette import colour
from detent.cli.reader import Reader
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import plural
from detent.cli.tally import Tally, tally
from detent.cli.timeline_view import Event, event_row, events_of
from detent.cli.watching import bar, pieces
from detent.kernel.explain import Explanation
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.kernel.replay import Replay
from detent.kernel.verify import Verification
from detent.service.explaining import explain_instance
from detent.service.histories import instance_audit
from detent.service.proving import replay_instance, verify_store

# What a newcomer need not see in a first timeline.
_LEFT_OUT = ("step.entered", "run.waiting", "run.scheduled", "block.completed", "block.failed")


class Outside(Protocol):
    """What the people of the demonstration did."""

    answered: int
    decided: int
    signalled: int


class Beside(Struct, frozen=True, kw_only=True):
    """What was shown beside the orders, each with an engine of its own."""

    burst: Burst
    limits: Chapter


class EffectRow(Struct, frozen=True, kw_only=True):
    """The calls of one handler."""

    handler: str
    on_doubt: str
    planned: int
    applied: int
    failed: int
    in_doubt: int
    decided: int


class Report(Struct, frozen=True, kw_only=True):
    """The result of a demonstration."""

    instances: int
    states: dict[str, int]
    steps: int
    turns: int
    burst: Burst
    limits: Chapter
    retries: int
    approvals: int
    signals: int
    effects: list[EffectRow]
    shown: str
    timeline: list[Event]
    standing: Explanation | None
    verification: Verification
    replay: Replay


def make_report(reader: Reader, ids: list[str], beside: Beside, people: Outside) -> Report:
    """Ask the store everything the end of the demonstration shows."""
    store = reader.store
    figures = tally(store)
    found = store.count_states("")
    shown = _interesting(reader, ids)
    events = events_of(instance_audit(store, shown, None), reader, everything=False)
    return Report(
        instances=len(ids),
        states={state: found[state] for state in INSTANCE if state in found},
        steps=figures.steps,
        turns=sum(row.turn for row in store.partitions()),
        burst=beside.burst,
        limits=beside.limits,
        retries=figures.actions["error.retried"],
        approvals=people.answered,
        signals=people.signalled,
        effects=_effects(reader, figures),
        shown=shown,
        timeline=[event for event in events if event.action not in _LEFT_OUT],
        standing=_standing(reader, ids),
        verification=verify_store(store),
        replay=replay_instance(store, shown, None),
    )


def _effects(reader: Reader, figures: Tally) -> list[EffectRow]:
    specs = recall(reader.store)
    return [
        EffectRow(
            handler=each.handler,
            on_doubt=specs[each.handler].doubt if each.handler in specs else "",
            planned=each.planned,
            applied=each.applied,
            failed=each.failed,
            in_doubt=each.escalated,
            decided=each.resolved,
        )
        for each in figures.effects.values()
    ]


def _interesting(reader: Reader, ids: list[str]) -> str:
    """The completed order in whose life most kinds of things happened."""
    best, most = ids[0], 0
    for instance in ids[:120]:
        row = reader.store.instance(instance)
        if row is None or row.state != "completed":
            continue
        actions = {entry.action for entry in instance_audit(reader.store, instance, None)}
        if len(actions) > most:
            best, most = instance, len(actions)
    return best


def _standing(reader: Reader, ids: list[str]) -> Explanation | None:
    for instance in ids:
        row = reader.store.instance(instance)
        if row is not None and row.state not in TERMINAL:
            return explain_instance(reader.store, instance, None)
    return None


def show_report(screen: Screen, reader: Reader, report: Report) -> None:
    """Print the report."""
    _show_figures(screen, report)
    screen.table(
        Table(
            title="effects, by handler",
            columns=("handler", "on doubt", "planned", "applied", "failed", "in doubt", "decided"),
            rows=[_effect_row(each) for each in report.effects],
            right=("planned", "applied", "failed", "in doubt", "decided"),
        )
    )
    screen.table(
        Table(
            title=f"one order, from beginning to end  {report.shown}",
            columns=("after", "node", "what", "detail"),
            rows=[event_row(each)[1:] for each in report.timeline],
        )
    )
    if report.standing is not None:
        screen.heading("why another one stands still")
        show_explanation(screen, reader, report.standing)
    show_limits(screen, report.limits)
    screen.heading("proof")
    show_verification(screen, reader, report.verification)
    same = report.replay.identical
    screen.line(
        Cell("identical  " if same else "different  ", "green" if same else "red"),
        f"the order above, replayed from its {plural(report.replay.rows, 'journal row')}",
    )


def _show_figures(screen: Screen, report: Report) -> None:
    if screen.terminal:
        screen.line(*bar(report.states, 60))
    screen.line(*pieces(report.states))
    screen.line(
        f"{plural(report.steps, 'step')}, {report.retries} retries, "
        f"{report.approvals} approvals, {report.signals} deliveries",
    )
    _show_burst(screen, report.burst)


def _show_burst(screen: Screen, burst: Burst) -> None:
    low, high = min(burst.rounds), max(burst.rounds)
    screen.hanging(
        [Cell(f"about {burst.median:,} steps/s  ", "bold")],
        Cell(
            f"bursts of {burst.steps // len(burst.rounds):,} steps on this machine now: "
            f"{low:,} to {high:,}; `make bench` measures it",
            "bright_black",
        ),
    )


def _effect_row(row: EffectRow) -> tuple[str | Cell, ...]:
    return (
        row.handler,
        Cell(row.on_doubt, "bright_black"),
        str(row.planned),
        Cell(str(row.applied), colour("applied")),
        Cell(str(row.failed or ""), colour("failed")),
        Cell(str(row.in_doubt or ""), colour("indeterminate")),
        str(row.decided or ""),
    )
