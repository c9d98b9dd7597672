"""`detent cron`: schedules that start instances by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import click
from msgspec import to_builtins

from detent.calendar import local_of
from detent.cli import values
from detent.cli.doors import HOST, asking
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import one_line
from detent.cli.sources import json_value, named_definition
from detent.cli.times import local, relative
from detent.kernel.cron import Missed, Overlap
from detent.model import limits
from detent.model.definition import Definition
from detent.service.crons import CronView, upcoming_fires
from detent.service.starting import PRIORITIES

TENANT = "default"
_JSON = ("metadata", "data", "config")


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how a schedule behaves."""
    options = (
        click.option(
            "--timezone", type=values.zone, metavar="ZONE", help="An IANA zone.  [default: UTC]"
        ),
        click.option(
            "--overlap",
            type=click.Choice(get_args(Overlap)),
            help="While an earlier one runs.  [default: allow]",
        ),
        click.option(
            "--missed",
            type=click.Choice(get_args(Missed)),
            help="Fires that passed while nothing ran.  [default: one]",
        ),
        click.option(
            "--missed-limit",
            type=click.IntRange(1, limits.CRON_MISSED_MOST),
            metavar="N",
            help=f"The latest N of them, for --missed all.  [default: {limits.CRON_MISSED}]",
        ),
        click.option("--priority", type=click.Choice(list(PRIORITIES)), help="Of what it starts."),
        click.option("--metadata", metavar="JSON", help="Of what it starts; JSON or @file."),
        click.option("--data", metavar="JSON", help="Of what it starts; JSON or @file."),
        click.option("--config", metavar="JSON", help="Of what it starts; JSON or @file."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
@shared
def cron() -> None:
    """Start instances at the times of a schedule."""


@cron.command()
@click.argument("definition", metavar="NAME[@VERSION]|FILE")
@click.argument("expr", type=values.expression, metavar="EXPRESSION")
@click.option("--id", "chosen", metavar="ID", help="An id of your own.  [default: a new one]")
@click.option("--namespace", default="default", metavar="NAME", show_default=True)
@click.option("--disabled", is_flag=True, help="Fire nothing until it is enabled.")
@_settings
@shared
@pass_invocation
def create(options: Invocation, definition: str, expr: str, **given: Any) -> None:
    """Make a schedule: `detent cron create report.yaml "0 9 * * MON-FRI" --timezone Europe/Berlin`.

    It fires while an engine runs on the store, such as `detent run --forever`.
    """
    place = {"tenant": options.tenant or TENANT, "namespace": given.pop("namespace")}
    chosen, enabled = given.pop("chosen"), not given.pop("disabled")
    settings = {**_given(given), "enabled": enabled}
    target = named_definition(definition)
    with asking(options, make=isinstance(target, Definition)) as door:
        made = door.crons.create(target, expr, id=chosen, **place, **settings)
    _answer(options, "create", made)


@cron.command(name="list")
@click.option("--limit", default=100, type=click.IntRange(1, limits.CRONS_LISTED))
@shared
@pass_invocation
def list_(options: Invocation, limit: int) -> None:
    """List schedules, the oldest first."""
    with reading(options) as reader:
        found = tuple(reader.views.crons.list(tenant=reader.tenant, limit=limit))
        shown = {"crons": [to_builtins(each) for each in found]}

        def show(screen: Screen) -> None:
            screen.table(_table(reader, found))
            if any(each.enabled for each in found):
                _say_unowned(screen, reader)

        options.emit(shown, show)


@cron.command()
@click.argument("cron_id", metavar="ID")
@shared
@pass_invocation
def show(options: Invocation, cron_id: str) -> None:
    """Show one schedule and what has become of it."""
    with reading(options) as reader:
        found = reader.views.crons.show(cron_id, tenant=reader.tenant)

        def tell(screen: Screen) -> None:
            screen.facts(_facts(reader, found))
            if found.enabled:
                _say_unowned(screen, reader)

        options.emit(to_builtins(found), tell)


@cron.command()
@click.argument("cron_id", metavar="ID")
@click.option(
    "--expr", type=values.expression, metavar="EXPRESSION", help="Another cron expression."
)
@click.option("--definition", metavar="NAME[@VERSION]|FILE", help="Start this one from now on.")
@_settings
@shared
@pass_invocation
def update(options: Invocation, cron_id: str, definition: str | None, **given: Any) -> None:
    """Change a schedule; its next fire is counted from now."""
    changes = _given(given)
    if not changes and definition is None:
        raise click.UsageError("Say what to change, such as --expr or --timezone.")
    target = None if definition is None else named_definition(definition)
    with asking(options) as door:
        made = door.crons.update(cron_id, target, tenant=options.tenant, **changes)
    _answer(options, "update", made)


@cron.command()
@click.argument("cron_id", metavar="ID")
@shared
@pass_invocation
def enable(options: Invocation, cron_id: str) -> None:
    """Let it fire again, from now on."""
    with asking(options) as door:
        _answer(options, "enable", door.crons.enable(cron_id, tenant=options.tenant))


@cron.command()
@click.argument("cron_id", metavar="ID")
@shared
@pass_invocation
def disable(options: Invocation, cron_id: str) -> None:
    """Let it fire nothing; what it has started goes on."""
    with asking(options) as door:
        _answer(options, "disable", door.crons.disable(cron_id, tenant=options.tenant))


@cron.command()
@click.argument("cron_id", metavar="ID")
@shared
@pass_invocation
def delete(options: Invocation, cron_id: str) -> None:
    """End a schedule; what it has started goes on."""
    with asking(options) as door:
        door.crons.delete(cron_id, tenant=options.tenant)
    shown = {"request": "delete", "id": cron_id}
    options.emit(shown, lambda screen: screen.line(Cell("done  ", "green"), f"delete {cron_id}"))


@cron.command(name="next")
@click.argument("cron_id", metavar="ID")
@click.option(
    "-n",
    "count",
    default=5,
    type=click.IntRange(1, limits.CRON_PREVIEW),
    show_default=True,
    help="How many.",
)
@shared
@pass_invocation
def next_(options: Invocation, cron_id: str, count: int) -> None:
    """Show the next times at which it fires."""
    with reading(options) as reader:
        found = reader.views.crons.show(cron_id, tenant=reader.tenant)
        fires = upcoming_fires(found.cron_expr, found.timezone, count, reader.now_ms)

    def show(screen: Screen) -> None:
        for ms in fires:
            wall = local_of(ms, found.timezone).isoformat(sep=" ")
            screen.line(f"{wall} {found.timezone}", Cell(f"  {relative(ms, reader.now_ms)}"))
        if not found.enabled:
            screen.line(Cell("it is disabled: none of them happens", "yellow"))

    shown = {
        "id": found.id,
        "enabled": found.enabled,
        "timezone": found.timezone,
        "fires_ms": fires,
        "fires": [local(ms) for ms in fires],
    }
    options.emit(shown, show)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were named, JSON read."""
    named = {name: value for name, value in options.items() if value is not None}
    for name in _JSON:
        if name in named:
            named[name] = json_value(named[name], f"--{name}")
    return named


def _table(reader: Reader, found: tuple[CronView, ...]) -> Table:
    return Table(
        columns=("id", "starts", "when", "next", "fires"),
        rows=[
            (
                each.id,
                _starts(each),
                f"{each.cron_expr}  {each.timezone}",
                _next(reader, each),
                f"{each.fires:,}"
                + (f", {each.skipped_fires:,} skipped" * bool(each.skipped_fires)),
            )
            for each in found
        ],
        whole=("id", "starts"),
        empty="no schedules; make one with `detent cron create FILE EXPRESSION`",
    )


def _say_unowned(screen: Screen, reader: Reader) -> None:
    """Nothing fires by itself: say so where no engine runs."""
    if reader.clock.clock == "wall" and not reader.views.owned():
        screen.line()
        screen.line(Cell(f"nobody runs this store, so nothing fires: {HOST} does", "yellow"))


def _starts(cron: CronView) -> str:
    return cron.sequence if cron.version is None else f"{cron.sequence}@{cron.version}"


def _next(reader: Reader, cron: CronView) -> Cell:
    if not cron.enabled:
        return Cell("disabled", "yellow")
    if cron.next_fire_ms is None:
        return Cell("never again", "yellow")
    return Cell(reader.ago(cron.next_fire_ms), "green")


def _facts(reader: Reader, cron: CronView) -> Iterator[tuple[str, str | Cell]]:
    missed = cron.missed_policy
    yield "schedule", Cell(cron.id, "bold")
    yield "starts", _starts(cron)
    yield "expression", f"{cron.cron_expr}  ({cron.timezone})"
    yield "next fire", reader.instant(cron.next_fire_ms) or _next(reader, cron)
    yield "held fire", reader.instant(cron.held_fire_ms)
    yield "overlap", cron.overlap_policy
    yield "missed", f"{missed}, {cron.missed_limit} at most" if missed == "all" else missed
    yield "priority", cron.priority
    yield "fires", f"{cron.fires:,}"
    yield "skipped", f"{cron.skipped_fires:,}"
    yield "failed", f"{cron.failed_fires:,}" if cron.failed_fires else ""
    yield "last error", Cell(cron.last_error, "red")
    yield "last start", reader.instant(cron.last_triggered_ms)
    yield "last skipped", reader.instant(cron.last_skipped_ms)
    yield "running", ", ".join(cron.running)
    yield "tenant", f"{cron.tenant} / {cron.namespace}"
    yield "instance", cron.instance
    yield "created", reader.instant(cron.created_ms)
    yield "changed", reader.instant(cron.updated_ms)
    for name in _JSON:
        yield name, one_line(getattr(cron, name))


def _answer(options: Invocation, verb: str, made: CronView) -> None:
    def show(screen: Screen) -> None:
        due = made.next_fire_ms
        then = "fires nothing" if due is None else f"next fire {local(due)}"
        screen.line(Cell("done  ", "green"), f"{verb} {made.id}  {_starts(made)}", f"  {then}")

    options.emit({"request": verb, **to_builtins(made)}, show)
