"""`detent effect`: effects in doubt, and what a person decides about them."""

from __future__ import annotations

from typing import Any

import click
from msgspec import to_builtins

from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.palette import colour
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import one_line
from detent.cli.sources import json_value
from detent.cli.steering import door_to
from detent.model.errors import RequestError
from detent.service.explaining import OpenCall

_LIMIT = 10_000
KEY_CHARS = 4  # fewer could name an effect that nobody meant


@click.group()
@shared
def effect() -> None:
    """Effects in doubt, and what a person decides."""


@effect.command(name="list")
@click.option("--instance", default="", metavar="ID", help="Every open effect of one instance.")
@click.option("--limit", default=100, type=click.IntRange(1, _LIMIT), show_default=True)
@shared
@pass_invocation
def list_(options: Invocation, instance: str, limit: int) -> None:
    """List effects in doubt, the oldest first."""
    with reading(options) as reader:
        found = reader.views.inspect.doubts(instance, tenant=reader.tenant, limit=limit)
        shown = {"effects": [_listed(reader, each) for each in found]}
        options.emit(shown, lambda screen: _show(screen, reader, found))


@effect.command()
@click.argument("key")
@click.option("--happened", metavar="JSON", help="It did happen, with this result (JSON or @file).")
@click.option("--failed", is_flag=True, help="It did not happen; retry or failure follows.")
@click.option("--skip", is_flag=True, help="Leave it undecided and pass the step over.")
@click.option("--again", is_flag=True, help="Try to find out, or call, once more.")
@shared
@pass_invocation
def resolve(options: Invocation, key: str, happened: str | None, **chosen: bool) -> None:
    """Decide an indeterminate effect, named by its key or the beginning of it."""
    actions = [name for name, given in chosen.items() if given]
    if happened is not None:
        actions.append("happened")
    if len(actions) != 1:
        raise click.UsageError("Choose one of --happened JSON, --failed, --skip and --again.")
    result = None if happened is None else json_value(happened, "--happened")
    if len(key) < KEY_CHARS:
        raise click.UsageError(f"Give at least {KEY_CHARS} characters of the effect's key.")
    with reading(options) as reader:
        call = _find(reader, key)
    with door_to(options, call.instance) as door:
        door.resolve(call.instance, call.effect, actions[0], result)
    shown = {"effect": call.effect, "instance": call.instance, "action": actions[0]}
    options.emit(
        shown,
        lambda screen: screen.line(
            Cell("done  ", "green"), f"{actions[0]}: {call.handler} of {call.node}, {call.instance}"
        ),
    )


def _find(reader: Reader, key: str) -> OpenCall:
    found = [
        each
        for each in reader.views.inspect.doubts(tenant=reader.tenant, limit=_LIMIT)
        if each.effect.startswith(key)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise RequestError(
            "request.invalid", f"{len(found)} effects in doubt begin with {key!r}; give more of it"
        )
    raise RequestError(
        "effect.not_found", f"no effect in doubt begins with {key!r}; see `detent effect list`"
    )


def _listed(reader: Reader, call: OpenCall) -> dict[str, Any]:
    shown: dict[str, Any] = to_builtins(call)
    shown["since_at"], shown["due_at"] = reader.iso(call.since), reader.iso(call.due)
    return shown


def _show(screen: Screen, reader: Reader, found: list[OpenCall]) -> None:
    screen.table(
        Table(
            columns=("effect", "state", "handler", "node", "instance", "since", "reason"),
            rows=[
                (
                    each.effect,
                    Cell(each.state, colour(each.state)),
                    each.handler,
                    each.node,
                    each.instance,
                    reader.ago(reader.ms_of(each.since)),
                    one_line(each.reason, 60),
                )
                for each in found
            ],
            empty="no effect is in doubt",
        )
    )
    waiting = [each for each in found if each.resolutions]
    if waiting:
        screen.line()
        hint = f"decide with: detent effect resolve {waiting[0].effect[:8]} --happened '{{…}}'"
        screen.line(Cell(f"{hint} | --failed | --skip | --again", "bright_black"))
