"""The vault's key changed: every secret of a store sealed again, beside whoever owns the store.

An owner leaves the names of its keys in the store. Who does not have the new key could open nothing
that is sealed with it, so nothing is sealed again until it has been started with that key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from detent.bootstrap.owners import living_owner
from detent.model.errors import StoreError
from detent.runtime.clock import wall_time_ms
from detent.service.resealing import Resealed, reseal, stale_secrets
from detent.store.sqlite import open_store

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.vault import Vault

_SETTING = "vault.keys"


def note_keys(store: Store, vault: Vault | None) -> None:
    """Leave the names of an owner's keys in its store; nothing of a key is in its name."""
    names = "" if vault is None else ",".join(vault.keys)
    if (store.setting(_SETTING) or "") != names:
        store.put_setting(_SETTING, names)


def reseal_store(path: str | Path, vault: Vault, *, dry_run: bool = False) -> Resealed:
    """Seal every secret of a store with the vault's first key; with `dry_run` only count them."""
    store = open_store(path, create=None)
    try:
        _check_owner(store, vault)
        return (stale_secrets if dry_run else reseal)(store, vault, wall_time_ms())
    finally:
        store.close()


def _check_owner(store: Store, vault: Vault) -> None:
    owner, present = living_owner(store), vault.keys[0]
    if owner is None or present in (store.setting(_SETTING) or "").split(","):
        return
    raise StoreError(
        "vault.locked",
        f"process {owner.pid} on {owner.host} owns the store and does not have key {present} yet; "
        "start it again with the new key and the old one behind it, then seal",
        key=present,
    )
