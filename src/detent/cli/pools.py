"""`detent pool`: pools of mailboxes, keys or numbers, with weights, caps and warm-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click
from msgspec import to_builtins

from detent.cli import values
from detent.cli.doors import asking
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.limits import TENANT, of_tenants, with_tenant
from detent.cli.reader import reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import plural
from detent.model import limits
from detent.service.gate_views import PoolView, ResourceView

Command = TypeVar("Command", bound=Callable[..., Any])

STRATEGIES = ("weighted", "round_robin", "random")
_BAR = 10
_COLUMNS = ("id", "key", "weight", "state", "today", "warm-up", "zone")
_ALWAYS = ("id", "weight", "state", "today", "zone")


@click.group()
@shared
def pool() -> None:
    """Share work between mailboxes, keys or numbers."""


@pool.command(name="list")
@shared
@pass_invocation
def list_(options: Invocation) -> None:
    """List pools, by tenant and name."""
    with reading(options) as reader:
        found = of_tenants(reader, lambda whose: reader.views.pools.list(tenant=whose))
    table = Table(
        columns=("pool", "strategy", "resources", "used today", "of", "waiting"),
        rows=[
            (each.name, each.strategy, _count(each), _used(each), _today(each), str(each.waiting))
            for _whose, each in found
        ],
        right=("used today", "of", "waiting"),
        empty="no pools; make one with `detent pool create NAME`",
    )
    shown = {"pools": [{"tenant": whose, **to_builtins(each)} for whose, each in found]}
    named = with_tenant(table, [whose for whose, _each in found])
    options.emit(shown, lambda screen: screen.table(named))


@pool.command()
@click.argument("name")
@shared
@pass_invocation
def show(options: Invocation, name: str) -> None:
    """Show a pool: each resource, what it may do today, how far its warm-up is."""
    with reading(options) as reader:
        found = reader.views.pools.show(name, tenant=reader.tenant or TENANT)
    options.emit(to_builtins(found), lambda screen: _show(screen, found))


@pool.command()
@click.argument("name")
@click.option("--strategy", type=click.Choice(STRATEGIES), default="weighted", show_default=True)
@shared
@pass_invocation
def create(options: Invocation, name: str, strategy: str) -> None:
    """Make a pool, or change the strategy of one."""
    with asking(options, make=True) as door:
        made = door.pools.create(name, strategy, tenant=options.tenant or TENANT)
    _answer(options, "create", name, to_builtins(made), strategy)


def _fields(command: Command) -> Command:
    """The options that say something about a resource."""
    options = (
        _number("--weight", 1, limits.RESOURCE_WEIGHT, "Its share in a weighted pool, from 1."),
        _number("--daily-cap", 0, limits.DAILY_CAP, "At most so many a day; 0 is no cap."),
        _number("--warmup-days", 0, limits.WARMUP_DAYS, "Days until the cap is --daily-cap."),
        _number("--warmup-start-cap", 0, limits.DAILY_CAP, "The cap of the first day."),
        click.option(
            "--warmup-start",
            type=values.day,
            metavar="DATE",
            help="The first day.  [default: today]",
        ),
        click.option(
            "--warmup-schedule",
            type=values.caps,
            metavar="CAPS",
            help="A cap for each day: 5,10,20.",
        ),
        click.option(
            "--timezone",
            type=values.zone,
            metavar="ZONE",
            help="Where its days begin.  [default: UTC]",
        ),
        click.option("--name", "label", metavar="TEXT", help="For people.  [default: its key]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _number(name: str, low: int, high: int, about: str) -> Callable[[Command], Command]:
    return click.option(name, type=click.IntRange(low, high), metavar="N", help=about)


@pool.command()
@click.argument("name", metavar="POOL")
@click.argument("resource_key", metavar="KEY")
@click.option("--id", "id_", metavar="ID", help="Its id in the pool.  [default: its key]")
@_fields
@shared
@pass_invocation
def add(options: Invocation, name: str, resource_key: str, id_: str | None, **given: Any) -> None:
    """Add a resource; one with that id is changed to what is said here.

    One that is disabled stays so: `detent pool enable` lets it take part again.
    """
    fields = _given(given)
    with asking(options, make=True) as door:
        tenant = options.tenant or TENANT
        made = door.pools.add(name, resource_key, id=id_, tenant=tenant, **fields)
    _answer(options, "add", f"{name} {made.id}", to_builtins(made), _about(made))


@pool.command()
@click.argument("name", metavar="POOL")
@click.argument("id_", metavar="ID")
@_fields
@shared
@pass_invocation
def update(options: Invocation, name: str, id_: str, **given: Any) -> None:
    """Change some fields of a resource; the others stay."""
    fields = _given(given)
    if not fields:
        raise click.UsageError("Say what to change, such as --weight 3.")
    _update(options, "update", name, id_, fields)


@pool.command()
@click.argument("name", metavar="POOL")
@click.argument("id_", metavar="ID")
@shared
@pass_invocation
def enable(options: Invocation, name: str, id_: str) -> None:
    """Let a resource take part again."""
    _update(options, "enable", name, id_, {"enabled": True})


@pool.command()
@click.argument("name", metavar="POOL")
@click.argument("id_", metavar="ID")
@shared
@pass_invocation
def disable(options: Invocation, name: str, id_: str) -> None:
    """Pass a resource over until it is enabled."""
    _update(options, "disable", name, id_, {"enabled": False})


@pool.command()
@click.argument("name", metavar="POOL")
@click.argument("id_", metavar="ID")
@shared
@pass_invocation
def remove(options: Invocation, name: str, id_: str) -> None:
    """Take a resource out of a pool."""
    with asking(options) as door:
        door.pools.remove(name, id_, tenant=options.tenant or TENANT)
    _answer(options, "remove", f"{name} {id_}", {"pool": name, "id": id_})


@pool.command()
@click.argument("name", metavar="POOL")
@shared
@pass_invocation
def delete(options: Invocation, name: str) -> None:
    """Remove a pool with its resources."""
    with asking(options) as door:
        door.pools.delete(name, tenant=options.tenant or TENANT)
    _answer(options, "delete", name, {"name": name})


def _update(options: Invocation, verb: str, name: str, id: str, fields: dict[str, Any]) -> None:
    with asking(options) as door:
        made = door.pools.update(name, id, tenant=options.tenant or TENANT, **fields)
    _answer(options, verb, f"{name} {id}", to_builtins(made), _about(made))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were named, as Python has them."""
    fields = {name: value for name, value in options.items() if value is not None}
    if "label" in fields:
        fields["name"] = fields.pop("label")
    if "warmup_schedule" in fields:
        fields["warmup_schedule"] = fields["warmup_schedule"] or None  # none: it is taken away
    return fields


def _answer(
    options: Invocation, verb: str, what: str, made: dict[str, Any], about: str = ""
) -> None:
    def show(screen: Screen) -> None:
        screen.line(
            Cell("done  ", "green"), f"{verb} {what}", Cell(f"  {about}" if about else "", "")
        )

    options.emit({"request": verb, **made}, show)


# as people read it --------------------------------------------------------------------------------


def _show(screen: Screen, found: PoolView) -> None:
    waiting = f", {found.waiting:,} waiting" if found.waiting else ""
    about = f"  {found.strategy}, {_count(found)}{waiting}"
    screen.line(Cell(found.name, "bold"), Cell(about, "bright_black"))
    rows = [_row(screen, each) for each in found.resources]
    columns = [
        name for name in _COLUMNS if name in _ALWAYS or any(_text(row[name]) for row in rows)
    ]
    screen.table(
        Table(
            columns=columns,
            rows=[[row[name] for name in columns] for row in rows],
            empty=f"no resources; add one with `detent pool add {found.name} KEY`",
            right=("weight", "today"),
            whole=("id", "key", "zone"),
        )
    )


def _row(screen: Screen, each: ResourceView) -> dict[str, str | Cell]:
    return {
        "id": each.id,
        "key": each.resource_key if each.resource_key != each.id else "",
        "weight": str(each.weight),
        "state": Cell("enabled", "green") if each.enabled else Cell("disabled", "bright_black"),
        "today": f"{each.used_today or 0:,} of {_cap(each.cap_today)}",
        "warm-up": _warmup(screen, each),
        "zone": each.timezone,
    }


def _text(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _warmup(screen: Screen, each: ResourceView) -> Cell:
    """How far the warm-up is: `━━──────── day 7 of 28, then 50`."""
    days = len(each.warmup_schedule or ()) or each.warmup_days
    if not days or each.warmup_start is None or each.today is None:
        return Cell("")
    done = (each.today - each.warmup_start).days
    if done < 0:
        return Cell(f"from {each.warmup_start}", "bright_black")
    if done >= days:
        return Cell("done", "green")
    full, rest = ("━", "─") if screen.wide else ("#", ".")
    part = max(1, (done + 1) * _BAR // days)
    goal = f", then {_cap(each.daily_cap or None)}"
    return Cell(f"{full * part}{rest * (_BAR - part)} day {done + 1} of {days}{goal}", "yellow")


def _count(found: PoolView) -> str:
    off = sum(not each.enabled for each in found.resources)
    return plural(len(found.resources), "resource") + (f", {off} disabled" if off else "")


def _used(found: PoolView) -> str:
    return f"{sum(each.used_today or 0 for each in found.resources):,}"


def _today(found: PoolView) -> str:
    caps = [each.cap_today for each in found.resources if each.enabled]
    return "unlimited" if None in caps else f"{sum(cap or 0 for cap in caps):,}"


def _cap(cap: int | None) -> str:
    return "unlimited" if cap is None else f"{cap:,}"


def _about(made: ResourceView) -> str:
    return ", ".join(_facts(made))


def _facts(made: ResourceView) -> Iterator[str]:
    if not made.enabled:
        yield "disabled"
    yield f"weight {made.weight}"
    if made.cap_today is not None:
        yield f"{made.cap_today:,} today"
