"""What every command is told: the store, the tenant and the form of the output.

The options stand at the top (`detent --db x instance list`) and at every command (`detent instance
list --db x`); the inner one counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
import msgspec
from msgspec import Struct

from detent.cli.screen import Screen

Command = TypeVar("Command", bound=Callable[..., Any])

DATABASE = "detent.db"
FORMATS = ("text", "json")
SEAL_KEY = "DETENT_SEAL_KEY_FILE"


class Invocation(Struct):
    """The options that all commands share, and the screen they print to."""

    db: str = DATABASE
    tenant: str | None = None  # None: all tenants in lists, "default" for what is made
    output: str = "text"

    @property
    def json(self) -> bool:
        """Whether the output is for a program."""
        return self.output == "json"

    @property
    def seal_key(self) -> str | None:
        """The file with the key that signs seals, where a command works on the store itself."""
        return os.environ.get(SEAL_KEY) or None

    def screen(self) -> Screen:
        """Where text goes."""
        return Screen()

    def emit(self, value: Any, show: Callable[[Screen], None]) -> None:
        """Print a value as JSON, or let it be shown as text."""
        if self.json:
            write_json(value)
        else:
            show(self.screen())


def write_json(value: Any) -> None:
    """Print one JSON document; keys are stable."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(text.decode() + "\n")


def shared(command: Command) -> Command:
    """Give a command the options that all commands share."""
    return _with_options(command, environment=None)


def shared_at_top(command: Command) -> Command:
    """The same for `detent` itself, where the environment is looked at too."""
    return _with_options(command, environment="DETENT_DB")


def invocation(context: click.Context) -> Invocation:
    """The invocation of a command; made by whoever asks first."""
    return context.find_root().ensure_object(Invocation)


def pass_invocation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the invocation to a command as its first argument."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(invocation(click.get_current_context()), *args, **kwargs)

    return called


def _with_options(command: Command, environment: str | None) -> Command:
    options = (
        click.option(
            "--db",
            metavar="PATH",
            envvar=environment,
            expose_value=False,
            callback=_remember("db"),
            help=f"The store.  [default: $DETENT_DB, else {DATABASE}]",
        ),
        click.option(
            "--tenant",
            metavar="NAME",
            expose_value=False,
            callback=_remember("tenant"),
            help="Only this tenant.  [default: all; to start or configure: default]",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_remember("output"),
            help="text for people, json for programs.  [default: text]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def remember(context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if value is not None:
            setattr(invocation(context), name, value)
        return value

    return remember
