"""Assembling an engine: reader, registry, dispatcher, link, and how they are wired to each other.

With a wall or stepped clock the writer works behind a link (a thread or a process) and answers
through `decided`. With a virtual clock there is no link: `VirtualDriver` takes turns in the
caller's thread.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from detent.bootstrap.asking import ask_all
from detent.bootstrap.callers import Callers, Watch, raise_refusal
from detent.bootstrap.farewell import close_at_exit, dismiss
from detent.bootstrap.fresh import FreshIds
from detent.bootstrap.freshness import Renewal
from detent.bootstrap.inspector import Inspector
from detent.bootstrap.known_handlers import known_here, registration, remember
from detent.bootstrap.making import (
    Handover,
    chance_of,
    lower_switch_interval,
    make_clock,
    make_link,
    make_owner,
    open_or_create,
    seed_of,
    take_store,
)
from detent.bootstrap.own import register_own
from detent.bootstrap.owners import open_here
from detent.bootstrap.resealing import note_keys
from detent.bootstrap.settings import Settings, for_writer
from detent.bootstrap.signing import signer_of
from detent.bootstrap.stores import make_listener, open_reader
from detent.bootstrap.until import moved
from detent.bootstrap.vaults import vault_of
from detent.bootstrap.virtual import VirtualDriver
from detent.bootstrap.work import WorkRoom
from detent.handlers import Registry
from detent.handlers.webhooks import Post
from detent.model import limits
from detent.model.address import MEMORY
from detent.model.decision import HandlerSpec, Verdict
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.figures import add_counts
from detent.model.ids import timed_id
from detent.model.link import Control, Decided, Submission
from detent.ports.opening import OpenedStore
from detent.ports.waking import Listener
from detent.runtime.clock import VirtualClock, boot_time_ms, wall_time_ms
from detent.runtime.dispatch_guard import guard_reentrant
from detent.runtime.dispatcher import Dispatcher
from detent.runtime.links import ProcessLink, ThreadLink
from detent.runtime.writer import Writer
from detent.service.arguments import check_instance, unknown_instance
from detent.service.catalogue import definition_row
from detent.service.handing_out import StoredSecrets
from detent.service.starting import Moment, StartRequest, start_arrival, start_submission
from detent.service.vault import Safe

T = TypeVar("T")


class Parts:
    """What an engine is made of; used by many threads."""

    def __init__(self, settings: Settings, store: OpenedStore, directory: str = "") -> None:
        """`directory` is removed with everything in it when the engine closes."""
        self.settings = settings
        self.meta = store.meta()
        self.callers = Callers()
        self._ids = FreshIds()
        self.watch = Watch()
        self.figures: dict[str, int] = {}
        self.answering: dict[Any, list[str]] = {}  # by tenant and key of a request
        vault = vault_of(settings.vault_key, settings.vault_old_keys)
        self.safe = Safe(vault, settings.allow_internal_urls, settings.allowed_internal_hosts)
        self.renewal = Renewal(self)
        self.registry = Registry(StoredSecrets(self.read, self.safe, self.now_ms, self.renewal))
        self.work = WorkRoom(self)
        self.chance = chance_of(seed_of(settings, store) if self.meta.clock == "virtual" else None)
        self._store = store
        self._lock = threading.RLock()
        self._known: set[tuple[str, str, str]] = set()
        self._clock = make_clock(self.meta, settings)
        self._clock.resume(max((row.tick for row in store.partitions()), default=0))
        self._driver: VirtualDriver | None = None
        self._link: ThreadLink | ProcessLink | None = None
        self._dispatcher: Dispatcher | None = None
        self._wake: Listener | None = None
        self._directory = directory
        self._stopping = threading.Lock()
        self._number, self._closed, self._owner = -1, False, ""
        self._margin_ms = settings.turns.lease_margin_ms
        self.held = ""
        memory = settings.path == MEMORY
        reader = partial(open_reader, settings.path)
        self.inspector = Inspector((lambda: store) if memory else reader, shared=memory)

    # wiring --------------------------------------------------------------------------------------

    def decided(self, decided: Decided) -> None:
        """What a turn decided reaches everybody who waits for it."""
        self.held = decided.held
        if self._dispatcher is not None and self._driver is None:
            self._dispatcher.take(decided)
        add_counts(self.figures, decided.counts)  # whoever is answered finds it counted
        self.callers.answer(decided.acks)
        self.watch.moved(decided.moved)
        self.watch.called(decided.orders)
        self.work.bell.ring(decided.work)

    def submit(self, *items: Submission | Control) -> None:
        """Hand items to the writer."""
        if self._closed:
            raise closed()
        if self._driver is not None:
            self._driver.submit(items)
        elif self._link is not None:
            self._link.submit(items)

    def ask(self, make: Callable[[int], Submission]) -> Verdict:
        """Submit what is made for an acknowledgement number, and wait for the answer to it."""
        return raise_refusal(self.ask_all([make])[0])

    def ask_all(self, makes: Sequence[Callable[[int], Submission]]) -> list[Verdict]:
        """The same for many at once; a refusal is an answer like any other."""
        settle = None if self._driver is None else self._driver.settle_until
        return ask_all(self.callers, self.submit, settle, makes)

    def tell(self, submission: Submission) -> Verdict:
        """Tell from inside a handler: durable when this returns, or refused."""
        if self._driver is not None:
            self._driver.tell(submission)
            return Verdict(id=submission.id)
        ack, future = self.callers.expect()
        self.submit(msgspec.structs.replace(submission, ack=ack))
        return future.result(limits.ASK_TIMEOUT_MS / 1000)

    # time and ids --------------------------------------------------------------------------------

    def tick(self) -> int:
        """Logical now."""
        if self._closed:
            raise closed()
        if self.meta.clock == "stepped":
            return max((row.tick for row in self.read(lambda store: store.partitions())), default=0)
        return self._clock.tick() if self._driver is None else self._driver.tick()

    def moment(self) -> Moment:
        """Now, and fresh names for what starts now."""
        return Moment(
            tick=self.tick(),
            epoch_ms=self.meta.epoch_ms,
            resolution_ms=self.meta.resolution_ms,
            fresh_id=self.fresh_id(self._ids.next),
            seed=self.chance(8).hex(),
        )

    def now_ms(self) -> int:
        """Now by the wall, or in virtual time by that."""
        if self._driver is None:
            return wall_time_ms()
        return self.meta.epoch_ms + self._driver.tick() * self.meta.resolution_ms

    def fresh_id(self, make: Callable[[int, bytes], str] = timed_id) -> str:
        """A new id, ordered by time."""
        return make(self.now_ms(), self.chance(10))

    # reading and catalogue -----------------------------------------------------------------------

    def read(self, use: Callable[[OpenedStore], T]) -> T:
        """Use the reader's connection, one caller at a time."""
        with self._lock:
            if self._closed:
                raise closed()
            return use(self._store)

    write = read

    def known(self, definition: Definition, tenant: str, namespace: str) -> bool:
        """Whether this definition was checked and stored before."""
        return (definition.hash, tenant, namespace) in self._known

    def keep(self, definition: Definition, tenant: str, namespace: str) -> None:
        """Store a definition unless it was stored before."""
        if not self.known(definition, tenant, namespace):
            self.put_definition(definition, tenant, namespace)

    def put_definition(self, definition: Definition, tenant: str, namespace: str) -> None:
        """Store a definition for a tenant and namespace."""
        row = definition_row(definition, (tenant, namespace), self._clock.wall_ms())
        self.write(lambda store: store.put_definition(row))
        self._known.add((definition.hash, tenant, namespace))

    def register(self, handlers: Any) -> list[str]:
        """Register handlers and tell the writer about them."""
        names = self.registry.collect(handlers)
        self._tell_handlers()
        if self._driver is not None:
            self._driver.handlers_changed()
        elif self._dispatcher is not None:
            self._dispatcher.handlers_changed()
        return names

    def handlers(self) -> dict[str, HandlerSpec]:
        """What the kernel is told about the handlers of this process."""
        return known_here(self.registry.specs(), workers=self.settings.workers)

    def _tell_handlers(self) -> None:
        specs = self.write(lambda store: remember(store, self.handlers()))
        self.submit(registration(specs))

    # starting and waiting ------------------------------------------------------------------------

    def start_batch(self, definition: Definition, requests: Sequence[StartRequest]) -> list[str]:
        """Leave all starts in one transaction: all or none."""
        guard_reentrant("a blocking engine call")
        arrivals = []
        for request in requests:
            made = start_submission(definition, request, self.moment(), 0)
            arrivals.append(start_arrival(made, self.meta.partitions, self.chance(16)))
        tick = self.moment().tick
        self.keep(definition, requests[0].tenant, requests[0].namespace)
        self.write(lambda store: store.enqueue(arrivals, tick))
        self.submit(Control("wake"))
        return [left.instance for left in arrivals]

    def wait_for(self, instance: str, wanted: frozenset[str], timeout: float | None) -> str:
        """Wait for an instance to be in one of the states."""
        guard_reentrant("wait_for")
        check_instance(instance)
        state = self._state_of(instance)
        if state in wanted:
            return state
        future = self.watch.add(instance, lambda state: state in wanted)
        try:
            state = self._state_of(instance)  # it may have moved before anybody watched
            if state in wanted:
                return state
            if self._driver is not None:
                self._driver.run_until_idle(future.done)
                timeout = 0.0
            return moved(future, lambda: self._state_of(instance), wanted, timeout)
        except FutureTimeout:
            raise RequestError(
                "request.timeout",
                f"instance {instance} is not {' or '.join(sorted(wanted))} yet; `explain` says why",
            ) from None
        finally:
            self.watch.remove(instance, future)

    def _state_of(self, instance: str) -> str:
        row = self.read(lambda store: store.instance(instance))
        if row is None:
            raise unknown_instance(instance)
        return row.state

    def virtual(self) -> VirtualDriver:
        """The driver of virtual time."""
        guard_reentrant("moving time")
        if self._closed:
            raise closed()
        if self._driver is None:
            raise RequestError(
                "engine.running", "the engine's clock runs by itself; open it with clock='virtual'"
            )
        return self._driver

    def lease_valid(self) -> bool:
        """Whether a call may start now: while the lease is valid, with the margin."""
        until_ms = 0 if self._dispatcher is None else self._dispatcher.lease_until_ms
        return self._clock.wall_ms() < until_ms - self._margin_ms

    def parked(self) -> dict[str, int]:
        """Orders that wait for a handler, by its name."""
        if self._driver is not None:
            return self._driver.parked()
        return self._dispatcher.parked() if self._dispatcher is not None else {}

    # opening and closing -------------------------------------------------------------------------

    def open(self, handlers: Any, post: Post | None = None) -> None:
        """Start everything; what was started is closed again if something fails."""
        self._number = close_at_exit(self)
        try:
            note_keys(self._store, self.safe.vault)
            self.deltas = register_own(self, post)
            self.registry.collect(handlers)
            if self.meta.clock == "virtual":
                self._open_virtual()
            else:
                self._open_running()
            self._tell_handlers()
        except BaseException:
            with suppress(Exception):
                self.close()
            raise

    def _open_virtual(self) -> None:
        owner = make_owner(self.settings, "")
        clock = VirtualClock(self.meta.epoch_ms, self.meta.resolution_ms)
        writer = Writer(self._store, clock, self.settings.turns, owner, self.chance)
        writer.sign_with(signer_of(self.settings.seal_key))
        self._dispatcher = Dispatcher(
            self.registry, lambda _items: None, max_in_flight=self.settings.max_in_flight
        )
        self._dispatcher.start()
        hears = (self.decided, self.work)
        self._driver = VirtualDriver(writer, clock, self._dispatcher, hears, self.registry)
        self._driver.open()

    def _open_running(self) -> None:
        lower_switch_interval(self.settings.switch_interval_ms)
        self._wake = make_listener(self.settings.path, self.meta, self.work.woken)
        owner = make_owner(self.settings, self._wake.address)
        self._owner = owner.id
        handover = Handover(
            settings=for_writer(self.settings),
            owner=owner,
            handlers=self.handlers(),
            lock=take_store(self._store, self.settings, owner),
            ahead_ms=self._clock.wall_ms() - boot_time_ms(),
        )
        link = self._link = make_link(handover, self.chance)
        self._dispatcher = Dispatcher(
            self.registry,
            link.submit,
            lease_valid=self.lease_valid,
            partitions=self.meta.partitions,
            max_in_flight=self.settings.max_in_flight,
            threads=self.settings.threads or limits.POOL_THREADS,
        )
        self._dispatcher.start()
        link.start(self.decided)
        self._wake.start()
        self.work.open()

    def close(self) -> None:
        """Stop in the order in which work flows; whoever comes second waits until it is done."""
        guard_reentrant("close")
        with self._stopping:
            if self._closed:
                return
            dismiss(self._number)
            with ExitStack() as last:  # what was pushed last is done first, whatever fails
                last.callback(shutil.rmtree, self._directory, ignore_errors=True)
                last.callback(self._close_store)
                last.callback(open_here.discard, self._owner)
                last.callback(self.inspector.close)
                last.callback(self.renewal.close)
                last.callback(self.watch.fail_all, closed())
                last.callback(self.callers.fail_all, closed())
                parts = (self._link, self._driver, self._dispatcher, self._wake, self.work)
                for part in parts:
                    if part is not None:
                        last.callback(part.close)

    def _close_store(self) -> None:
        with self._lock:
            self._closed = True
            self._store.close()


def assemble(settings: Settings, handlers: Any, post: Post | None = None) -> Parts:
    """Open the store and start an engine's parts."""
    directory = ""
    if settings.path == MEMORY and settings.clock != "virtual":
        directory = tempfile.mkdtemp(prefix="detent-")
        settings = msgspec.structs.replace(settings, path=f"{directory}/detent.db")
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, directory, ignore_errors=True)
        store = open_or_create(settings)
        undo.callback(store.close)
        parts = Parts(settings, store, directory)
        undo.pop_all()
    parts.open(handlers, post)
    return parts


def closed() -> RequestError:
    """The error of every verb after close."""
    return RequestError("engine.closed", "the engine is closed; open it again")
