"""Frames between the writer's process and the rest: a kind, a length, and one batched message."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from detent.model.errors import CODES, DetentError, RequestError, StoreError
from detent.model.limits import FRAME_BYTES
from detent.model.link import Decided, Submit, encode_decided, encode_submit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

MESSAGE: Final = 0
FAULT: Final = 1  # the writer could not start, or stopped: code, message, details

_HEAD = struct.Struct(">BI")


def frame(kind: int, body: bytes) -> bytes:
    """One frame."""
    return _HEAD.pack(kind, len(body)) + body


def read_frames(stream: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Every frame until the other side is gone; one that is cut off does not count."""
    while len(head := _read(stream, _HEAD.size)) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        body = _read(stream, size)
        if len(body) < size:
            return
        yield kind, body


def _read(stream: BufferedReader, size: int) -> bytes:
    try:
        return stream.read(size)
    except ConnectionError:
        return b""  # killed with frames unread: the same end


def submit_frames(batch: Submit, limit: int = FRAME_BYTES) -> Iterator[bytes]:
    """A batch in frames of about the limit; controls come last, so that nothing follows a close."""
    piece, size = Submit(marks=batch.marks), 0
    for told in batch.inputs:
        piece.inputs.append(told)
        size += len(told.body)
        if size >= limit:
            yield frame(MESSAGE, encode_submit(piece))
            piece, size = Submit(), 0
    piece.control.extend(batch.control)
    if piece.inputs or piece.marks or piece.control:
        yield frame(MESSAGE, encode_submit(piece))


def decided_frames(decided: Decided, limit: int = FRAME_BYTES) -> Iterator[bytes]:
    """A turn's results in frames of about the limit; all but the last hold orders only."""
    first = size = 0
    orders = decided.orders
    for index, order in enumerate(orders):
        size += memoryview(order.request).nbytes + memoryview(order.data).nbytes
        if size >= limit:
            piece = Decided(
                orders=orders[first : index + 1],
                held=decided.held,
                lease_until_ms=decided.lease_until_ms,
            )
            yield frame(MESSAGE, encode_decided(piece))
            first, size = index + 1, 0
    rest = decided if not first else msgspec.structs.replace(decided, orders=orders[first:])
    yield frame(MESSAGE, encode_decided(rest))


def fault_frame(error: BaseException) -> bytes:
    """Why a writer stopped, for the process that started it."""
    if isinstance(error, DetentError):
        plain: list[Any] = [error.code, error.message, error.details]
    else:
        plain = ["store.unavailable", f"the writer stopped: {type(error).__name__}: {error}", {}]
    return frame(FAULT, msgspec.json.encode(plain, enc_hook=repr))


def read_fault(body: bytes) -> DetentError:
    """The error a writer sent, to be raised here."""
    code, message, details = msgspec.json.decode(body, type=tuple[str, str, dict[str, Any]])
    known = code if code in CODES else "store.unavailable"
    kind = StoreError if known.partition(".")[0] in ("store", "clock") else RequestError
    return kind(known, message, **details)


class Outlet:
    """Sends frames without ever holding up its caller, who is the writer between two commits.

    A frame usually fits the socket's buffer and is sent at once. When the reader is slow, what is
    left goes to a thread, and so does all that follows until it has caught up.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._backlog: deque[bytes | memoryview] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._gone = False

    def send(self, data: bytes) -> None:
        """Send a frame now or soon; dropped when nobody reads any more."""
        with self._changed:
            if self._gone:
                return
            rest: bytes | memoryview = data
            if not self._backlog:
                rest = self._send_some(data)
            if rest:
                self._backlog.append(rest)
                self._changed.notify_all()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._catch_up, daemon=True)
                    self._thread.start()

    def close(self, timeout: float) -> None:
        """Wait until everything is sent."""
        with self._changed:
            self._changed.wait_for(lambda: self._gone or not self._backlog, timeout)

    def _send_some(self, data: bytes) -> memoryview:
        try:
            sent = self._socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._gone = True
            sent = len(data)
        return memoryview(data)[sent:]

    def _catch_up(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._backlog)
                data = self._backlog[0]
            try:
                self._socket.sendall(data)
            except OSError:
                self._gone = True
            with self._changed:
                self._backlog.popleft()  # only now: until then what follows must queue behind it
                self._changed.notify_all()
                if self._gone:
                    return
