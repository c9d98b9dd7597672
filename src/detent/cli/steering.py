"""Requests to the owner of a store: `detent instance start`, `signal`, `pause` and the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from detent.bootstrap.engine import Engine
from detent.bootstrap.visitor import Visitor
from detent.cli import exits
from detent.cli.doors import HOST, Door, asking, named_for_people
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.palette import colour
from detent.cli.reader import reading
from detent.cli.screen import Cell, Screen
from detent.cli.sources import json_value, named_definition
from detent.service.sending import Verb

if TYPE_CHECKING:
    from detent.client.client import Client


@contextmanager
def door_to(options: Invocation, instance_id: str) -> Iterator[Door]:
    """Whoever can carry a request out, once the instance is known to be this tenant's."""
    check_known(options, instance_id)
    with asking(options) as door:
        yield door


def check_known(options: Invocation, instance_id: str) -> None:
    """Refuse an instance that is not there, or another tenant's."""
    with reading(options) as reader:
        reader.views.inspect.show(instance_id, tenant=reader.tenant)


def carried_out_here(door: Door) -> bool:
    """Whether nobody owned the store, so that handlers will not run now."""
    return isinstance(door, Engine)


def _asking(verb: Verb, sentence: str) -> click.Command:
    @click.command(name=verb, help=sentence)
    @click.argument("instance_id", metavar="ID")
    @shared
    @pass_invocation
    def ask(options: Invocation, instance_id: str) -> None:
        with door_to(options, instance_id) as door:
            verdict = door.command(instance_id, verb)
            state = verdict.result["state"] if isinstance(verdict.result, dict) else ""
            _answer(options, door, instance_id, verb, {"state": state})

    return ask


pause = _asking("pause", "Pause an instance; in a wait the pause is held until the wait ends.")
resume = _asking("resume", "Go on from a pause, or withdraw one that is held.")
cancel = _asking("cancel", "Cancel an instance; protected parts and clean-up run first.")
retry = _asking("retry", "Go on from the failed nodes of a failed instance.")


@click.command()
@click.argument("definition", metavar="FILE|NAME[@VERSION]")
@click.option("--data", metavar="JSON", help="The data of the instance: JSON, or @file.")
@click.option("--key", metavar="TEXT", help="Started twice with one key, it is started once.")
@click.option("--namespace", default="default", metavar="NAME", show_default=True)
@shared
@pass_invocation
def start(options: Invocation, definition: str, data: str | None, **given: Any) -> None:
    """Start an instance, and leave it to the engine that runs on the store."""
    value = None if data is None else json_value(data, "--data")
    target = named_definition(definition)
    with named_for_people(), _leaving(options) as door:
        made = door.start(target, value, tenant=options.tenant or "default", **given)
        owned = door.owned()

    def show(screen: Screen) -> None:
        screen.line(Cell("done  ", "green"), "start ", Cell(made, "bold"))
        if not owned:
            screen.line(Cell(f"nobody runs this store: {HOST} does", "bright_black"))

    options.emit({"instance": made, "request": "start", "owner": owned}, show)


@click.command()
@click.argument("instance_id", metavar="ID")
@click.argument("name")
@click.argument("payload", required=False)
@click.option(
    "--id", "told_id", metavar="ID", help="The signal's own id: sent twice, it counts once."
)
@shared
@pass_invocation
def signal(
    options: Invocation, instance_id: str, name: str, payload: str | None, told_id: str | None
) -> None:
    """Send a signal, with a payload as JSON or @file."""
    value = None if payload is None else json_value(payload, "the payload")
    with door_to(options, instance_id) as door:
        told = door.signal(instance_id, name, value, id=told_id)
        _answer(options, door, instance_id, f"signal {name}", {"signal": told})


@click.command()
@click.argument("instance_id", metavar="ID")
@click.option("--at", "seq", type=click.IntRange(1), help="After this row of the journal.")
@click.option("--before", metavar="NODE", help="Before this node was first entered.")
@click.option("--data", metavar="JSON", help="Merged into the copied data; JSON or @file.")
@click.option("--dry-run", is_flag=True, help="Handlers are told not to act.")
@shared
@pass_invocation
def fork(options: Invocation, instance_id: str, *, data: str | None, **place: Any) -> None:
    """Start a new instance from the record of another; no effect is repeated."""
    seq, before = place["seq"], place["before"]
    if (seq is None) == (before is None):
        raise click.UsageError("Say where to fork: --at ROW or --before NODE.")
    changed = None if data is None else json_value(data, "--data")
    check_known(options, instance_id)
    with _leaving(options) as door:
        made = door.fork(
            instance_id, seq=seq or 0, before=before or "", data=changed, dry_run=place["dry_run"]
        )
    with asking(options) as host:
        _answer(options, host, instance_id, "fork", {"fork": made})


@click.command()
@click.argument("instance_id", metavar="ID")
@click.option("--to", metavar="FILE|NAME", help="A definition file, or a stored name[@version].")
@click.option("--undo", is_flag=True, help="Take the last move back.")
@click.option("--preview", is_flag=True, help="Only say whether it can be moved (exit code 1: no).")
@shared
@pass_invocation
def migrate(
    options: Invocation, instance_id: str, to: str | None, undo: bool, preview: bool
) -> int | None:
    """Move a standing instance to another version of its definition."""
    if (to is None) != undo or (preview and undo):
        raise click.UsageError("Say where to: --to FILE|NAME, or --undo.")
    if preview and to is not None:
        return _preview(options, instance_id, to)
    check_known(options, instance_id)  # before anything is stored for its tenant
    with _migrating(options, instance_id, to) as door:
        _answer(options, door, instance_id, "migrate", {"to": to, "undo": undo})
    return None


@contextmanager
def _leaving(options: Invocation) -> Iterator[Visitor | Client]:
    """Who leaves a start for whoever works on it: an engine of this process would not stay."""
    with options.client() if options.url is not None else Visitor(options.db) as door:
        yield door


@contextmanager
def _migrating(options: Invocation, instance_id: str, to: str | None) -> Iterator[Door]:
    """Whoever has moved an instance to another version, or taken its last move back."""
    if to is None:
        with asking(options) as door:
            door.migrate(instance_id, undo=True)
            yield door
        return
    target: Any = named_definition(to)
    if options.url is None:  # handlers count that were ever registered: a visitor knows them
        with named_for_people(), Visitor(options.db) as visitor:
            digest = visitor.target(instance_id, target)
    with asking(options) as door:
        if options.url is None:
            door.command(instance_id, "migrate", {"to": digest})
        else:
            door.migrate(instance_id, target)
        yield door


def _preview(options: Invocation, instance_id: str, to: str) -> int:
    with reading(options) as reader:
        problems = reader.views.inspect.preview_migration(
            instance_id, named_definition(to), tenant=reader.tenant
        )

    def show(screen: Any) -> None:
        for each in problems or ["it can be moved"]:
            screen.line(each)

    shown = {"instance": instance_id, "to": to, "possible": not problems, "problems": problems}
    options.emit(shown, show)
    return exits.NO if problems else exits.OK


def _answer(
    options: Invocation, door: Door, instance_id: str, verb: str, more: dict[str, Any]
) -> None:
    here = carried_out_here(door)
    shown = {"instance": instance_id, "request": verb, **more, "owner": not here}

    def show(screen: Any) -> None:
        state = more.get("state", "")
        then = [Cell(f"  {state}", colour(state))] if state else []
        made = [Cell(f"  {more['fork']}", "bold")] if "fork" in more else []
        screen.line(Cell("done  ", "green"), f"{verb} {instance_id}", *made, *then)
        if verb == "pause" and state not in ("", "paused"):
            screen.line(Cell("the pause is held until the wait ends", "bright_black"))
        if here:
            note = "nobody runs this store: handlers are called when an engine is started on it"
            screen.line(Cell(note, "bright_black"))

    options.emit(shown, show)


COMMANDS = (start, signal, pause, resume, cancel, retry, fork, migrate)
