"""The page of the command line: every command with its help, from the commands themselves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import click

from detent.cli.invocation import NEEDS_FILE
from detent.cli.program import program
from pages.markdown import document, fenced, table

Place = tuple[tuple[str, click.Command], ...]

_WIDTH = 96
_SHARED = ("db", "tenant", "output", "help")
_OPENING = """\
The command line works on a store file: the one named by `--db`, else by `$DETENT_DB`, else
`detent.db`. It prints text for people and, with `-o json`, one JSON document for programs. While an
engine owns the store, commands that change something leave their request in it and the owner
carries it out. When nobody owns it, the command carries it out itself; handlers are then called
when an engine is started on the store.

`--db`, `--url`, `--tenant`, `-o` and `-h` stand at `detent` itself or at any command; the inner
counts."""
_ELSEWHERE = """\
With `--url`, or `$DETENT_URL`, the same commands speak to a server that runs elsewhere. Its API key
is read from `$DETENT_API_KEY` and from nowhere else: every process of a machine sees a command
line. What works on the store's file refuses a URL:"""


def page(root: Path) -> str:  # noqa: ARG001 - every page is made from the root
    """Make the page."""
    needing = [(f"`detent {name}`", why) for name, why in NEEDS_FILE.items()]
    parts = [_OPENING, "## Through a server", _ELSEWHERE]
    parts.append(table(("Command", "Why it needs the file"), needing))
    for place in walk((("detent", program),)):
        names = " ".join(name for name, _command in place)
        parts += [f"{'#' * min(len(place) + 1, 4)} {names}", fenced(help_of(place))]
    return document("Command line", *parts)


def walk(place: Place) -> Iterator[Place]:
    """Give a command and all below it, in the order of their overviews, each with its parents."""
    yield place
    name, command = place[-1]
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                yield from walk((*place, (each, found)))


def help_of(place: Place) -> str:
    """Give the help of a command as it is printed, at a fixed width.

    Below the top the options that all commands share are left out.
    """
    context: click.Context | None = None
    for name, command in place[:-1]:
        context = click.Context(command, parent=context, info_name=name)
    name, shown = place[-1]
    if context is not None:
        shown = copy.copy(shown)
        shown.params = [each for each in shown.params if each.name not in _SHARED]
        shown.add_help_option = False
    own = click.Context(
        shown,
        parent=context,
        info_name=name,
        max_content_width=_WIDTH,
        terminal_width=_WIDTH,
        help_option_names=["-h", "--help"],
    )
    return "\n".join(line.rstrip() for line in shown.get_help(own).splitlines())
