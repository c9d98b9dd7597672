"""`engine.work`: the door external workers go through, and who looks after their claims.

With a clock that runs, a thread sleeps until the first lease of a claimed task is over; it is
started by the first claim. In virtual time the driver asks `due_tick` and calls `reap`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from detent.model import limits
from detent.model.errors import DetentError
from detent.model.link import Control
from detent.ports.work import WorkEvent, WorkQuery
from detent.service import work, work_views
from detent.service.bell import WorkBell
from detent.service.work import Holder, Polled, PollRequest
from detent.service.work_secrets import WorkSecrets
from detent.service.work_views import Task, WorkerView, WorkStats

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.ports.store import Store
    from detent.ports.waking import Wake

_log = logging.getLogger("detent.bootstrap")


class WorkRoom:
    """What an engine has for workers: the bell, the reaper, and how both reach the store."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.bell = WorkBell()
        self.secrets = WorkSecrets(parts.safe, parts.now_ms)
        self._reaper = Reaper(self._reap_and_wait)
        self._known_due: int | None = None  # virtual time: the first lease, so far as is known
        self._looked = False

    @property
    def stale_ms(self) -> int:
        """How long a claim lives without a heartbeat."""
        return self._parts.settings.work_stale_ms

    def now_ms(self) -> int:
        """Logical now, by which claims and leases are counted."""
        meta = self._parts.meta
        return meta.epoch_ms + self._parts.tick() * meta.resolution_ms

    def poll(self, request: PollRequest) -> Polled:
        """Claim tasks, with their secrets; whoever looks after claims hears of it."""
        now_ms, stale_ms = self.now_ms(), self.stale_ms
        polled, failed = self._parts.write(
            lambda store: self.secrets.poll(store, request, now_ms, stale_ms)
        )
        self.bell.ring(polled.reclaimed)
        if polled.tasks:
            self.claimed()
        if failed or polled.left:
            self.told()
        return polled

    def heartbeat(self, holder: Holder, checkpoint: Any, seq: int | None) -> int:
        """Keep a claim; with a checkpoint, `seq` is the number of the one it replaces."""
        now_ms = self.now_ms()

        def beat(store: Store) -> int:
            kept = checkpoint if checkpoint is None else self._hidden(store, holder, checkpoint)
            return work.heartbeat(store, holder, now_ms, kept, seq, self.stale_ms)

        number = self._parts.write(beat)
        self.claimed()
        return number

    def complete(self, holder: Holder, output: Any, logs: Sequence[Any] = ()) -> None:
        """Report a task as done."""
        now_ms = self.now_ms()

        def settle(store: Store) -> None:
            told, lines = self._hidden(store, holder, [output, logs])
            work.complete(store, holder, told, now_ms, lines)

        self._report(holder, settle)

    def fail(
        self, holder: Holder, message: str, *, retryable: bool, logs: Sequence[Any] = ()
    ) -> None:
        """Report a task as failed."""
        now_ms = self.now_ms()

        def settle(store: Store) -> None:
            told, lines = self._hidden(store, holder, [message, logs])
            work.fail(store, holder, told, now_ms, retryable, lines)

        self._report(holder, settle)

    def _report(self, holder: Holder, settle: Callable[[Store], None]) -> None:
        self._parts.write(settle)
        self.secrets.forget(holder.task)
        self.told()

    def _hidden(self, store: Store, holder: Holder, value: Any) -> Any:
        row = work_views.find_task(store, holder.task, holder.tenant)
        return self.secrets.hide(store, row, value)

    def claimed(self) -> None:
        """There are new claims, whoever made them."""
        self._looked = False
        if self._parts.meta.clock != "virtual":
            self._reaper.nudge()

    def told(self) -> None:
        """A report was left for an instance: the writer looks at its arrivals."""
        self._looked = False
        self._parts.submit(Control("wake"))

    def woken(self, wake: Wake) -> None:
        """Another process left something: arrivals for the writer, or work for those who wait."""
        if wake.partitions or wake.missed:
            where = None if wake.missed else list(wake.partitions)
            self._parts.submit(Control("wake", args=where))
        self.bell.ring(wake.work)
        if wake.missed:
            self.bell.rouse()

    def reap(self) -> int | None:
        """Deal with claims whose lease is over; when the next one is, if there is one."""
        now_ms = self.now_ms()
        reaped = self._parts.write(lambda store: work.reap(store, now_ms))
        self.bell.ring(reaped.reclaimed)
        if reaped.left:
            self.told()
        self._looked, self._known_due = True, reaped.next_ms
        return reaped.next_ms

    def due_tick(self) -> int | None:
        """Virtual time: the tick at which a lease is over."""
        if not self._looked:
            self._known_due = self._parts.read(lambda store: store.work.next_lease())
            self._looked = True
        meta = self._parts.meta
        if self._known_due is None:
            return None
        return -(-(self._known_due - meta.epoch_ms) // meta.resolution_ms)

    def open(self) -> None:
        """Look after claims that an earlier process gave out."""
        if self._parts.read(lambda store: store.work.next_lease()) is not None:
            self._reaper.nudge()

    def close(self) -> None:
        """Stop looking after claims."""
        self._reaper.close()

    def _reap_and_wait(self) -> float | None:
        next_ms = self.reap()
        return None if next_ms is None else (next_ms - self.now_ms()) / 1000


class Reaper:
    """A thread that reaps when the first lease is over, and sleeps until then."""

    def __init__(self, reap: Callable[[], float | None]) -> None:
        """`reap` gives the seconds until there is something to do again, None when there is not."""
        self._reap = reap
        self._changed = threading.Condition()
        self._nudged = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def nudge(self) -> None:
        """There may be an earlier lease than the one it sleeps for."""
        with self._changed:
            self._nudged = True
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._serve, name="detent-reaper")
                self._thread.daemon = True
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Stop; a reaping that has begun is finished."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(limits.CLOSE_GRACE_MS / 1000)

    def _serve(self) -> None:
        seconds: float | None = 0.0
        while True:
            with self._changed:
                if not self._nudged and not self._closed:
                    self._changed.wait(seconds)
                self._nudged = False
                if self._closed:
                    return
            try:
                seconds = self._reap()
            except DetentError as error:
                _log.warning("claims of workers could not be looked at: %s", error)
                seconds = limits.LEASE_RETRY_MS / 1000
            # Never in a hurry: a lease that ends in the same tick is found by the next look.
            seconds = None if seconds is None else max(seconds, limits.REAPER_PAUSE_MS / 1000)


class Work:
    """Tasks for external workers: poll, heartbeat, complete, fail, and what there is to see."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._room = parts.work

    @property
    def bell(self) -> WorkBell:
        """Rings when there is new work, for whoever waits on an event loop."""
        return self._room.bell

    def poll(
        self,
        handler: str,
        worker: str,
        *,
        limit: int = 1,
        queue: str | None = None,
        version: str | None = None,
        tenant: str | None = None,
    ) -> Sequence[Task]:
        """Claim up to `limit` tasks of a handler, the oldest first."""
        request = PollRequest(
            handler=handler,
            worker=worker,
            limit=limit,
            queue=queue,
            version=version,
            tenant=tenant,
        )
        return self._room.poll(request).tasks

    def heartbeat(
        self,
        task: str,
        worker: str,
        epoch: int,
        *,
        checkpoint: Any = None,
        seq: int | None = None,
        tenant: str | None = None,
    ) -> int:
        """Keep a claim; with a checkpoint, `seq` is the number of the one it replaces."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        return self._room.heartbeat(held, checkpoint, seq)

    def complete(
        self,
        task: str,
        worker: str,
        epoch: int,
        output: Any = None,
        *,
        logs: Sequence[Any] = (),
        tenant: str | None = None,
    ) -> None:
        """Report a task as done."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        self._room.complete(held, output, logs)

    def fail(
        self,
        task: str,
        worker: str,
        epoch: int,
        message: str,
        *,
        retryable: bool = False,
        tenant: str | None = None,
    ) -> None:
        """Report a task as failed."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        self._room.fail(held, message, retryable=retryable)

    def show(self, task: str, *, tenant: str | None = None) -> Task:
        """One task."""
        return self._parts.read(lambda store: work_views.show_task(store, task, tenant))

    def list(self, query: WorkQuery | None = None) -> Sequence[Task]:
        """Tasks that pass a filter, the newest first."""
        chosen = query or WorkQuery()
        return self._parts.read(lambda store: work_views.list_tasks(store, chosen))

    def stats(self, *, tenant: str | None = None) -> WorkStats:
        """How many tasks are in which state, and who holds some."""
        return self._parts.read(lambda store: work_views.work_stats(store, tenant))

    def attempts(
        self, task: str, *, tenant: str | None = None, limit: int = 100
    ) -> Sequence[WorkEvent]:
        """What became of a task, the oldest first."""
        return self._parts.read(lambda store: work_views.task_attempts(store, task, tenant, limit))

    def workers(
        self, *, tenant: str | None = None, include_stale: bool = False
    ) -> Sequence[WorkerView]:
        """Who polls for work."""
        now_ms = self._room.now_ms()
        return self._parts.read(
            lambda store: work_views.list_workers(
                store, tenant, now_ms, include_stale=include_stale
            )
        )
