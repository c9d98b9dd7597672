"""`detent init`: a small project to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.screen import Cell, Screen
from detent.model.errors import RequestError, StoreError

FILES = ("welcome.yaml", "handlers.py", "README.md")


@click.command()
@click.argument("directory", default=".", metavar="[DIR]")
@shared
@pass_invocation
def init(options: Invocation, directory: str) -> None:
    """Write a small project: a definition, its handlers, and what to do with them."""
    place = Path(directory)
    present = [name for name in FILES if (place / name).exists()]
    if present:
        raise RequestError(
            "file.exists",
            f"{place / present[0]} is there already; nothing was written, choose another directory",
        )
    _write(place)
    made = [str(place / name) for name in FILES]
    options.emit({"directory": str(place), "files": made}, lambda screen: _show(screen, place))


def _write(place: Path) -> None:
    templates = files("detent.cli") / "template"
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            with (place / name).open("x", encoding="utf-8") as file:
                file.write((templates / f"{name}.txt").read_text(encoding="utf-8"))
    except FileExistsError as error:
        raise RequestError("file.exists", f"{error.filename} is there already") from error
    except OSError as error:
        raise StoreError("store.unavailable", f"{place} cannot be written ({error})") from error


def _show(screen: Screen, place: Path) -> None:
    for name in FILES:
        screen.line(Cell("made  ", "green"), str(place / name))
    screen.line()
    screen.line("next:")
    if place != Path():
        screen.line(Cell(f"  cd {place}", "cyan"))
    data = '{"name": "Ada", "email": "ada@example.org"}'
    screen.line(Cell("  detent definition validate welcome.yaml --handlers handlers.py", "cyan"))
    screen.line(Cell(f"  detent run welcome.yaml --handlers handlers.py --data '{data}'", "cyan"))
