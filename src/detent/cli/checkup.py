"""The findings of a check-up: each is ok, warn or fail, with a sentence and what to do."""

from __future__ import annotations

import platform
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from detent.bootstrap.owners import living_owner
from detent.cli.reader import Reader
from detent.cli.shown import plural
from detent.cli.times import relative, span
from detent.model import limits
from detent.model.address import is_file, shown_address
from detent.model.snapshot import decode_snapshot
from detent.ports.store import Store
from detent.runtime.clock import wall_time_ms

MEBIBYTE = 1024 * 1024
WAL_WARN_BYTES = 256 * MEBIBYTE
DISK_WARN_BYTES = 1024 * MEBIBYTE
DISK_FAIL_BYTES = 100 * MEBIBYTE
PARKED_AFTER_MS = 60_000
BACKWARDS_WARN_MS = 2_000
_BUSY_PAGE = 500
_BUSY_MOST = 5_000

Level = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    level: Level
    name: str
    said: str
    todo: str = ""


def machine_findings(address: str) -> Iterator[Finding]:
    """What can be said without opening the store."""
    import apsw

    from detent import __version__

    versions = f"detent {__version__}, Python {platform.python_version()}"
    yield Finding(
        level="ok", name="versions", said=f"{versions}, SQLite {apsw.sqlite_lib_version()}"
    )
    if is_file(address):
        yield _disk(Path(address))


def store_findings(reader: Reader, address: str, *, quick: bool) -> Iterator[Finding]:
    """What an open store tells."""
    store = reader.store
    meta = store.meta()
    about = f"schema {meta.schema}, {meta.clock} clock, {meta.resolution_ms} ms a tick"
    said = f"{shown_address(address)}: {about}, {meta.partitions} partitions"
    yield Finding(level="ok", name="store", said=said)
    yield _owner(store)
    yield _lease(store)
    yield _clock(store)
    yield _wal(address) if is_file(address) else _server(store)
    if not quick:
        yield _integrity(store)
    yield _arrivals(store)
    yield _doubts(store)
    yield _parked(reader)


def _disk(path: Path) -> Finding:
    place = path.resolve().parent
    if not place.is_dir():
        return Finding(
            level="fail", name="disk", said=f"there is no directory {place}", todo="make it"
        )
    free = shutil.disk_usage(place).free
    said = f"{free // MEBIBYTE:,} MiB free at {place}"
    if free >= DISK_WARN_BYTES:
        return Finding(level="ok", name="disk", said=said)
    level: Level = "fail" if free < DISK_FAIL_BYTES else "warn"
    return Finding(
        level=level, name="disk", said=said, todo="make room; a full disk holds the engine"
    )


def _owner(store: Store) -> Finding:
    owner = living_owner(store)
    if owner is not None:
        here = " (this machine)" if owner.host == socket.gethostname() else ""
        said = f"process {owner.pid} on {owner.host}{here} runs it"
        return Finding(level="ok", name="owner", said=said)
    gone = [each for each in store.owners() if each.lease_until_ms > wall_time_ms()]
    if gone:
        said = f"process {gone[0].pid} died without closing the store"
        return Finding(
            level="warn", name="owner", said=said, todo="start an engine; it recovers by itself"
        )
    todo = "start an engine with your handlers; nothing moves until then" if _open(store) else ""
    return Finding(level="warn" if todo else "ok", name="owner", said="nobody runs it", todo=todo)


def _lease(store: Store) -> Finding:
    held = [row for row in store.partitions() if row.owner]
    if not held:
        return Finding(level="ok", name="lease", said="free")
    now_ms = wall_time_ms()
    ends = min(row.lease_until_ms for row in held)
    said = f"{plural(len(held), 'partition')} held, the first lease ends {relative(ends, now_ms)}"
    if ends > now_ms:
        return Finding(level="ok", name="lease", said=said)
    todo = "the owner is stuck or dead; an engine started now takes over"
    return Finding(level="warn", name="lease", said=said, todo=todo)


def _clock(store: Store) -> Finding:
    meta = store.meta()
    if meta.clock != "wall":
        return Finding(level="ok", name="clock", said=f"{meta.clock}: it does not follow the wall")
    last = max((row.tick for row in store.partitions()), default=0)
    ahead = wall_time_ms() - (meta.epoch_ms + last * meta.resolution_ms)
    if ahead < -BACKWARDS_WARN_MS:
        said = f"the wall clock is {span(-ahead)} before the last turn; ticks stand still"
        return Finding(level="warn", name="clock", said=said, todo="check the machine's time")
    said = f"the last turn was {span(max(0, ahead))} ago"
    if ahead > limits.MAX_CLOCK_JUMP_MS and last:
        todo = "if the time is right, run `detent clock accept`"
        return Finding(level="warn", name="clock", said=f"{said}; an engine will hold", todo=todo)
    return Finding(level="ok", name="clock", said=said)


def _wal(path: str) -> Finding:
    file = Path(f"{path}-wal")
    size = file.stat().st_size if file.exists() else 0
    said = f"{size / MEBIBYTE:.1f} MiB of log not yet in the file"
    if size <= WAL_WARN_BYTES:
        return Finding(level="ok", name="log", said=said)
    todo = "a reader may keep it from shrinking; close long-lived readers"
    return Finding(level="warn", name="log", said=said, todo=todo)


def _server(store: Store) -> Finding:
    figures = store.statistics()
    said = f"{figures['server']}, {figures['bytes'] / MEBIBYTE:,.1f} MiB in tables and indexes"
    if figures["durable"]:
        return Finding(level="ok", name="server", said=said)
    todo = "set fsync and full_page_writes to on; a power cut may lose what was committed"
    return Finding(level="warn", name="server", said=f"{said}; it does not sync", todo=todo)


def _integrity(store: Store) -> Finding:
    problems = store.check()
    if not problems:
        return Finding(level="ok", name="integrity", said="the database finds nothing wrong")
    said = f"{plural(len(problems), 'problem')}, the first: {problems[0]}"
    todo = "stop the engine and restore a backup"
    return Finding(level="fail", name="integrity", said=said, todo=todo)


def _arrivals(store: Store) -> Finding:
    count = store.statistics().get("arrivals_waiting", 0)
    said = f"{plural(count, 'input')} waiting to be taken in"
    if count and living_owner(store) is None:
        return Finding(level="warn", name="inbox", said=said, todo="start an engine")
    return Finding(level="ok", name="inbox", said=said)


def _doubts(store: Store) -> Finding:
    count = store.statistics().get("doubts", 0)
    if not count:
        return Finding(level="ok", name="effects", said="none is in doubt")
    said = f"{plural(count, 'effect')} in doubt"
    return Finding(level="warn", name="effects", said=said, todo="see `detent effect list`")


def _parked(reader: Reader) -> Finding:
    """Calls that were planned a while ago and never made: probably nobody has their handler."""
    waiting: Counter[str] = Counter()
    seen, after = 0, 0
    everywhere = range(reader.store.meta().partitions)
    while seen < _BUSY_MOST:
        numbers = reader.store.busy(list(everywhere), after, _BUSY_PAGE)
        if not numbers:
            break
        for loaded in reader.store.load_numbers(numbers):
            waiting.update(_stale_calls(reader, loaded.body))
        seen, after = seen + len(numbers), numbers[-1]
    if not waiting:
        return Finding(
            level="ok", name="handlers", said="no call has waited for more than a minute"
        )
    named = ", ".join(f"{name} ({count})" for name, count in sorted(waiting.items()))
    todo = "start an engine that has these handlers"
    return Finding(level="warn", name="handlers", said=f"calls wait for: {named}", todo=todo)


def _stale_calls(reader: Reader, body: bytes | None) -> Iterator[str]:
    for effect in decode_snapshot(body).effects if body is not None else ():
        if (
            effect.state != "planned"
            or reader.now_ms - reader.ms_of(effect.since) < PARKED_AFTER_MS
        ):
            continue
        if not reader.store.flights([effect.key]):
            yield effect.handler


def _open(store: Store) -> int:
    states = store.count_states("")
    ended = ("completed", "failed", "cancelled")
    return sum(count for state, count in states.items() if state not in ended)
