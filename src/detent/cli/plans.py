"""`detent plan`: check plans, draw them, and tell how one would go for a contact."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from detent.cli import exits, values
from detent.cli.definitions import Checked, check_file, known_handlers, listed_checks, show_checks
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.plan_drawing import draw
from detent.cli.plan_svg import picture
from detent.cli.plan_tale import tell
from detent.cli.plan_words import about
from detent.cli.sources import json_value, load_definition
from detent.cli.values import WrongValue
from detent.definition.durations import to_duration
from detent.model.errors import Fault, StoreError
from detent.model.plan import EVENTS, OUTCOMES
from detent.runtime.clock import wall_time_ms
from detent.service.plan_ways import plan_steps
from detent.service.plans import check_plan

if TYPE_CHECKING:
    from detent.bootstrap.plan_preview import Told

_EVENT = re.compile(r"(?P<after>[0-9a-z]+):(?P<kind>[a-z]+):(?P<step>[^=]+)(?:=(?P<outcome>\w+))?")


@click.group()
@shared
def plan() -> None:
    """Check plans, and see them before they run."""


@plan.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--handlers", metavar="MODULE", multiple=True, help="Know the handlers of a module.")
@shared
@pass_invocation
def validate(options: Invocation, files: tuple[str, ...], handlers: tuple[str, ...]) -> int:
    """Check plans and list every fault at once, with its place; exit code 1 if there is one."""
    known = known_handlers(handlers)
    found = [_as_plan(each) for file in files for each in check_file(file, known)]
    valid = all(each.valid for each in found)
    shown = {"valid": valid, "definitions": listed_checks(found)}
    options.emit(shown, lambda screen: show_checks(screen, found))
    return exits.OK if valid else exits.NO


@plan.command()
@click.argument("file")
@click.option("--contact", metavar="JSON|@FILE", help="For whom: id, email, timezone, attributes.")
@click.option("--variables", metavar="JSON|@FILE", help="What the run is given.")
@click.option("--event", "events", metavar="SPAN:EVENT:STEP[=OUTCOME]", multiple=True)
@click.option("--from", "start", type=values.moment, metavar="DATE", help="When it starts; now.")
@click.option("--days", default=400, type=click.IntRange(1, 3660), show_default=True)
@click.option("--svg", metavar="FILE", help="Write the picture to a file.")
@shared
@pass_invocation
def preview(options: Invocation, file: str, **given: Any) -> int:
    """Draw the plan of a FILE, and tell day by day how it would go for one contact.

    It is run in virtual time, and nobody is written to or called. --event assumes what happens
    meanwhile: `--event 2d:replied:hello` is a reply to the step hello two days after the start,
    `--event 4d:called:ring=voicemail` the outcome of a call.
    """
    from detent.bootstrap.plan_preview import SAMPLE, Assumed, preview_plan

    found = load_definition(file, warn=True).definition
    check_plan(found)
    contact = SAMPLE if given["contact"] is None else json_value(given["contact"], "--contact")
    variables = {} if given["variables"] is None else json_value(given["variables"], "--variables")
    start_ms = wall_time_ms() if given["start"] is None else _start(given["start"])
    events = [_told(each) for each in given["events"]]
    told = preview_plan(found, Assumed(contact, variables, start_ms, events, given["days"]))
    if given["svg"]:
        _write(given["svg"], picture(found))
    zone = told.run.contact.get("timezone", "UTC")
    shown = {
        "plan": {"name": found.name, "version": found.version, "hash": found.hash},
        "steps": [_step(each) for each in plan_steps(found)],
        "run": to_builtins(told.run),
        "story": to_builtins(told.story),
        "svg": given["svg"],
    }

    def show(screen: Any) -> None:
        draw(screen, found)
        tell(screen, told, zone)
        if given["svg"]:
            screen.line()
            screen.line(f"the picture is in {given['svg']}")

    options.emit(shown, show)
    return exits.OK


def _write(target: str, text: str) -> None:
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError("store.unavailable", f"{target} cannot be written ({error})") from error


def _as_plan(checked: Checked) -> Checked:
    """A definition that is no plan is at fault here."""
    if checked.valid and checked.face != "plan":
        checked.valid = False
        message = "expected a plan, found a sequence; `detent definition validate` checks that"
        checked.faults = [Fault("$", "definition.face", message)]
    return checked


def _told(text: str) -> Told:
    from detent.bootstrap.plan_preview import Told

    match = _EVENT.fullmatch(text)
    after = to_duration(match["after"]) if match is not None else None
    if match is None or match["kind"] not in EVENTS or not isinstance(after, int):
        said = f"expected SPAN:EVENT:STEP, such as 2d:replied:hello, of {', '.join(EVENTS)}"
        raise WrongValue(f"{said}; got {text!r}", "request.invalid", "--event")
    outcome = match["outcome"] or ""
    if (match["kind"] == "called") != bool(outcome) or (outcome and outcome not in OUTCOMES):
        said = f"expected called with =OUTCOME, one of {', '.join(OUTCOMES)}, and no other event so"
        raise WrongValue(f"{said}; got {text!r}", "request.invalid", "--event")
    return Told(after, match["kind"], match["step"], outcome)


def _start(given: Any) -> int:
    instant = given if isinstance(given, dt.datetime) else dt.datetime.combine(given, dt.time())
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)
    return int(aware.timestamp() * 1000)


def _step(step: Any) -> dict[str, Any]:
    ways = [{"to": to, "when": when or None} for when, to in step.ways]
    return {"id": step.id, "type": step.kind, "about": about(step), "ways": ways}
