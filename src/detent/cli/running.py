"""`detent run`: start instances of a definition, work on them, and show how they go."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from typing import Any

import click
from msgspec import Struct

from detent.bootstrap.engine import Engine
from detent.cli import exits
from detent.cli.invocation import DATABASE, Invocation, pass_invocation, shared, write_json
from detent.cli.palette import colour
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen
from detent.cli.shown import one_line, plural
from detent.cli.sources import Source, json_value, load_definition, load_module
from detent.cli.watching import Watch, follow, mark, one_tree
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.ports.store import Page
from detent.service.instances import show_instance

VIRTUAL_DATABASE = "detent-virtual.db"
_FAILURES_SHOWN = 5
_TREES_SHOWN = 2


class Ran(Struct, kw_only=True):
    """How a run went."""

    definition: str
    instances: list[str]
    states: dict[str, int]
    steps: int
    seconds: float
    interrupted: bool = False

    @property
    def well(self) -> bool:
        """Whether every instance completed."""
        return set(self.states) <= {"completed"}


@click.command()
@click.argument("file")
@click.option("--handlers", metavar="MODULE", multiple=True, help="A module or file with handlers.")
@click.option("--data", metavar="JSON", help="The data of each instance: JSON, or @file.")
@click.option("--count", default=1, type=click.IntRange(0), show_default=True, help="How many.")
@click.option(
    "--virtual", is_flag=True, help=f"In virtual time: waits take none. [{VIRTUAL_DATABASE}]"
)
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop watching after so long.")
@shared
@pass_invocation
def run(options: Invocation, file: str, **given: Any) -> int:
    """Start instances of a definition (YAML, JSON or Python) and watch them to their end.

    With --count 0 nothing is started: the engine works on what is in the store. Stopping with
    Ctrl-C loses nothing; the next run goes on where this one stood.
    """
    source = load_definition(file)
    data = None if given["data"] is None else json_value(given["data"], "--data")
    handlers = [load_module(each) for each in given["handlers"]]
    if source.module is not None:
        handlers.append(source.module)
    if given["virtual"] and options.db == DATABASE:
        options.db = VIRTUAL_DATABASE
    settings: dict[str, Any] = {"seal_key": options.seal_key}
    if given["virtual"]:
        settings["clock"] = "virtual"
    with ExitStack() as stack:
        if options.json:  # what handlers print must not get into the document
            stack.enter_context(redirect_stdout(sys.stderr))
        engine = stack.enter_context(Engine(options.db, handlers=handlers, **settings))
        reader = stack.enter_context(reading(options))
        ran = _run(options, engine, reader, source, (data, given["count"], given["timeout"]))
        if not options.json:
            _show(options.screen(), reader, ran, options.db)
    if options.json:
        write_json(ran)
    if ran.interrupted:
        return exits.INTERRUPTED
    return exits.OK if ran.well else exits.NO


def _run(
    options: Invocation,
    engine: Engine,
    reader: Reader,
    source: Source,
    given: tuple[Any, int, float | None],
) -> Ran:
    data, count, timeout = given
    definition = source.definition
    name = f"{definition.name}@{definition.version}"
    before = mark(reader)
    ids = _start(engine, source, data, count, options.tenant or "default")
    if not count:
        ids = _unfinished(reader)
    title = f"{name}   {plural(len(ids), 'instance')}   {options.db}"
    watch = Watch(reader, ids, title, before)
    screen = options.screen()
    until = None if timeout is None else time.monotonic() + timeout
    interrupted = False
    try:
        if reader.store.meta().clock == "virtual":
            engine.run_until_idle()
        elif options.json:
            _wait(watch, until)
        else:
            follow(screen, watch, until)
    except KeyboardInterrupt:
        interrupted = True
    seconds = watch.seconds
    watch.counts()
    states = Counter(row.state for row in map(reader.store.instance, ids) if row is not None)
    return Ran(
        definition=name,
        instances=ids,
        states=dict(sorted(states.items())),
        steps=watch.steps,
        seconds=round(seconds, 3),
        interrupted=interrupted,
    )


def _start(engine: Engine, source: Source, data: Any, count: int, tenant: str) -> list[str]:
    ids: list[str] = []
    try:
        while len(ids) < count:
            some = min(count - len(ids), limits.BATCH_STARTS)
            ids += engine.start_many(source.definition, [data] * some, tenant=tenant)
    except RequestError as error:
        if error.code != "handler.unknown":
            raise
        names = ", ".join(error.details["handlers"])
        raise RequestError(
            "handler.unknown",
            f"no handler is registered for {names}; name their module or file with --handlers",
        ) from None
    return ids


def _unfinished(reader: Reader) -> list[str]:
    unfinished = tuple(state for state in INSTANCE if state not in TERMINAL)
    page = Page(tenant=reader.tenant or "", without=SYSTEM, states=unfinished, limit=1_000)
    found: list[str] = []
    while rows := reader.store.instances(page):
        found += [row.id for row in rows]
        page = page._replace(after=rows[-1].n)
    return found


def _wait(watch: Watch, until: float | None) -> None:
    while not watch.finished() and (until is None or time.monotonic() < until):
        time.sleep(0.05)


def _show(screen: Screen, reader: Reader, ran: Ran, path: str) -> None:
    rate = ran.steps / max(ran.seconds, 0.001)
    told: list[Cell | str] = [Cell(ran.definition, "bold"), "  "]
    for state, count in ran.states.items():
        told.append(Cell(f"{count:,} {state}  ", colour(state)))
    about = f"{plural(ran.steps, 'step')} in {ran.seconds:.2f} s"
    if ran.steps > 100:  # noqa: PLR2004 - a rate says nothing about a handful
        about += f", {rate:,.0f} a second"
    screen.line(*told, Cell(about, "bright_black"))
    for instance_id in ran.instances[:_TREES_SHOWN]:
        screen.line()
        screen.tree(one_tree(reader, instance_id, wide=screen.wide))
    _show_failures(screen, reader, ran.instances)
    _show_hints(screen, reader, ran, path)


def _show_failures(screen: Screen, reader: Reader, ids: Sequence[str]) -> None:
    shown = 0
    for instance_id in ids:
        row = reader.store.instance(instance_id)
        if row is None or row.state != "failed":
            continue
        error = show_instance(reader.store, instance_id, None).error
        message = error.get("message", "") if isinstance(error, dict) else one_line(error)
        screen.line()
        screen.line(Cell("failed  ", "red"), f"{instance_id}  {message}")
        shown += 1
        if shown == _FAILURES_SHOWN:
            return


def _show_hints(screen: Screen, reader: Reader, ran: Ran, path: str) -> None:
    if not ran.instances:
        return
    rows = (reader.store.instance(each) for each in ran.instances)
    standing = next((row.id for row in rows if row and row.state not in TERMINAL), None)
    db = "" if path == DATABASE else f" --db {path}"
    screen.line()
    if standing is not None:
        screen.line(Cell(f"why it stands: detent instance explain {standing}{db}", "bright_black"))
    first = ran.instances[0]
    screen.line(Cell(f"what happened: detent instance timeline {first}{db}", "bright_black"))
