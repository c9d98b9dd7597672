"""`detent audit`: prove that nothing was changed, and take the proof elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
from msgspec import to_builtins

from detent.bootstrap.onlooker import Onlooker
from detent.bootstrap.report import audit_pdf
from detent.bootstrap.signing import PUBLIC_SUFFIX, read_check, signer_of, write_keys
from detent.cli import exits
from detent.cli.invocation import SEAL_KEY, Invocation, pass_invocation, shared
from detent.cli.reader import Reader, reading, reading_file
from detent.cli.screen import Cell, Screen
from detent.cli.shown import plural
from detent.cli.sources import read_file
from detent.kernel.anchor import Anchor, read_anchor
from detent.kernel.verify import Verification
from detent.model.errors import StoreError
from detent.ports.store import Page
from detent.service.histories import audit_lines, export_audit
from detent.service.proving import make_anchor, verify_store

_PAGE = 500


@click.group()
@shared
def audit() -> None:
    """Verify, export and anchor the chain."""


@audit.command()
@click.option("--anchor", metavar="FILE", help="Also prove that nothing was cut off since.")
@click.option(
    "--public-key",
    metavar="FILE",
    multiple=True,
    help="Also check signatures; give it again for every key that signed.",
)
@shared
@pass_invocation
def verify(options: Invocation, anchor: str | None, public_key: tuple[str, ...]) -> int:
    """Check every stored byte that the chain covers; exit code 1 if it is broken."""
    kept: Anchor | None = None if anchor is None else read_anchor(read_file(anchor))
    check = read_check(public_key) if public_key else None
    with reading_file(options) as reader:
        found = verify_store(reader.store, kept, check)
        options.emit(
            to_builtins(found),
            lambda screen: show_verification(screen, reader, found, anchored=kept is not None),
        )
    return exits.OK if found.valid else exits.NO


@audit.command()
@click.argument("instance_id", metavar="[ID]", required=False)
@click.option("--to", "target", metavar="FILE", help="Write to a file instead of standard output.")
@shared
@pass_invocation
def export(options: Invocation, instance_id: str | None, target: str | None) -> None:
    """Write the journal of one instance, or of all, as JSON lines."""
    with reading(options) as reader:
        ids = [instance_id] if instance_id else _every_instance(reader)
        lines = (line for each in ids for line in _lines(reader, each))
        count = _write(lines, target)
    if target is not None:
        options.emit(
            {"file": target, "lines": count},
            lambda screen: screen.line(Cell("done  ", "green"), f"{count} lines in {target}"),
        )


@audit.command()
@click.argument("instance_id", metavar="ID")
@click.option("--to", "target", metavar="FILE", required=True, help="The PDF to write.")
@shared
@pass_invocation
def report(options: Invocation, instance_id: str, target: str) -> None:
    """Write the audit of one instance as a PDF with its timeline and the chain's verification."""
    with reading_file(options) as reader:
        count = _write([audit_pdf(reader.store, instance_id, reader.tenant)], target)
    options.emit(
        {"file": target, "parts": count},
        lambda screen: screen.line(Cell("done  ", "green"), target),
    )


@audit.command()
@click.option("--to", "target", metavar="FILE", help="Write to a file instead of standard output.")
@click.option(
    "--key",
    metavar="FILE",
    envvar=SEAL_KEY,
    help=f"Sign it with this private key.  [default: ${SEAL_KEY}]",
)
@shared
@pass_invocation
def anchor(options: Invocation, target: str | None, key: str | None) -> None:
    """Write the heads of all chains; keep them where nobody can change them with the store."""
    signer = signer_of(key or None)
    with reading_file(options) as reader:
        made = make_anchor(reader.store, signer)
    body = msgspec.json.format(msgspec.json.encode(made), indent=2)
    _write([body + b"\n"], target)
    if target is not None:
        options.emit(
            {"file": target, "digest": made.digest},
            lambda screen: screen.line(Cell("done  ", "green"), f"{target}  {made.digest}"),
        )


@audit.command()
@click.argument("file")
@shared
@pass_invocation
def keygen(options: Invocation, file: str) -> None:
    """Make a key that signs seals and anchors: FILE, for its owner only, and FILE.pub."""
    name = write_keys(file).fingerprint.hex()
    public = f"{file}{PUBLIC_SUFFIX}"
    options.emit(
        {"private_key": file, "public_key": public, "fingerprint": name},
        lambda screen: screen.line(Cell("done  ", "green"), f"{file} and {public}  {name}"),
    )


def show_verification(
    screen: Screen, reader: Reader, found: Verification, *, anchored: bool = False
) -> None:
    """Print what a verification found."""
    amount = f"{plural(found.rows, 'row')}, {plural(found.turns, 'turn')}"
    amount += f", {plural(found.instances, 'instance')}, {plural(found.seals, 'seal')}"
    if found.valid:
        screen.line(Cell("valid  ", "green"), amount)
    else:
        screen.line(Cell("broken  ", "red"), amount)
    broken = found.broken
    screen.facts(
        [
            ("first", reader.at(found.first_tick)),
            ("last", reader.at(found.last_tick)),
            ("seals", _signatures(found)),
            ("anchor", _anchor_signature(found) if anchored and found.valid else ""),
            ("erased", plural(found.erased, "row") if found.erased else ""),
            ("written meanwhile", plural(found.later, "row") if found.later else ""),
            ("broken at", Cell(broken.where, "red") if broken else ""),
            ("what", broken.what if broken else ""),
            ("expected", broken.expected if broken else ""),
            ("found", broken.found if broken else ""),
        ]
    )


def _signatures(found: Verification) -> str:
    """How the seals are signed, and how much no seal covers, in words."""
    told = found.signatures
    if not found.valid or not (told.signed or told.checked):
        return ""
    left = f"{plural(found.unsealed, 'turn')} not sealed yet"
    if not told.signed:
        return f"none; {left}"
    said = f"{told.signed} of {found.seals} signed, from seal {told.since} on, by "
    said += ", ".join(told.keys)
    return f"{said}; {left}" if told.checked else f"{said}; not checked, give --public-key"


def _anchor_signature(found: Verification) -> str:
    told = found.signatures
    if not told.anchor:
        return "unsigned"
    return f"signed by {told.anchor}" + ("" if told.checked else "; not checked")


def _lines(reader: Reader, instance_id: str) -> Iterator[bytes]:
    if isinstance(reader.views, Onlooker):  # row by row, however long the journal is
        return export_audit(reader.store, instance_id, reader.tenant)
    views = reader.views.inspect
    about = views.show(instance_id, tenant=reader.tenant).summary
    return audit_lines(about, views.audit(instance_id, tenant=reader.tenant), reader.ms_of)


def _every_instance(reader: Reader) -> Iterator[str]:
    page = Page(tenant=reader.tenant or "", limit=_PAGE)
    if not isinstance(reader.views, Onlooker):
        yield from _every_one_there(reader, page)
        return
    while rows := reader.store.instances(page):
        for row in rows:
            yield row.id
        page = page._replace(after=rows[-1].n)


def _every_one_there(reader: Reader, page: Page) -> Iterator[str]:
    """A server shows the instances of its users, not the engine's own."""
    further: int | None = 0
    while further is not None:
        listing = reader.views.inspect.instances(page._replace(after=further), tenant=reader.tenant)
        yield from (each.id for each in listing.items)
        further = listing.next


def _write(lines: Iterable[bytes], target: str | None) -> int:
    count = 0
    if target is None:
        for line in lines:
            sys.stdout.write(line.decode())
            count += 1
        return count
    try:
        with Path(target).open("wb") as file:
            for line in lines:
                file.write(line)
                count += 1
    except OSError as error:
        raise StoreError("store.unavailable", f"{target} cannot be written ({error})") from error
    return count
