"""`client.inspect`: everything that only reads, as the same structs that an engine gives."""

from __future__ import annotations

from collections.abc import Sequence

from detent.client.talking import Talk
from detent.client.verb import D, Surface, T, of_instance, verb
from detent.definition import to_wire
from detent.kernel.explain import Explanation
from detent.kernel.replay import FactChange, Replay
from detent.kernel.tree import Tree
from detent.kernel.views import AuditEntry, OutputRow, Timeline
from detent.kernel.whatif import Changes, WhatIf
from detent.model import limits
from detent.model.definition import Definition
from detent.ports.store import Page
from detent.service.explaining import Approval, OpenCall
from detent.service.histories import EffectReceipt
from detent.service.instances import InstanceView, Listing


class Inspect(Surface[D]):
    """The views of one server; `tenant` None means the client's, or all for the operator."""

    @verb
    def show(self, instance: str, *, tenant: str | None = None) -> Talk[InstanceView]:
        """An instance with its context."""
        return (yield from self._view(instance, "", InstanceView, tenant))

    @verb
    def instances(self, page: Page | None = None, *, tenant: str | None = None) -> Talk[Listing]:
        """Instances that fit a filter."""
        wanted = page or Page()
        whose = (wanted.tenant or None) if tenant is None else tenant
        if wanted.tenant not in ("", whose):
            return Listing(items=(), next=None)
        return (
            yield from self._get(
                "/inspect/instances",
                Listing,
                whose,
                namespace=wanted.namespace,
                definition=wanted.definition,
                state=",".join(wanted.states),
                parent=wanted.parent,
                after=wanted.after,
                limit=wanted.limit,
            )
        )

    @verb
    def calls(self, instances: Sequence[str], *, tenant: str | None = None) -> Talk[dict[str, int]]:
        """When their gate calls those that stand in line there, as epoch milliseconds."""
        found: dict[str, int] = {}
        for start in range(0, len(instances), limits.IDS_AT_ONCE):
            ids = ",".join(instances[start : start + limits.IDS_AT_ONCE])
            found |= yield from self._get("/inspect/calls", dict[str, int], tenant, ids=ids)
        return found

    @verb
    def tree(self, instance: str, *, tenant: str | None = None) -> Talk[Tree]:
        """The execution tree."""
        return (yield from self._view(instance, "/tree", Tree, tenant))

    @verb
    def outputs(self, instance: str, *, tenant: str | None = None) -> Talk[list[OutputRow]]:
        """Every output in the order of creation."""
        return (yield from self._view(instance, "/outputs", list[OutputRow], tenant))

    @verb
    def timeline(self, instance: str, *, tenant: str | None = None) -> Talk[Timeline]:
        """What happened, for people."""
        return (yield from self._view(instance, "/timeline", Timeline, tenant))

    @verb
    def audit(
        self, instance: str, *, action: str = "", node: str = "", tenant: str | None = None
    ) -> Talk[list[AuditEntry]]:
        """Journal entries, by action and node where named."""
        path = f"/inspect{of_instance(instance, '/audit')}"
        return (yield from self._get(path, list[AuditEntry], tenant, action=action, node=node))

    @verb
    def effects(self, instance: str, *, tenant: str | None = None) -> Talk[list[EffectReceipt]]:
        """Every effect of an instance, open or settled."""
        return (yield from self._view(instance, "/effects", list[EffectReceipt], tenant))

    @verb
    def explain(
        self, instance: str, *, tick: int | None = None, tenant: str | None = None
    ) -> Talk[Explanation]:
        """Why an instance stands still, and when it can move; by default as of now."""
        path = f"/inspect{of_instance(instance, '/explain')}"
        return (yield from self._get(path, Explanation, tenant, tick=tick))

    @verb
    def approvals(self, *, tenant: str | None = None, limit: int = 100) -> Talk[list[Approval]]:
        """Questions that wait for a person."""
        return (yield from self._get("/inspect/approvals", list[Approval], tenant, limit=limit))

    @verb
    def doubts(
        self, instance: str = "", *, tenant: str | None = None, limit: int = 100
    ) -> Talk[list[OpenCall]]:
        """Effects that need reconciliation or a person."""
        return (
            yield from self._get(
                "/inspect/doubts", list[OpenCall], tenant, instance=instance, limit=limit
            )
        )

    @verb
    def gated_tenants(self, *, tenant: str | None = None) -> Talk[list[str]]:
        """The tenants that have limits or pools."""
        return (yield from self._get("/inspect/gated-tenants", list[str], tenant))

    @verb
    def preview_migration(
        self, instance: str, definition: Definition | str, *, tenant: str | None = None
    ) -> Talk[list[str]]:
        """Why an instance cannot be moved to that version now; empty when it can."""
        body = (
            {"to": definition}
            if isinstance(definition, str)
            else {"definition": to_wire(definition)}
        )
        path = f"/inspect{of_instance(instance, '/migration')}"
        return (yield from self._send("POST", path, body, list[str], tenant))

    @verb
    def replay(self, instance: str, *, tenant: str | None = None) -> Talk[Replay]:
        """Run an instance again from its record and compare entry by entry."""
        return (yield from self._view(instance, "/replay", Replay, tenant))

    @verb
    def recompute(self, instance: str, *, tenant: str | None = None) -> Talk[list[FactChange]]:
        """Recorded facts that would be different today."""
        return (yield from self._view(instance, "/recompute", list[FactChange], tenant))

    @verb
    def what_if(
        self, instance: str, changes: Changes, *, tenant: str | None = None
    ) -> Talk[WhatIf]:
        """Replay with changed inputs or another definition, and the difference it makes."""
        path = f"/inspect{of_instance(instance, '/what-if')}"
        return (yield from self._send("POST", path, changes, WhatIf, tenant))

    def _view(self, instance: str, name: str, gives: type[T], tenant: str | None) -> Talk[T]:
        return self._get(f"/inspect{of_instance(instance, name)}", gives, tenant)
