"""What every command is told: the store or server, the tenant and the form of the output.

The options stand at the top (`detent --db x instance list`) and at every command (`detent instance
list --db x`); the inner one counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from detent.cli.screen import Screen

if TYPE_CHECKING:
    from detent.client.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

DATABASE = "detent.db"
FORMATS = ("text", "json")
SEAL_KEY = "DETENT_SEAL_KEY_FILE"


# Commands that work on the store's file, and why no server stands in for it.
NEEDS_FILE = {
    "run": "it is an engine of its own, which owns the store",
    "serve": "it is the server, which owns the store",
    "credential reseal": "the keys are this machine's and never travel",
    "audit verify": "a proof is made from the bytes: a server's word about itself is none",
    "audit report": "it holds the proof of the chain, which is made from the bytes",
    "audit anchor": "it is taken from the bytes that it is to be compared with",
    "clock accept": "whoever says that the time is right has looked at that machine",
    "cluster status": "it tells who owns the store, also when no server answers",
    "doctor": "it looks at the file, its disk and its machine",
}


class Invocation(Struct):
    """The options that all commands share, and the screen they print to."""

    db: str = DATABASE
    url: str | None = None  # of a server; then `db` is not looked at
    tenant: str | None = None  # None: all tenants in lists, "default" for what is made
    output: str = "text"
    said: list[str] = []  # of db and url, those that the command line names

    def aim(self, name: str, value: str, *, said: bool) -> None:
        """Take the store or the server; the command line counts more than the environment."""
        other = "db" if name == "url" else "url"
        if other in self.said:
            if said:
                raise click.UsageError("Give --db or --url, not both.")
            return
        if said:
            self.said.append(name)
            self.url = None
        setattr(self, name, value)

    def client(self) -> Client:
        """A client of the server; its key is in the environment, where no list of processes is."""
        from detent.client.client import Client  # loaded by who needs it

        return Client(self.url, tenant=self.tenant)

    def needs_file(self) -> None:
        """Refuse a server: what comes now works on the store itself, for a reason that is told."""
        if self.url is not None:
            _, _, command = click.get_current_context().command_path.partition(" ")
            why = NEEDS_FILE[command]
            raise click.UsageError(
                f"This works on the store itself, not through {self.url} ({why}): "
                "name it with --db."
            )

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
    return _with_options(command, at_top=False)


def shared_at_top(command: Command) -> Command:
    """The same for `detent` itself, where the environment is looked at too."""
    return _with_options(command, at_top=True)


def invocation(context: click.Context) -> Invocation:
    """The invocation of a command; made by whoever asks first."""
    return context.find_root().ensure_object(Invocation)


def pass_invocation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the invocation to a command as its first argument."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(invocation(click.get_current_context()), *args, **kwargs)

    return called


def _with_options(command: Command, *, at_top: bool) -> Command:
    options = (
        click.option(
            "--db",
            metavar="PATH",
            envvar="DETENT_DB" if at_top else None,
            expose_value=False,
            callback=_aim,
            help=f"The store: a file or a database's URL.  [default: $DETENT_DB, else {DATABASE}]",
        ),
        click.option(
            "--url",
            metavar="URL",
            envvar="DETENT_URL" if at_top else None,
            expose_value=False,
            callback=_aim,
            help="A server instead of a store; its key is $DETENT_API_KEY.  [default: $DETENT_URL]",
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


def _aim(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value and parameter.name:
        said = context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        invocation(context).aim(parameter.name, value, said=said)
    return value


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def remember(context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if value is not None:
            setattr(invocation(context), name, value)
        return value

    return remember
