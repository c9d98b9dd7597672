"""The page of the command line: every command with its help, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from detent.cli.program import program
from pages.markdown import document, fenced

_WIDTH = 96
_OPENING = """\
The command line works on a store file: the one named by `--db`, else by `$DETENT_DB`, else
`detent.db`. It prints text for people and, with `-o json`, one JSON document for programs. While an
engine owns the store, commands that change something leave their request in it and the owner
carries it out."""


def page(root: Path) -> str:  # noqa: ARG001 - every page is made from the root
    """Make the page."""
    parts = [_OPENING]
    for path, command in walk(program, ("detent",)):
        parts += [f"{'#' * min(len(path) + 1, 4)} {' '.join(path)}", fenced(help_of(command, path))]
    return document("Command line", *parts)


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Give a command and all below it, in the order of their overviews."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from walk(found, (*path, name))


def help_of(command: click.Command, path: tuple[str, ...]) -> str:
    """Give the help of a command as it is printed, at a fixed width."""
    context: click.Context | None = None
    for name in path[:-1]:
        context = click.Context(click.Group(name), parent=context, info_name=name)
    own = command.make_context(path[-1], [], parent=context, resilient_parsing=True)
    own.terminal_width = own.max_content_width = _WIDTH
    text: str = command.get_help(own)
    return "\n".join(line.rstrip() for line in text.splitlines())
