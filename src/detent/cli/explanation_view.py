"""An explanation for people: one answer, then what is waited for and who can release it."""

from __future__ import annotations

from detent.cli.palette import colour
from detent.cli.reader import Reader
from detent.cli.screen import Cell, Screen
from detent.cli.times import in_local
from detent.kernel.explain import Explanation, WaitExplained


def show_explanation(screen: Screen, reader: Reader, found: Explanation) -> None:
    """Print an explanation."""
    screen.line(Cell(f"{found.instance} is ", "bright_black"), screen.state(found.state))
    screen.line(in_local(found.summary))
    for wait in found.waits:
        screen.line()
        screen.line(*_heading(reader, found, wait))
        screen.facts(
            [
                ("  waits", in_local(wait.text) if len(found.waits) > 1 else ""),
                ("  since", reader.at(wait.since)),
                ("  until", reader.at(wait.due)),
                *_listed("  released by", wait.released_by),
            ]
        )
    for effect in found.effects:
        screen.line()
        screen.line(
            Cell(f"effect {effect.key}", "bold"), Cell(f"  {effect.state}", colour(effect.state))
        )
        screen.facts(
            [
                ("  means", in_local(effect.text)),
                ("  handler", f"{effect.handler}, attempt {effect.attempt}"),
                ("  reason", effect.reason),
                ("  since", reader.at(effect.since)),
                ("  resolve with", _resolutions(effect.key, effect.resolutions)),
            ]
        )
    if found.signals:
        screen.line()
        screen.facts([("kept signals", ", ".join(found.signals))])
    if found.earliest_ms is not None:
        screen.line()
        screen.facts([("earliest move", reader.instant(found.earliest_ms))])


def _listed(label: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(label if place == 0 else "", in_local(text)) for place, text in enumerate(texts)]


def _heading(reader: Reader, found: Explanation, wait: WaitExplained) -> list[Cell]:
    if wait.kind == "cron":
        key = reader.views.inspect.show(found.instance).summary.key
        return [Cell(key or found.instance, "bold"), Cell("  schedule", "cyan")]
    return [Cell(wait.node or "the instance", "bold"), Cell(f"  {wait.kind}", "cyan")]


def _resolutions(key: str, resolutions: tuple[str, ...]) -> str:
    if not resolutions:
        return ""
    return f"detent effect resolve {key} --happened JSON | --failed | --skip | --again"
