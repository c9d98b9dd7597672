"""`detent clock`: accept a jump of the wall clock that holds the engine."""

from __future__ import annotations

import click

from detent.bootstrap.visitor import Visitor
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.screen import Cell
from detent.cli.times import span


@click.group()
@shared
def clock() -> None:
    """Accept a jump of the clock."""


@clock.command()
@shared
@pass_invocation
def accept(options: Invocation) -> None:
    """Say that the present time is right, so that an engine that holds with clock.jump goes on."""
    options.needs_file()
    with Visitor(options.db) as visitor:
        jump_ms = visitor.accept_clock()
    options.emit(
        {"accepted": True, "jump_ms": jump_ms},
        lambda screen: screen.line(
            Cell("done  ", "green"), f"the clock is accepted, {span(jump_ms)} after the last turn"
        ),
    )
