"""The program: its groups of commands, loaded when they are named, and how errors leave it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from detent.cli import exits
from detent.cli.invocation import Invocation, shared_at_top, write_json
from detent.cli.screen import clean
from detent.model.errors import DetentError

# name -> (module, attribute, one line for the overview)
COMMANDS = {
    "demo": ("demo", "demo", "Show the engine at work, in a temporary directory."),
    "init": ("project", "init", "Write a small project to begin with."),
    "run": ("running", "run", "Start instances of a definition and watch them."),
    "serve": ("serving", "serve_command", "Serve the REST API on a store."),
    "worker": ("working", "worker", "Run handlers as an external worker of a server."),
    "definition": ("definitions", "definition", "Check, compare, store and show definitions."),
    "plan": ("plans", "plan", "Check plans, and see them before they run."),
    "instance": ("instances", "instance", "Look at instances, and steer them."),
    "effect": ("effects", "effect", "Effects in doubt, and what a person decides."),
    "limit": ("limits", "limit", "Set how often something may be done."),
    "pool": ("pools", "pool", "Share work between mailboxes, keys or numbers."),
    "cron": ("crons", "cron", "Start instances at the times of a schedule."),
    "calendar": ("calendars", "calendar", "Draw when windows are open, and list fires."),
    "credential": ("credentials", "credential", "Seal stored secrets with another key."),
    "audit": ("audits", "audit", "Verify, export and anchor the chain."),
    "clock": ("clocks", "clock", "Accept a jump of the clock."),
    "cluster": ("clusters", "cluster", "See which processes own a store."),
    "doctor": ("doctor", "doctor", "Look for what is wrong with a store."),
}

_ABSENT = "`detent run FILE` or `detent limit set KEY` makes one, --db names another"
_KEY_SEEN = (
    "an API key is read from the environment only, as every process of this machine sees a "
    "command line; set DETENT_API_KEY and leave --api-key out"
)
_WAYS_OUT = {"store.owned": "`detent instance start FILE` starts an instance through it"}

EPILOG = "\b\nExit codes:\n" + "\n".join(
    f"  {code:>2}  {meaning}" for code, meaning in exits.MEANINGS.items()
)


class Program(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _line = COMMANDS[cmd_name]
        found: click.Command = getattr(import_module(f"detent.cli.{module}"), attribute)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; one that is nearly right is suggested, though none is loaded yet."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the overview without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=Program, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="detent", prog_name="detent")
@shared_at_top
def program() -> None:
    """Detent: a durable, deterministic execution engine.

    Decide purely, commit once, act afterwards. Begin with `detent demo`, then `detent init`.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every way out of it is an exit code and at most one sentence."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = Invocation()
    try:
        code = program.main(given, prog_name="detent", standalone_mode=False, obj=options)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return exits.PIPE_CLOSED
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("interrupted\n")
        return exits.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever it is, a person gets a sentence
        return _explain(error, options)
    return code if isinstance(code, int) else exits.OK


def _explain(error: Exception, options: Invocation) -> int:
    if os.environ.get("DETENT_DEBUG") == "1" and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error)
    code, name, message = _told(error)
    if options.json:
        write_json({"error": {"code": name, "message": message}})
    sys.stderr.write(f"error: {clean(message)} [{name}]\n")
    return code


def _told(error: Exception) -> tuple[int, str, str]:
    """Exit code, stable code and sentence of an error."""
    if isinstance(error, click.NoSuchOption) and error.option_name == "--api-key":
        return exits.USAGE, "usage", _KEY_SEEN
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "detent"
        sentence = error.format_message().rstrip(".")
        return exits.USAGE, getattr(error, "code", "usage"), f"{sentence}; see `{where} --help`"
    if isinstance(error, click.ClickException):
        return exits.USAGE, "usage", error.format_message()
    if isinstance(error, DetentError):
        return exits.exit_code(error), error.code, _with_way_out(error)
    text = f"{type(error).__name__}: {error}"
    hint = "this is a fault of Detent; run again with DETENT_DEBUG=1 and report the traceback"
    return exits.BUG, "bug", f"{text}; {hint}"


def _with_way_out(error: DetentError) -> str:
    """The sentence of an error, with the command that helps where there is one."""
    absent = error.details.get("absent")
    command = _ABSENT if absent else _WAYS_OUT.get(error.code)
    return f"{error.message}; {command}" if command else error.message


def _drop_output() -> None:
    """Whoever read the output is gone; nothing may complain about that at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
