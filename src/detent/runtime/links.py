"""Links: two ways to have a writer, with one interface: in a thread, or in a process of its own.

`start` returns when the writer owns its store, or raises why it cannot. `submit` leaves items in a
queue and returns at once; whatever has gathered travels together. What turns decide is handed to
the callback, on a thread of the link. A writer that stops unasked is followed by another, unless it
had just been started again; meanwhile callers are told `store.unavailable` and no call begins. The
calls that run go on: their process and its lock on the store outlive the writer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from detent.model.errors import DetentError, RequestError, StoreError
from detent.model.limits import WRITER_MIN_LIFE_MS, WRITER_START_MS, WRITER_STOP_MS
from detent.model.link import Control, Decided, decode_decided, decode_submit
from detent.runtime.dispatch_desk import Desk, Inbox, Item
from detent.runtime.dispatch_frames import (
    FAULT,
    Outlet,
    decided_frames,
    fault_frame,
    read_fault,
    read_frames,
    submit_frames,
)
from detent.runtime.writer import run_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Run = Callable[[Any, Inbox, Callable[[Decided], None]], None]

FIRST, SUCCESSOR = "first", "successor"

_BUFFER_BYTES = 1 << 20
_IDLE_S = 3600.0
_LAST_FRAMES_S = 5.0
_log = logging.getLogger("detent.runtime")


class _Service:
    """A writer's life, whichever way it runs: started, lost, started again, closed."""

    def __init__(self, live: Callable[[], None], name: str) -> None:
        """`live` runs one writer to its end; it raises when the writer stopped unasked."""
        self.desk = Desk()
        self._live = live
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._spare = 1  # restarts left; there is one again when a writer has lived for a while
        self.closing = False

    def start(self, on_decided: Callable[[Decided], None]) -> None:
        self.desk.open(on_decided)
        self._thread.start()
        if not self._ready.wait(WRITER_START_MS / 1000):
            limit = WRITER_START_MS // 1000
            raise StoreError("store.unavailable", f"the writer did not start within {limit} s")
        if self._failure is not None:
            raise self._failure

    @property
    def owned(self) -> bool:
        """Whether a writer has owned the store: those that come now follow it."""
        return self._ready.is_set()

    def deliver(self, decided: Decided) -> None:
        self.desk.deliver(decided)
        self._ready.set()

    def close(self) -> None:
        self.closing = True
        self.desk.shut(RequestError("engine.closed", "the engine is closed; open it again"))
        if self._thread.is_alive():
            self.desk.inbox.put([Control("close")])
            self._thread.join(WRITER_STOP_MS / 1000)

    def _serve(self) -> None:
        while not (self.closing and self.owned):
            born = time.monotonic()
            try:
                self._live()
            except BaseException as error:  # noqa: BLE001 - whatever it was, callers wait
                if time.monotonic() - born > WRITER_MIN_LIFE_MS / 1000:
                    self._spare = 1
                if not self._lost(error):
                    return
            else:
                return

    def _lost(self, error: BaseException) -> bool:
        """Tell everybody; whether to start another writer."""
        if not self._ready.is_set():
            self._failure = error
            self._ready.set()
            return False
        if isinstance(error, DetentError):
            reason, trace = f"the writer stopped: {error.message}", None
        else:
            reason, trace = f"the writer stopped: {type(error).__name__}: {error}", error
        _log.error("%s", reason, exc_info=trace)
        again = bool(self._spare) and not self.closing
        self._spare = 0
        if not again:
            self.desk.shut(StoreError("store.unavailable", f"{reason}; open the engine again"))
        self.desk.lose(reason, succeeded=again)
        return again


class ThreadLink:
    """A writer in a thread of this process; items are handed over as they are."""

    def __init__(self, factory: Callable[[bool], Any], run: Run = run_writer) -> None:
        """`factory(successor)` makes a writer, on the thread that will run it."""
        self._factory = factory
        self._run = run
        self._service = _Service(self._live, "detent-writer")

    def start(self, on_decided: Callable[[Decided], None]) -> None:
        """Start the writer."""
        self._service.start(on_decided)

    def submit(self, items: Sequence[Item]) -> None:
        """Queue items for the writer's next turn."""
        self._service.desk.submit(items)

    def close(self) -> None:
        """Let the writer finish what it has, and stop it."""
        self._service.close()

    def _live(self) -> None:
        service = self._service
        self._run(self._factory(service.owned), service.desk.inbox, service.deliver)


class ProcessLink:
    """A writer in a process of its own, reached through a pair of sockets."""

    def __init__(
        self, arguments: bytes, command: Sequence[str] = (), descriptors: Sequence[int] = ()
    ) -> None:
        """`arguments` goes to the child's standard input, `descriptors` stay open in it.

        Its last two arguments say whether it is the `first` writer or a `successor`, and the number
        of its socket.
        """
        self._arguments = arguments
        self._descriptors = tuple(descriptors)
        self._command = list(command) or [sys.executable, "-m", "detent.bootstrap.writer_main"]
        self._service = _Service(self._live, "detent-link")
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The child's process id; 0 before there is one."""
        return 0 if self._child is None else self._child.pid

    def start(self, on_decided: Callable[[Decided], None]) -> None:
        """Start the writer's process."""
        try:
            self._service.start(on_decided)
        except BaseException:
            self._end_child()
            raise

    def submit(self, items: Sequence[Item]) -> None:
        """Queue items; everything queued travels in one frame."""
        self._service.desk.submit(items)

    def close(self) -> None:
        """Let the writer finish what it has, and end its process."""
        self._service.close()
        self._end_child()

    def _live(self) -> None:
        near = self._spawn()
        inbox = self._service.desk.inbox
        over = threading.Event()
        sender = threading.Thread(target=_send_all, args=(near, inbox, over), daemon=True)
        sender.start()
        try:
            self._receive(near)
        finally:
            over.set()
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)  # ends a send under way, and tells the child
            inbox.put(())  # wakes the sender
            sender.join()
            near.close()
            status = self._wait_for_child()
        if not self._service.closing:
            text = f"the writer's process ended with status {status}"
            raise StoreError("store.unavailable", text)

    def _spawn(self) -> socket.socket:
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        with far:
            number = far.fileno()
            # A session of its own: Ctrl-C in a terminal is for the parent, which closes the child.
            rank = SUCCESSOR if self._service.owned else FIRST
            child = self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*self._command, rank, str(number)],
                stdin=subprocess.PIPE,
                pass_fds=(number, *self._descriptors),
                start_new_session=True,
            )
        if child.stdin is not None:
            with contextlib.suppress(BrokenPipeError), child.stdin as stdin:
                stdin.write(self._arguments)  # if it died at once, the socket says so too
        return near

    def _receive(self, near: socket.socket) -> None:
        with near.makefile("rb") as stream:
            for kind, body in read_frames(stream):
                if kind == FAULT:
                    raise read_fault(body)
                self._service.deliver(decode_decided(body))

    def _wait_for_child(self) -> int | None:
        if self._child is None:
            return None
        try:
            return self._child.wait(WRITER_STOP_MS / 1000)
        except subprocess.TimeoutExpired:
            self._end_child()
            return self._child.returncode

    def _end_child(self) -> None:
        child = self._child
        if child is None or child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def serve_link(fd_in: int, fd_out: int, factory: Callable[[], Any], run: Run = run_writer) -> None:
    """The child's side: run a writer until it is told to close or the parent is gone."""
    near = socket.socket(fileno=fd_in)
    out = near if fd_out == fd_in else socket.socket(fileno=fd_out)
    outlet, inbox, ended = Outlet(out), Inbox(), threading.Event()
    reader = threading.Thread(target=_read_all, args=(near, inbox, ended), daemon=True)
    reader.start()

    def publish(decided: Decided) -> None:
        for data in decided_frames(decided):
            outlet.send(data)

    try:
        run(factory(), inbox, publish)
    except DetentError as error:  # the parent is told why, and tells its user
        outlet.send(fault_frame(error))
        raise SystemExit(1) from error
    except BaseException as error:
        outlet.send(fault_frame(error))
        raise
    finally:
        outlet.close(_LAST_FRAMES_S)
        ended.set()


def _send_all(near: socket.socket, inbox: Inbox, over: threading.Event) -> None:
    """The parent's sender: everything that gathered goes in one frame."""
    while not over.is_set():
        batches = inbox.get_batch(_IDLE_S)
        try:
            for batch in batches:
                for data in submit_frames(batch):
                    near.sendall(data)
        except OSError:  # the child is gone; the receiver sees it too and tells everybody
            for batch in batches:
                inbox.put(batch)  # the desk knows what of it a successor must be told
            return


def _read_all(near: socket.socket, inbox: Inbox, ended: threading.Event) -> None:
    """The child's reader: the end of the stream means that the parent is gone."""
    try:
        with near.makefile("rb") as stream:
            for _kind, body in read_frames(stream):
                inbox.put(decode_submit(body))
    except OSError:
        pass  # the same end, less politely
    inbox.put([Control("orphan")])  # after a close it means nothing
    if not ended.wait(WRITER_STOP_MS / 1000):
        os._exit(os.EX_TEMPFAIL)  # it hangs in a store that nobody waits for any more
