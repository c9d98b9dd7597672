"""`detent credential`: stored secrets, sealed again with another key."""

from __future__ import annotations

import os
import sys

import click
from msgspec import to_builtins

from detent.bootstrap.resealing import reseal_store
from detent.bootstrap.server_settings import load_settings, vault_keys
from detent.bootstrap.vaults import vault_of
from detent.cli import exits
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.screen import Cell, Screen
from detent.cli.shown import plural
from detent.model.errors import RequestError
from detent.service.resealing import Resealed


@click.group()
@shared
def credential() -> None:
    """Secrets that steps refer to, as they are stored."""


@credential.command()
@click.option("--dry-run", is_flag=True, help="Only count what an old key has sealed.")
@click.option("--config", metavar="FILE", help="Settings as TOML.  [default: detent.toml, if any]")
@shared
@pass_invocation
def reseal(options: Invocation, dry_run: bool, config: str | None) -> int:
    """Seal every stored secret with the present key, so that old ones can be taken away.

    The keys are settings of a server: DETENT_ENCRYPTION_KEY, or DETENT_ENCRYPTION_KEY_FILE, seals;
    those of DETENT_ENCRYPTION_KEYS_OLD only open. A server that runs on the store must have been
    started with them before. What is interrupted goes on when it is started again. Exit code 1 if
    a secret is damaged and opens with no key.
    """
    options.needs_file()
    key, old = vault_keys(load_settings({}, os.environ, config))
    vault = vault_of(key, old)
    if vault is None:
        raise RequestError(
            "vault.key",
            "there is no key to seal with; set DETENT_ENCRYPTION_KEY or DETENT_ENCRYPTION_KEY_FILE",
        )
    found = reseal_store(options.db, vault, dry_run=dry_run)
    shown = {"key": vault.keys[0], "dry_run": dry_run, "total": found.total, **to_builtins(found)}
    options.emit(shown, lambda screen: _show(screen, found, vault.keys[0], dry_run=dry_run))
    for each in found.damaged:
        sys.stderr.write(f"damaged: {each} opens with no key; enter it again\n")
    return exits.NO if found.damaged else exits.OK


def _show(screen: Screen, found: Resealed, key: str, *, dry_run: bool) -> None:
    counted = (
        (found.credentials, "credential"),
        (found.triggers, "trigger"),
        (found.answers, "kept answer"),
        (found.targets, "push target"),
    )
    amount = ", ".join(plural(count, what) for count, what in counted if count) or "nothing"
    if dry_run:
        screen.line(Cell("stale  ", "yellow"), f"{amount} to be sealed again with key {key}")
        return
    screen.line(Cell("done  ", "green"), f"{amount} sealed again with key {key}")
    if not found.damaged:
        screen.line(Cell("no stored secret needs an old key any more", "bright_black"))
