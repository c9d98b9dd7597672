"""`detent limit`: the rate limits of a tenant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import to_builtins

from detent.cli import values
from detent.cli.doors import asking
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.times import local, relative, span
from detent.model import limits
from detent.service.gate_views import LimitView

TENANT = "default"
METER = 10  # characters of a bar


@click.group()
@shared
def limit() -> None:
    """Set how often something may be done, and close it for a while."""


@limit.command(name="list")
@shared
@pass_invocation
def list_(options: Invocation) -> None:
    """List limits, by tenant and key."""
    with reading(options) as reader:
        found = of_tenants(reader, lambda whose: reader.views.limits.list(tenant=whose))
        shown = {"limits": [{"tenant": whose, **to_builtins(each)} for whose, each in found]}
        options.emit(shown, lambda screen: screen.table(_table(screen, reader, found)))


@limit.command()
@click.argument("key")
@shared
@pass_invocation
def show(options: Invocation, key: str) -> None:
    """Show one limit."""
    with reading(options) as reader:
        found = reader.views.limits.show(key, tenant=reader.tenant or TENANT)
        options.emit(
            to_builtins(found),
            lambda screen: screen.table(_table(screen, reader, [(TENANT, found)])),
        )


@limit.command(name="set")
@click.argument("key")
@click.option(
    "--max",
    "most",
    type=click.IntRange(1, limits.LIMIT_MAX),
    metavar="N",
    required=True,
    help="How many in any window.",
)
@click.option(
    "--window",
    type=values.window,
    required=True,
    metavar="SPAN",
    help="Such as 1s, 10m, 1h30m, 1d.",
)
@shared
@pass_invocation
def set_(options: Invocation, key: str, most: int, window: int) -> None:
    """Make a limit, or change one; what is deferred already follows."""
    with asking(options, make=True) as door:
        made = door.limits.set(key, max=most, window=window, tenant=options.tenant or TENANT)
    _answer(options, "set", made)


@limit.command()
@click.argument("key")
@click.option("--for", "length", type=values.span, metavar="SPAN", help="For a while, such as 30m.")
@click.option(
    "--until",
    type=values.instant,
    metavar="TIME",
    help="Until an ISO instant; local unless it says else.",
)
@shared
@pass_invocation
def close(options: Invocation, key: str, length: int | None, until: dt.datetime | None) -> None:
    """Let nothing through for a while."""
    if (length is None) == (until is None):
        raise click.UsageError("Say how long: --for SPAN or --until TIME.")
    with asking(options) as door:
        tenant = options.tenant or TENANT
        made = door.limits.close(key, for_=length, until=until, tenant=tenant)
    _answer(options, "close", made)


@limit.command(name="open")
@click.argument("key")
@shared
@pass_invocation
def open_(options: Invocation, key: str) -> None:
    """Let through again what the window allows."""
    with asking(options) as door:
        made = door.limits.open(key, tenant=options.tenant or TENANT)
    _answer(options, "open", made)


@limit.command()
@click.argument("key")
@shared
@pass_invocation
def delete(options: Invocation, key: str) -> None:
    """Remove a limit; what waits for it goes on."""
    with asking(options) as door:
        door.limits.delete(key, tenant=options.tenant or TENANT)
    shown = {"request": "delete", "key": key}
    options.emit(shown, lambda screen: screen.line(Cell("done  ", "green"), f"delete {key}"))


View = TypeVar("View")


def of_tenants(reader: Reader, look: Callable[[str], Sequence[View]]) -> list[tuple[str, View]]:
    """What the tenant that was named has, or every one, with whose it is."""
    tenants = reader.views.inspect.gated_tenants(tenant=reader.tenant)
    return [(tenant, each) for tenant in tenants for each in look(tenant)]


def with_tenant(table: Table, tenants: list[str]) -> Table:
    """The table with whose each row is, unless all are of the tenant that is always there."""
    if set(tenants) <= {TENANT}:
        return table
    table.columns = ("tenant", *table.columns)
    table.rows = [(whose, *row) for whose, row in zip(tenants, table.rows, strict=True)]
    return table


def _table(screen: Screen, reader: Reader, found: list[tuple[str, LimitView]]) -> Table:
    table = Table(
        columns=("key", "limit", "used", "", "waiting", "state"),
        rows=[
            (
                each.key,
                rate(each),
                f"{each.used:,}",
                meter(screen, each.used or 0, each.max or 1),
                f"{each.waiting:,}" if each.waiting else "",
                _state(each, reader.now_ms),
            )
            for _whose, each in found
        ],
        empty="no limits; make one with `detent limit set KEY --max N --window SPAN`",
        right=("used", "waiting"),
    )
    return with_tenant(table, [whose for whose, _each in found])


def rate(limit: LimitView) -> str:
    """A limit in words: `10 in 1 h`."""
    if limit.max is None or limit.window_ms is None:
        return "none"
    return f"{limit.max:,} in {span(limit.window_ms)}"


def meter(screen: Screen, used: int, most: int) -> Cell:
    """A bar of what is used."""
    part = min(METER, -(-used * METER // most)) if most else METER
    full, rest = ("━", "─") if screen.wide else ("#", ".")
    return Cell(full * part + rest * (METER - part), "yellow" if used >= most else "green")


def _state(limit: LimitView, now_ms: int) -> Cell:
    until = limit.closed_until_ms
    if until is not None and until > now_ms:
        return Cell(f"closed until {local(until)} ({relative(until, now_ms)})", "yellow")
    if limit.free_ms is not None:
        return Cell(
            f"full until {local(limit.free_ms)} ({relative(limit.free_ms, now_ms)})", "yellow"
        )
    return Cell("open", "green")


def _answer(options: Invocation, verb: str, made: LimitView) -> None:
    def show(screen: Screen) -> None:
        until = made.closed_until_ms
        closed = "" if until is None else f", closed until {local(until)}"
        screen.line(Cell("done  ", "green"), f"{verb} {made.key}  {rate(made)}{closed}")

    shown: dict[str, Any] = {"request": verb, **to_builtins(made)}
    options.emit(shown, show)
