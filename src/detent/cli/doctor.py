"""`detent doctor`: what is wrong with a store and its surroundings, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import click
from msgspec import to_builtins

from detent.cli import exits
from detent.cli.checkup import Finding, machine_findings, store_findings
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.palette import LEVELS
from detent.cli.reader import reading
from detent.cli.screen import Cell, Screen
from detent.model.errors import StoreError


@click.command()
@click.option("--quick", is_flag=True, help="Leave the integrity check of the whole file out.")
@shared
@pass_invocation
def doctor(options: Invocation, quick: bool) -> int:
    """Look for what is wrong with a store; exit code 5 if something fails."""
    options.needs_file()
    found = list(_findings(options, quick=quick))
    failed = any(each.level == "fail" for each in found)
    shown = {"healthy": not failed, "findings": to_builtins(found)}
    options.emit(shown, lambda screen: _show(screen, found))
    return exits.OPERATOR if failed else exits.OK


def _findings(options: Invocation, *, quick: bool) -> Iterator[Finding]:
    yield from machine_findings(options.db)
    try:
        with reading(options) as reader:
            yield from store_findings(reader, options.db, quick=quick)
    except StoreError as error:
        hint = "start an engine or `detent run` once to make it" if _absent(error) else ""
        yield Finding(level="fail", name="store", said=error.message, todo=hint)


def _absent(error: StoreError) -> bool:
    return bool(error.details.get("absent"))


def _show(screen: Screen, found: list[Finding]) -> None:
    width = max(len(each.name) for each in found)
    for each in found:
        head = [
            Cell(f"{each.level:<5}", LEVELS[each.level]),
            Cell(f"{each.name:<{width}}  ", "bold"),
        ]
        screen.hanging(head, each.said)
        if each.todo:
            todo = Cell(f"→ {each.todo}" if screen.wide else each.todo, "cyan")
            screen.hanging([" " * (width + 7)], todo)
