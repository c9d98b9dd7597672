"""`detent worker`: Python handlers as an external worker of a server, in a process of their own."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import click
import uvloop
from msgspec import Struct

from detent.bootstrap.making import chance_of
from detent.cli import exits
from detent.cli.invocation import Invocation, pass_invocation
from detent.cli.shown import plural
from detent.cli.sources import load_handlers
from detent.cli.worker_shift import Shift, Tally
from detent.cli.worker_wire import Wire, client
from detent.client.client import API_KEY
from detent.handlers.declare import declaration_of
from detent.handlers.registry import Entry, Registry
from detent.model.errors import RequestError
from detent.model.limits import WORKER_CALLS

URL = "http://127.0.0.1:8080"


class Given(Struct, frozen=True, kw_only=True):
    """What the command line says, and the key that the environment holds."""

    url: str
    api_key: str
    tenant: str
    queue: str | None
    concurrency: int
    name: str
    grace: float


@click.command("worker")
@click.option(
    "--module",
    "modules",
    metavar="MODULE[:NAME]",
    multiple=True,
    required=True,
    help="A module or file with handlers, or a list of them in it; may be repeated.",
)
@click.option(
    "--url",
    envvar="DETENT_URL",
    default=URL,
    metavar="URL",
    help=f"The server; its key is $DETENT_API_KEY.  [default: $DETENT_URL, else {URL}]",
)
@click.option("--tenant", default="", metavar="NAME", help="Only tasks of this tenant.")
@click.option("--queue", metavar="NAME", help="Only tasks of this queue.  [default: any, or none]")
@click.option(
    "--concurrency",
    type=click.IntRange(1, WORKER_CALLS),
    default=10,
    metavar="N",
    help="Calls at once.  [default: 10]",
)
@click.option("--name", default="", metavar="NAME", help="The worker's id.  [default: a new one]")
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    metavar="SECONDS",
    help="How long calls may go on once it is told to stop.  [default: 30]",
)
@pass_invocation
def worker(options: Invocation, modules: tuple[str, ...], **given: Any) -> int:
    """Run handlers as an external worker: take up tasks of a server, and report how they ended.

    Ctrl-C or SIGTERM stops it: it takes up nothing more, and ends what it has begun. What is not
    done within the grace time, or by a second Ctrl-C, goes to another worker when its claim is
    over.
    """
    given["tenant"] = given["tenant"] or options.tenant or ""
    given["api_key"] = os.environ.get(API_KEY, "")
    given["name"] = given["name"] or _fresh_name()
    told = Given(**given)
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    entries = _entries([load_handlers(each) for each in modules])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tally = runner.run(_work(told, entries))
    _say(f"stopped; {_summary(tally)}")
    return exits.NO if tally.left else exits.OK


async def _work(given: Given, entries: Sequence[Entry]) -> Tally:
    stop, hurry = asyncio.Event(), asyncio.Event()
    _on_signals(stop, hurry)
    headers = {"x-api-key": given.api_key, "x-tenant-id": given.tenant}
    known = {name: value for name, value in headers.items() if value}
    chance = chance_of(None)
    # One for each poll, one for the report of each call and one for its heartbeat.
    connections = len(entries) + 2 * (given.concurrency + len(entries))
    async with client(given.url, known, connections) as http:
        wire = Wire(http, given.name, given.queue, lambda: chance(1)[0] / 255)
        shift = Shift(wire, entries, given.concurrency, given.tenant)
        _greet(given, entries)
        await shift.work(stop, hurry, given.grace)
    return shift.tally


def _on_signals(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    def told() -> None:
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)


def _entries(found: Sequence[Any]) -> list[Entry]:
    """The handlers to poll for; policies are asked by engines only."""
    registry = Registry()
    names = registry.collect(found)
    entries = [registry.get(name) for name in dict.fromkeys(names)]
    kept = [entry for entry in entries if entry is not None and _kind(entry) == "handler"]
    if not kept:
        raise RequestError(
            "handler.unknown", "there is no handler in it; put @detent.handler before a function"
        )
    return kept


def _kind(entry: Entry) -> str:
    declared = declaration_of(entry.function)
    return "" if declared is None else declared.kind


def _fresh_name() -> str:
    return f"{socket.gethostname()[:200]}-{os.getpid()}-{chance_of(None)(4).hex()}"


def _greet(given: Given, entries: Sequence[Entry]) -> None:
    names = ", ".join(entry.spec.name for entry in entries)
    queue = "" if given.queue is None else f" in queue {given.queue}"
    _say(f"{given.name} works on {names}{queue} at {given.url}")


def _summary(tally: Tally) -> str:
    parts = [f"{plural(tally.reported, 'task')} reported"]
    if tally.lost:
        parts.append(f"{tally.lost:,} given to others meanwhile")
    if tally.left:
        parts.append(f"{tally.left:,} left to others")
    return ", ".join(parts)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
