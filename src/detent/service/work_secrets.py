"""Secrets of external workers: handed out with the claim, and hidden in whatever comes back.

A task is kept and shown with references to credentials. Its worker gets the values, since it is the
one who makes the call. What it sends back is searched for the values it was given and for those
that the references stand for now: a credential may be changed while the task is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from detent.handlers.secrets import hide, refers
from detent.model import limits
from detent.model.errors import DetentError, RequestError
from detent.service import work
from detent.service.handing_out import resolve_params
from detent.service.work import Holder, Polled, PollRequest

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.ports.work import WorkRow
    from detent.service.vault import Safe
    from detent.service.work_views import Task

_decode = msgspec.json.Decoder().decode


class WorkSecrets:
    """What the tasks of one process were given; used by one thread at a time."""

    def __init__(self, safe: Safe, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the wall's, by which credentials expire."""
        self._safe = safe
        self._now_ms = now_ms
        self._given: dict[str, tuple[str, ...]] = {}

    def poll(
        self, store: Store, request: PollRequest, now_ms: int, stale_ms: int
    ) -> tuple[Polled, bool]:
        """Claim tasks with their secrets in them, and whether some failed for want of one."""
        failed = False
        while True:
            polled = work.poll(store, request, now_ms, stale_ms)
            opened = [self.opened(store, task, now_ms) for task in polled.tasks]
            usable = tuple(task for task in opened if task is not None)
            failed = failed or len(usable) < len(opened)
            if usable or not opened:
                return replace(polled, tasks=usable), failed

    def hide(self, store: Store, row: WorkRow, value: Any) -> Any:
        """What a worker sent back, without the secrets of its task."""
        given = self._given.get(row.id, ())
        if not given and not refers(Raw(row.params)):
            return value
        try:
            plain = msgspec.to_builtins(value)
        except TypeError:  # no JSON: refused where it is encoded
            return value
        return hide(plain, (*given, *self._present(store, row)))

    def forget(self, task: str) -> None:
        """A task has ended."""
        self._given.pop(task, None)

    def opened(self, store: Store, task: Task, now_ms: int) -> Task | None:
        """A claimed task with its secrets; one that cannot have them fails here and now."""
        try:
            found = resolve_params(store, self._safe, task.tenant, task.params, self._now_ms())
        except DetentError as error:
            holder = Holder(task=task.id, worker=task.worker or "", epoch=task.claim_epoch)
            # No such secret is final; a vault in trouble, or a token to be refreshed, is not.
            final = isinstance(error, RequestError) and not error.details.get("again")
            work.fail(store, holder, error.message, now_ms, retryable=not final)
            return None
        if not found.secrets:
            return task
        self._keep(task.id, found.secrets)
        return replace(task, params=found.params)

    def _keep(self, task: str, secrets: tuple[str, ...]) -> None:
        earlier = self._given.pop(task, ())
        self._given[task] = tuple(dict.fromkeys((*earlier, *secrets)))
        if len(self._given) > limits.WORK_SECRETS_KEPT:
            del self._given[next(iter(self._given))]

    def _present(self, store: Store, row: WorkRow) -> tuple[str, ...]:
        params = _decode(row.params)
        try:
            now_ms = self._now_ms()
            return resolve_params(store, self._safe, row.tenant, params, now_ms).secrets
        except DetentError:  # it was removed or has expired: what was given is all that is known
            return ()
