"""A plan drawn in the terminal: a line per step, and the ways that do not lead to the next one."""

from __future__ import annotations

from detent.cli.plan_words import PLAIN_SYMBOLS, STYLES, SYMBOLS, about, ordered, way
from detent.cli.screen import Cell, Screen
from detent.model.definition import Definition
from detent.service.plan_ways import PlanStep, plan_steps


def draw(screen: Screen, definition: Definition) -> None:
    """Draw the steps in order, then the exits."""
    title = f"  version {definition.version}  {definition.hash[:12]}"
    screen.line(Cell(definition.name, "bold"), Cell(title, "bright_black"))
    description = definition.body.metadata.get("description")
    if description:
        screen.line(Cell(str(description), "bright_black"))
    screen.line()
    steps = ordered(plan_steps(definition))
    width = max(len(step.id) for step in steps)
    for place, step in enumerate(steps):
        following = steps[place + 1].id if place + 1 < len(steps) else ""
        _step(screen, step, width)
        _ways(screen, step, following)
    for each in definition.body.exits:
        screen.line(
            Cell("any time ", "bright_black"),
            Cell(each.when),
            Cell(f" {_arrow(screen)} ", "bright_black"),
            Cell(each.outcome, "green"),
        )


def _step(screen: Screen, step: PlanStep, width: int) -> None:
    symbol = (SYMBOLS if screen.wide else PLAIN_SYMBOLS)[step.kind]
    style = STYLES[step.kind]
    screen.hanging([Cell(f"{symbol} ", style), Cell(f"{step.id:<{width}}  ", "bold")], about(step))


def _ways(screen: Screen, step: PlanStep, following: str) -> None:
    fork, last, line = ("├─", "└─", "│") if screen.wide else ("|-", "`-", "|")
    plain = len(step.ways) == 1 and step.ways[0] == ("", following)
    if plain:
        screen.line(Cell(line, "bright_black"))
        return
    for place, (when, to) in enumerate(step.ways):
        ends = place == len(step.ways) - 1
        corner = last if ends and to != following else fork
        said = f"{way(when)} " if len(step.ways) > 1 or when else ""
        screen.line(
            Cell(f"{corner} ", "bright_black"),
            Cell(said),
            Cell(f"{_arrow(screen)} ", "bright_black"),
            Cell(to, "bold"),
        )
    if step.ways and step.ways[-1][1] == following:
        screen.line(Cell(line, "bright_black"))
    else:
        screen.line()


def _arrow(screen: Screen) -> str:
    return "→" if screen.wide else "->"
