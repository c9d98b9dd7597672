"""`detent instance tree | timeline | explain | replay`: what happened, why it stands, is it so."""

from __future__ import annotations

from typing import Any

import click
from msgspec import to_builtins

from detent.cli import exits
from detent.cli.explanation_view import show_explanation
from detent.cli.holding import holding, instance_or_schedule
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.palette import colour
from detent.cli.reader import reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import one_line, plural
from detent.cli.timeline_view import events_of, show_events
from detent.cli.tree_view import tree_branch
from detent.kernel.replay import FactChange, Replay


@click.command()
@click.argument("instance_id", metavar="ID")
@shared
@pass_invocation
def tree(options: Invocation, instance_id: str) -> None:
    """Show the execution tree: every block, and how it stands."""
    with reading(options) as reader:
        instance_id, views = instance_or_schedule(reader, instance_id), reader.views.inspect
        found = views.tree(instance_id, tenant=reader.tenant)
        held = holding(reader, instance_id)
        state = views.show(instance_id, tenant=reader.tenant).summary
        shown = {"instance": instance_id, "state": state.state, **to_builtins(found)}
        title = [
            Cell(f"{state.name}@{state.version}", "bold"),
            Cell(f"  {instance_id}  ", "bright_black"),
            Cell(state.state, colour(state.state)),
        ]
        ms = reader.clock.resolution_ms
        options.emit(
            shown,
            lambda screen: screen.tree(
                tree_branch(title, found, wide=screen.wide, resolution_ms=ms, held=held)
            ),
        )


@click.command()
@click.argument("instance_id", metavar="ID")
@click.option("--all", "everything", is_flag=True, help="Every entry of the journal.")
@shared
@pass_invocation
def timeline(options: Invocation, instance_id: str, everything: bool) -> None:
    """Show what happened, in order."""
    with reading(options) as reader:
        instance_id, views = instance_or_schedule(reader, instance_id), reader.views.inspect
        entries = views.audit(instance_id, tenant=reader.tenant)
        events = events_of(entries, reader, everything=everything)
        shown = {"instance": instance_id, "events": [to_builtins(each) for each in events]}
        options.emit(shown, lambda screen: show_events(screen, events))


@click.command()
@click.argument("instance_id", metavar="ID")
@shared
@pass_invocation
def explain(options: Invocation, instance_id: str) -> None:
    """Say why an instance, or a schedule by its id, stands still, and what would move it."""
    with reading(options) as reader:
        instance_id, views = instance_or_schedule(reader, instance_id), reader.views.inspect
        found = views.explain(instance_id, tenant=reader.tenant)
        options.emit(to_builtins(found), lambda screen: show_explanation(screen, reader, found))


@click.command()
@click.argument("instance_id", metavar="ID")
@click.option("--recompute", is_flag=True, help="Also list recorded facts that differ today.")
@shared
@pass_invocation
def replay(options: Invocation, instance_id: str, recompute: bool) -> int:
    """Run an instance's record again and compare every byte; exit code 1 if something differs."""
    with reading(options) as reader:
        instance_id, views = instance_or_schedule(reader, instance_id), reader.views.inspect
        found = views.replay(instance_id, tenant=reader.tenant)
        facts = views.recompute(instance_id, tenant=reader.tenant) if recompute else None
        shown: dict[str, Any] = {"instance": instance_id, **to_builtins(found)}
        if facts is not None:
            shown["facts"] = to_builtins(facts)
        options.emit(shown, lambda screen: _show_replay(screen, found, facts))
        return exits.OK if found.identical else exits.NO


def _show_replay(screen: Screen, found: Replay, facts: list[FactChange] | None) -> None:
    difference = found.first_difference
    if difference is None:
        screen.line(Cell("identical  ", "green"), f"{plural(found.rows, 'row')} replayed")
    else:
        screen.line(Cell("different  ", "red"), f"row {difference.seq}, {difference.field}")
        screen.facts(
            [
                ("expected", one_line(difference.expected)),
                ("actual", one_line(difference.actual)),
                ("likely cause", difference.cause),
            ]
        )
    if facts is not None:
        screen.table(
            Table(
                title="facts that would differ today",
                columns=("row", "fact", "recorded", "now"),
                rows=[
                    (str(each.seq), each.fact, one_line(each.recorded), one_line(each.now))
                    for each in facts
                ],
                empty="none",
            )
        )


COMMANDS = (tree, timeline, explain, replay)
