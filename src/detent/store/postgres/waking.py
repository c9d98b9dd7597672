"""Waking each other by LISTEN and NOTIFY: one channel per store, heard on a connection of its own.

A notification is sent behind the COMMIT of what it tells of, as a transaction of its own in the
same round trip: inside, it would hold a lock over the whole database until the commit is on disk.
"""

from __future__ import annotations

import logging
import os
import threading
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from detent.model.errors import DetentError
from detent.ports.waking import Topic, Wake
from detent.store.postgres.connecting import connector, read_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from detent.store.postgres.statements import Statement

_NOTIFY = "SELECT pg_notify($1, $2)"
_BYTES = 7_900  # PostgreSQL takes 8,000
_TOPICS = 20
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 100, 5_000
_log = logging.getLogger("detent.store")
_decode = msgspec.json.Decoder(Wake).decode


def channel_of(store_id: str) -> str:
    """The channel of a store; names of channels have 63 bytes at most."""
    return f"detent_{store_id}"[:63]


class Waker:
    """Makes the statements that wake others."""

    __slots__ = ("_channel",)

    def __init__(self, store_id: str) -> None:
        self._channel = channel_of(store_id)

    def arrivals(self, partitions: Sequence[int]) -> list[Statement]:
        """Tell the writers of these partitions to look at their arrivals."""
        wanted = tuple(sorted(set(partitions)))
        return [self._statement(Wake(partitions=wanted))] if wanted else []

    def work(self, topics: Sequence[Topic]) -> list[Statement]:
        """Tell those who wait for work of these topics."""
        parts = (tuple(topics[at : at + _TOPICS]) for at in range(0, len(topics), _TOPICS))
        return [self._statement(Wake(work=part)) for part in parts]

    def _statement(self, wake: Wake) -> Statement:
        told = msgspec.json.encode(wake)
        if len(told) > _BYTES:
            told = msgspec.json.encode(Wake(missed=True))
        return _NOTIFY, [self._channel, told.decode()]


class PostgresListener:
    """Calls back when a notification comes; one that cannot listen says so once, and is silent."""

    address = ""  # everybody hears the channel

    def __init__(self, url: str, store_id: str, woken: Callable[[Wake], None]) -> None:
        self._connect = connector(read_address(url), read_only=True)
        self._channel = channel_of(store_id)
        self._woken = woken
        self._closing, self._close = os.pipe()
        self._thread = threading.Thread(target=self._run, name="detent-listen", daemon=True)
        self.listening = threading.Event()

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening; twice is as good as once."""
        if self._close < 0:
            return
        os.write(self._close, b"x")
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._close)
        os.close(self._closing)
        self._close = -1

    def _run(self) -> None:
        pause_ms = _FIRST_PAUSE_MS
        while True:
            try:
                with self._connect() as connection:
                    connection.execute(f'LISTEN "{self._channel}"')
                    pause_ms = _FIRST_PAUSE_MS
                    self._woken(Wake(missed=True))
                    self.listening.set()
                    if self._hear(connection):
                        return
            except (DetentError, psycopg.Error) as error:
                if isinstance(error, psycopg.NotSupportedError):
                    _log.warning("no wake-ups by LISTEN (%s); the store is polled", error)
                    return
                _log.info("listening was interrupted: %s", error)
            self.listening.clear()
            if self._asked_to_close(pause_ms):
                return
            pause_ms = min(pause_ms * 2, _LONGEST_PAUSE_MS)

    def _hear(self, connection: psycopg.Connection[Any]) -> bool:
        """Hand on what comes until told to close; False when the connection was lost."""
        looked = poll()
        looked.register(connection.fileno(), POLLIN)
        looked.register(self._closing, POLLIN)
        while True:
            ready = [number for number, _ in looked.poll()]
            if self._closing in ready:
                return True
            for wake in _pending(connection):
                self._woken(wake)

    def _asked_to_close(self, timeout_ms: int) -> bool:
        looked = poll()
        looked.register(self._closing, POLLIN)
        return bool(looked.poll(timeout_ms))


def _pending(connection: psycopg.Connection[Any]) -> Iterator[Wake]:
    for told in connection.notifies(timeout=0):
        try:
            yield _decode(told.payload.encode())
        except msgspec.MsgspecError:
            yield Wake(missed=True)  # of another release
