"""Everything that only reads: the views of `service`, on a connection of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from detent.bootstrap.signing import read_check, signer_of
from detent.kernel.anchor import Anchor
from detent.kernel.debug import Debugger
from detent.kernel.explain import Explanation
from detent.kernel.replay import FactChange, Replay
from detent.kernel.rerun import Changes
from detent.kernel.tree import Tree
from detent.kernel.verify import Verification
from detent.kernel.views import AuditEntry, OutputRow, Timeline
from detent.kernel.whatif import WhatIf
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.ports.store import Page, Store
from detent.service import explaining, histories, proving
from detent.service.gate_views import gated_tenants
from detent.service.in_line import calls_of
from detent.service.instances import InstanceView, Listing, list_instances, show_instance
from detent.service.migrating import preview_migration

T = TypeVar("T")


class Inspector:
    """The views of one store; `tenant` None means any, for operators."""

    def __init__(self, connect: Callable[[], Store], *, shared: bool) -> None:
        """`shared` says that the connection is somebody else's and is not closed here."""
        self._connect = connect
        self._shared = shared
        self._store: Store | None = None
        self._closed = False
        self._lock = threading.Lock()

    def look(self, use: Callable[[Store], T]) -> T:
        """Use the connection, one caller at a time."""
        with self._lock:
            if self._closed:
                raise RequestError("engine.closed", "the engine is closed; open it again")
            if self._store is None:
                self._store = self._connect()
            return use(self._store)

    def close(self) -> None:
        """Close the connection, if it is ours."""
        with self._lock:
            self._closed = True
            if self._store is not None and not self._shared:
                self._store.close()
            self._store = None

    # instances -----------------------------------------------------------------------------------

    def show(self, instance: str, *, tenant: str | None = None) -> InstanceView:
        """An instance with its context."""
        return self.look(lambda store: show_instance(store, instance, tenant))

    def instances(self, page: Page | None = None, *, tenant: str | None = None) -> Listing:
        """Instances that fit a filter."""
        return self.look(lambda store: list_instances(store, page or Page(), tenant))

    def calls(self, instances: Sequence[str], *, tenant: str | None = None) -> dict[str, int]:
        """When their gate calls those that stand in line there, as epoch milliseconds."""
        return self.look(lambda store: calls_of(store, instances, tenant))

    def tree(self, instance: str, *, tenant: str | None = None) -> Tree:
        """The execution tree."""
        return self.look(lambda store: histories.instance_tree(store, instance, tenant))

    def outputs(self, instance: str, *, tenant: str | None = None) -> list[OutputRow]:
        """Every output in the order of creation."""
        return self.look(lambda store: histories.instance_outputs(store, instance, tenant))

    def timeline(self, instance: str, *, tenant: str | None = None) -> Timeline:
        """What happened, for people."""
        return self.look(lambda store: histories.instance_timeline(store, instance, tenant))

    def audit(
        self, instance: str, *, action: str = "", node: str = "", tenant: str | None = None
    ) -> list[AuditEntry]:
        """Journal entries, by action and node where named."""
        return self.look(
            lambda store: histories.instance_audit(
                store, instance, tenant, action=action, node=node
            )
        )

    def effects(self, instance: str, *, tenant: str | None = None) -> list[Any]:
        """Every effect of an instance, open or settled."""
        return self.look(lambda store: histories.instance_effects(store, instance, tenant))

    def explain(
        self, instance: str, *, tick: int | None = None, tenant: str | None = None
    ) -> Explanation:
        """Why an instance stands still, and when it can move."""
        return self.look(lambda store: explaining.explain_instance(store, instance, tenant, tick))

    def approvals(
        self, *, tenant: str | None = None, limit: int = 100
    ) -> list[explaining.Approval]:
        """Questions that wait for a person."""
        return self.look(lambda store: explaining.approvals(store, tenant, limit=limit))

    def doubts(
        self, instance: str = "", *, tenant: str | None = None, limit: int = 100
    ) -> list[explaining.OpenCall]:
        """Effects that need reconciliation or a person."""
        return self.look(
            lambda store: explaining.doubts(store, tenant, instance=instance, limit=limit)
        )

    def gated_tenants(self, *, tenant: str | None = None) -> list[str]:
        """The tenants that have limits or pools."""
        return self.look(lambda store: gated_tenants(store, tenant))

    def preview_migration(
        self, instance: str, definition: Definition | str, *, tenant: str | None = None
    ) -> list[str]:
        """Why an instance cannot be moved to that version now; empty when it can."""
        return self.look(lambda store: preview_migration(store, instance, tenant, definition))

    # proof ---------------------------------------------------------------------------------------

    def verify(
        self,
        anchor: Anchor | None = None,
        *,
        public_key: str | Path | Sequence[str | Path] | None = None,
    ) -> Verification:
        """Check the whole chain, against an anchor and signatures where these are given.

        `public_key` is a file, or a list of them where keys were changed; each seal must then be
        signed by one of them from the first signed one on, and so must the anchor.
        """
        check = None if public_key is None else read_check(public_key)
        return self.look(lambda store: proving.verify_store(store, anchor, check))

    def anchor(self, *, key: str | Path | None = None) -> Anchor:
        """What to keep elsewhere, so that a cut tail is found; signed with a private key file."""
        signer = signer_of(key)
        return self.look(lambda store: proving.make_anchor(store, signer))

    def replay(self, instance: str, *, tenant: str | None = None) -> Replay:
        """Run an instance again from its record and compare entry by entry."""
        return self.look(lambda store: proving.replay_instance(store, instance, tenant))

    def recompute(self, instance: str, *, tenant: str | None = None) -> list[FactChange]:
        """Recorded facts that would be different today."""
        return self.look(lambda store: proving.recompute_instance(store, instance, tenant))

    def what_if(self, instance: str, changes: Changes, *, tenant: str | None = None) -> WhatIf:
        """Replay with changed inputs or another definition, and the difference it makes."""
        return self.look(lambda store: proving.what_if_instance(store, instance, tenant, changes))

    def debug(self, instance: str, *, tenant: str | None = None) -> Debugger:
        """Walk through a recorded instance row by row."""
        return self.look(lambda store: proving.debug_instance(store, instance, tenant))
