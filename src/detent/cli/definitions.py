"""`detent definition`: check, compare, store and show definitions."""

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct, to_builtins

from detent.cli import exits
from detent.cli.block_tree import definition_tree
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.screen import Cell, Screen, Table
from detent.cli.sources import (
    load_definition,
    load_definitions,
    load_module,
    named_definition,
    read_raw,
)
from detent.definition import diff as compare
from detent.definition import to_wire, unknown_fields, warnings
from detent.handlers import Registry
from detent.kernel.builtin import MOVES
from detent.model.errors import DefinitionError, Fault
from detent.service.arguments import reference
from detent.service.sequences import PAGE_MOST

TENANT = "default"


class Checked(Struct, kw_only=True):
    """One definition of one file, and what was found."""

    file: str
    valid: bool
    name: str = ""
    version: int | None = None
    hash: str = ""
    face: str = ""
    faults: list[Fault] = []
    warnings: list[str] = []


class _Everything(frozenset[str]):
    """Takes every handler for known, where nobody said which are."""

    def __contains__(self, name: object) -> bool:
        return True


@click.group()
@shared
def definition() -> None:
    """Check, compare, store and show definitions."""


@definition.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--handlers", metavar="MODULE", multiple=True, help="Know the handlers of a module.")
@shared
@pass_invocation
def validate(options: Invocation, files: tuple[str, ...], handlers: tuple[str, ...]) -> int:
    """Check definition files and list every fault at once; exit code 1 if there is one."""
    known = known_handlers(handlers)
    found = [each for file in files for each in check_file(file, known)]
    valid = all(each.valid for each in found)
    shown = {"valid": valid, "definitions": listed_checks(found)}
    options.emit(shown, lambda screen: show_checks(screen, found))
    return exits.OK if valid else exits.NO


@definition.command()
@click.argument("file", metavar="FILE|NAME[@VERSION]")
@click.option("--namespace", default="default", metavar="NAME", show_default=True)
@shared
@pass_invocation
def show(options: Invocation, file: str, namespace: str) -> None:
    """Show a definition as the engine reads it, from a file or as it is stored."""
    found = named_definition(file)
    if isinstance(found, str):
        from detent.cli.reader import reading  # checking a file needs no engine

        with reading(options) as reader:
            found = reader.views.definition(
                *reference(found), tenant=reader.tenant, namespace=namespace
            )
    shown = {"hash": found.hash, "definition": to_wire(found)}
    options.emit(shown, lambda screen: screen.tree(definition_tree(found)))


@definition.command()
@click.argument("before")
@click.argument("after")
@shared
@pass_invocation
def diff(options: Invocation, before: str, after: str) -> int:
    """Say what differs between two definitions, block by block; exit code 1 if something does."""
    old, new = load_definition(before).definition, load_definition(after).definition
    changes = compare(old, new)
    shown = {
        "same": not changes,
        "before": {"file": before, "hash": old.hash},
        "after": {"file": after, "hash": new.hash},
        "changes": [each._asdict() for each in changes],
    }
    styles = {"added": "green", "removed": "red", "changed": "yellow"}
    table = Table(
        columns=("path", "change", "before", "after"),
        rows=[
            (each.path, Cell(each.kind, styles[each.kind]), _short(each.before), _short(each.after))
            for each in changes
        ],
        empty="the definitions are the same",
    )
    options.emit(shown, lambda screen: screen.table(table))
    return exits.NO if changes else exits.OK


@definition.command()
@click.argument("file")
@click.option("--namespace", default="default", metavar="NAME", show_default=True)
@shared
@pass_invocation
def deploy(options: Invocation, file: str, namespace: str) -> None:
    """Store a definition, so that it can be started by its name; the same again changes nothing."""
    found = load_definition(file, warn=True).definition
    from detent.cli.doors import asking  # checking a file needs no engine

    with asking(options, make=True) as door:
        digest = door.deploy(found, tenant=options.tenant or TENANT, namespace=namespace)
    name = f"{found.name}@{found.version}"
    options.emit(
        {"request": "deploy", "name": found.name, "version": found.version, "hash": digest},
        lambda screen: screen.line(Cell("done  ", "green"), f"deploy {name}  {digest[:12]}"),
    )


@definition.command(name="list")
@click.option("--namespace", metavar="NAME", help="Only this namespace.  [default: all]")
@click.option("--limit", default=200, type=click.IntRange(1, PAGE_MOST), show_default=True)
@shared
@pass_invocation
def list_(options: Invocation, namespace: str | None, limit: int) -> None:
    """List stored definitions, by name and falling version."""
    from detent.cli.reader import reading  # checking a file needs no engine

    with reading(options) as reader:
        found = reader.views.definitions(tenant=reader.tenant, namespace=namespace, limit=limit)
    kept = ("id", "tenant_id", "namespace", "name", "version", "status", "deprecated", "created_at")
    rows = [{name: each[name] for name in kept} for each in found]
    table = Table(
        columns=("definition", "tenant", "status", "id"),
        rows=[
            (
                f"{each['name']}@{each['version']}",
                f"{each['tenant_id']} / {each['namespace']}",
                Cell("deprecated", "yellow") if each["deprecated"] else str(each["status"]),
                str(each["id"]),
            )
            for each in rows
        ],
        whole=("definition", "id"),
        empty="no definitions; store one with `detent definition deploy FILE`",
    )
    options.emit({"definitions": rows}, lambda screen: screen.table(table))


def known_handlers(handlers: tuple[str, ...]) -> frozenset[str]:
    """The handlers of these modules and of the kernel; all that can be, where none is named."""
    if not handlers:
        return _Everything()
    registry = Registry()
    for each in handlers:
        registry.collect(load_module(each))
    return frozenset([*registry.specs(), *MOVES])


def check_file(file: str, known: frozenset[str]) -> list[Checked]:
    """What is found in the definitions of a file."""
    try:
        found = load_definitions(file)
        raw = read_raw(file)
    except DefinitionError as error:
        return [Checked(file=file, valid=False, faults=error.faults)]
    if not found:
        missing = Fault("$", "definition.missing", "the file holds no definition; assign one")
        return [Checked(file=file, valid=False, faults=[missing])]
    return [
        Checked(
            file=file,
            valid=True,
            name=each.name,
            version=each.version,
            hash=each.hash,
            face=each.body.face,
            warnings=[*(unknown_fields(raw) if raw is not None else ()), *warnings(each, known)],
        )
        for each in found
    ]


def listed_checks(found: list[Checked]) -> list[dict[str, Any]]:
    """What was found, as data."""
    return [_listed(each) for each in found]


def _listed(checked: Checked) -> dict[str, Any]:
    shown: dict[str, Any] = to_builtins(checked)
    del shown["face"]
    shown["faults"] = [fault._asdict() for fault in checked.faults]
    return shown


def show_checks(screen: Screen, found: list[Checked]) -> None:
    """Print what was found, file by file."""
    for each in found:
        if each.valid:
            about = f"{each.name} version {each.version}  {each.hash[:12]}"
            screen.line(Cell("valid    ", "green"), f"{each.file}  ", Cell(about, "bright_black"))
        else:
            count = f"{len(each.faults)} fault{'s' if len(each.faults) > 1 else ''}"
            screen.line(Cell("invalid  ", "red"), f"{each.file}  ", Cell(count, "bright_black"))
        for warning in each.warnings:
            screen.line(Cell("  warning  ", "yellow"), warning)
        if each.faults:
            screen.line()
            screen.table(
                Table(
                    columns=("path", "code", "what is wrong"),
                    rows=[(f.path, Cell(f.code, "red"), f.message) for f in each.faults],
                )
            )
            screen.line()


def _short(value: Any) -> str:
    import msgspec

    if value is None:
        return ""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"  # noqa: PLR2004 - fits beside a path
