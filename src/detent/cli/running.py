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
from detent.cli.hosting import host, until_stopped
from detent.cli.invocation import DATABASE, Invocation, pass_invocation, shared, write_json
from detent.cli.palette import colour
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen
from detent.cli.shown import one_line, plural
from detent.cli.sources import Source, json_value, load_definition, load_module
from detent.cli.watching import Watch, follow, mark, one_tree
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.model import limits
from detent.model.address import shown_address
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
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--handlers", metavar="MODULE", multiple=True, help="A module or file with handlers.")
@click.option("--data", metavar="JSON", help="The data of each instance: JSON, or @file.")
@click.option(
    "--count",
    type=click.IntRange(0),
    metavar="N",
    help="How many.  [default: 1; with --forever 0]",
)
@click.option("--forever", is_flag=True, help="Work until stopped: host what is in the store.")
@click.option(
    "--virtual", is_flag=True, help=f"In virtual time: waits take none. [{VIRTUAL_DATABASE}]"
)
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop watching after so long.")
@shared
@pass_invocation
def run(options: Invocation, file: str | None, **given: Any) -> int:
    """Start instances of a definition (YAML, JSON or Python) and watch them to their end.

    With --count 0 nothing is started: the engine works until all that is in the store has ended.
    With --forever it works on, for schedules, signals and starts from elsewhere, until Ctrl-C or
    SIGTERM; the definition of FILE is stored then, so that it can be started by its name.

    Stopping loses nothing; the next run goes on where this one stood.
    """
    options.needs_file()
    _check(file, given)
    source = None if file is None else load_definition(file, warn=True)
    data = None if given["data"] is None else json_value(given["data"], "--data")
    handlers = [load_module(each) for each in given["handlers"]]
    if source is not None and source.module is not None:
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
        plan = _Plan(
            source=source,
            data=data,
            count=_count(given),
            timeout=given["timeout"],
            forever=given["forever"],
        )
        ran = _run(options, engine, reader, plan)
        if not options.json:
            _show(options.screen(), reader, ran, shown_address(options.db))
    if options.json:
        write_json(ran)
    if ran.interrupted:
        return exits.INTERRUPTED
    if given["forever"]:
        return exits.OK
    return exits.OK if ran.well else exits.NO


class _Plan(Struct, frozen=True, kw_only=True):
    """What a run is to do."""

    source: Source | None
    data: Any
    count: int
    timeout: float | None
    forever: bool

    @property
    def name(self) -> str:
        """The definition with its version."""
        definition = self.source.definition if self.source is not None else None
        return "" if definition is None else f"{definition.name}@{definition.version}"


def _check(file: str | None, given: dict[str, Any]) -> None:
    if given["forever"] and given["virtual"]:
        raise click.UsageError("Virtual time does not pass by itself: leave one of them out.")
    if file is None and (not given["forever"] or given["count"] or given["data"] is not None):
        raise click.UsageError("Name the FILE of a definition, or say --forever alone.")


def _count(given: dict[str, Any]) -> int:
    count: int | None = given["count"]
    return (0 if given["forever"] else 1) if count is None else count


def _run(options: Invocation, engine: Engine, reader: Reader, plan: _Plan) -> Ran:
    before = mark(reader)
    tenant = options.tenant or "default"
    if plan.forever and plan.source is not None:
        engine.deploy(plan.source.definition, tenant=tenant)
    ids = [] if plan.source is None else _start(engine, plan.source, plan.data, plan.count, tenant)
    if not plan.count and not plan.forever:
        ids = _unfinished(reader)
    watched = None if plan.forever else ids
    about = "" if watched is None else plural(len(ids), "instance")
    title = "   ".join(filter(None, (plan.name, about, shown_address(options.db))))
    watch = Watch(reader, watched, title, before)
    interrupted = _follow(options, engine, watch, plan)
    seconds = watch.seconds
    watch.counts()
    states = Counter(row.state for row in map(reader.store.instance, ids) if row is not None)
    return Ran(
        definition=plan.name,
        instances=ids,
        states=dict(sorted(states.items())),
        steps=watch.steps,
        seconds=round(seconds, 3),
        interrupted=interrupted,
    )


def _follow(options: Invocation, engine: Engine, watch: Watch, plan: _Plan) -> bool:
    """Watch until the end of the run; whether it was interrupted before."""
    until = None if plan.timeout is None else time.monotonic() + plan.timeout
    try:
        if plan.forever:
            with until_stopped() as stop:
                host(None if options.json else options.screen(), watch, stop, until)
        elif watch.store.meta().clock == "virtual":
            engine.run_until_idle()
        elif options.json:
            _wait(watch, until)
        else:
            follow(options.screen(), watch, until)
    except KeyboardInterrupt:
        return True
    return False


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
    told: list[Cell | str] = [Cell(ran.definition or path, "bold"), "  "]
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
