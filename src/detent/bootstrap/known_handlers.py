"""What a store remembers of handlers: their specs outlive the process that registered them.

A turn may plan a call for a handler that is not registered here: after a restart without its
module, or when a command line carries out an ask while nobody owns the store. Without its spec a
`once` handler would be planned as one that may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from detent.model.decision import ANYBODY, HandlerSpec
from detent.model.link import Control
from detent.ports.store import Store

_SETTING = "handlers"
_decode = msgspec.json.Decoder(dict[str, HandlerSpec]).decode


def known_here(specs: Mapping[str, HandlerSpec], *, workers: bool) -> dict[str, HandlerSpec]:
    """The handlers of a process; with `workers`, every other name is external workers'."""
    anybody = {ANYBODY: HandlerSpec(name=ANYBODY, worker=True)} if workers else {}
    return {**specs, **anybody}


def recall(store: Store) -> dict[str, HandlerSpec]:
    """The specs of every handler that was ever registered with this store."""
    kept = store.setting(_SETTING)
    return _decode(kept) if kept else {}


def remember(store: Store, specs: Mapping[str, HandlerSpec]) -> dict[str, HandlerSpec]:
    """Add specs to those the store remembers, the newer ones winning; all of them."""
    kept = recall(store)
    merged = {**kept, **specs}
    if merged != kept:
        store.put_setting(_SETTING, msgspec.json.encode(merged).decode())
    return merged


def registration(specs: Mapping[str, HandlerSpec]) -> Control:
    """What tells a writer about handlers."""
    return Control("register", args=msgspec.to_builtins(list(specs.values())))
