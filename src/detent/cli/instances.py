"""`detent instance`: the list, one instance, and the group of all its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from detent.cli import histories, steering
from detent.cli.holding import with_calls
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import one_line, pretty
from detent.kernel.lifecycle import INSTANCE
from detent.ports.store import Page
from detent.service.instances import LIST_LIMIT, InstanceSummary, InstanceView

_PRIORITIES = ("low", "normal", "high", "critical")


@click.group()
@shared
def instance() -> None:
    """Look at instances, and steer them."""


@instance.command(name="list")
@click.option("--state", multiple=True, type=click.Choice(list(INSTANCE)), help="Only this state.")
@click.option(
    "--definition", metavar="NAME", help="Only of this definition (name or name@version)."
)
@click.option("--limit", default=50, type=click.IntRange(1, LIST_LIMIT), show_default=True)
@click.option("--after", default=0, metavar="N", help="Go on where the last list ended.")
@shared
@pass_invocation
def list_(
    options: Invocation, state: tuple[str, ...], definition: str | None, limit: int, after: int
) -> None:
    """List instances, the oldest first."""
    with reading(options) as reader:
        page = Page(states=state, after=after, limit=limit)
        found, further = _collect(reader, page, definition)
        found = with_calls(reader, found)
        shown = {"instances": [to_builtins(each) for each in found], "next": further}
        options.emit(shown, lambda screen: _show_list(screen, reader, found, further))


@instance.command()
@click.argument("instance_id", metavar="ID")
@shared
@pass_invocation
def show(options: Invocation, instance_id: str) -> None:
    """Show one instance: its state, its data, what went wrong."""
    with reading(options) as reader:
        view = reader.views.inspect.show(instance_id, tenant=reader.tenant)
        view = replace(view, summary=with_calls(reader, [view.summary])[0])
        options.emit(to_builtins(view), lambda screen: _show_view(screen, reader, view))


for command in (*histories.COMMANDS, *steering.COMMANDS):
    instance.add_command(command)


def _collect(
    reader: Reader, page: Page, definition: str | None
) -> tuple[list[InstanceSummary], int | None]:
    """The first instances that fit; names are not indexed, so pages are read through."""
    found: list[InstanceSummary] = []
    further: int | None = page.after
    while further is not None and len(found) < page.limit:
        wanted = page._replace(after=further, limit=page.limit - len(found))
        listing = reader.views.inspect.instances(wanted, tenant=reader.tenant)
        found += [each for each in listing.items if _fits(each, definition)]
        further = listing.next
    return found, further


def _fits(summary: InstanceSummary, definition: str | None) -> bool:
    return definition in (None, summary.name, f"{summary.name}@{summary.version}")


def _show_list(
    screen: Screen, reader: Reader, found: list[InstanceSummary], further: int | None
) -> None:
    columns = ("id", "definition", "state", "moves", "changed")
    keyed = any(each.key for each in found)
    screen.table(
        Table(
            columns=(*columns, "key") if keyed else columns,
            rows=[
                (
                    each.id,
                    f"{each.name}@{each.version}",
                    screen.state(each.state),
                    reader.ago(each.due_ms),
                    reader.ago(each.updated_ms),
                    *([each.key or ""] if keyed else []),
                )
                for each in found
            ],
            whole=("id", "state"),
            empty="no instances",
        )
    )
    if further is not None:
        screen.line(Cell(f"more: --after {further}", "bright_black"))


def _show_view(screen: Screen, reader: Reader, view: InstanceView) -> None:
    screen.facts(_facts(screen, reader, view))
    for title, value in _values(view):
        screen.heading(title)
        for line in pretty(value):
            screen.verbatim(line)


def _facts(screen: Screen, reader: Reader, view: InstanceView) -> Iterator[tuple[str, str | Cell]]:
    summary = view.summary
    yield "instance", Cell(summary.id, "bold")
    yield "definition", f"{summary.name}@{summary.version}  {summary.definition[:12]}"
    yield "state", screen.state(summary.state)
    yield "paused because of", view.paused_reason
    yield "requested", ", ".join(_requests(view))
    yield "error", Cell(_error(view.error), "red")
    yield "moves", reader.instant(summary.due_ms)
    yield "tenant", f"{summary.tenant} / {summary.namespace}"
    yield "priority", _PRIORITIES[summary.priority]
    yield "key", summary.key or ""
    yield "parent", summary.parent or ""
    yield "created", reader.instant(summary.created_ms)
    yield "started", reader.instant(view.started_ms)
    yield "ended", reader.instant(view.ended_ms)
    yield "turns", str(view.snapshot_version)
    yield "open effects", str(view.open_effects or "")
    yield "kept signals", str(view.kept_signals or "")
    yield "dry run", "yes" if view.dry_run else ""


def _values(view: InstanceView) -> Iterator[tuple[str, Any]]:
    for title in ("data", "config", "outputs", "kv", "metadata"):
        value = getattr(view, title)
        if value:
            yield ("state kept by steps" if title == "kv" else title), value


def _requests(view: InstanceView) -> Iterator[str]:
    if view.pause_requested:
        yield "pause, held until the wait ends"
    if view.cancel_requested:
        yield "cancel"


def _error(error: Any) -> str:
    if isinstance(error, dict) and "message" in error:
        return str(error["message"])
    return one_line(error)
