"""Several schedulers on one store, the world they act on, and a person who decides in doubt.

Members are processes of their own (`member`), which can be killed, paused, woken and closed. What
they call is written down by a bookkeeper, another process, so that nothing they cause is lost.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from detent.bootstrap.stores import open_reader
from detent.bootstrap.visitor import Visitor
from detent.kernel.lifecycle import TERMINAL
from detent.model.errors import DetentError, RequestError
from detent.model.ids import SYSTEM, derived_id
from detent.ports.opening import OpenedStore
from detent.ports.store import Page
from detent.runtime.clock import wall_time_ms
from detent.testing.bookkeeper import BooksByWire, read_books
from detent.testing.killed import definitions, key_of
from detent.testing.member import Membership
from detent.testing.outside import Deed, Outside, Wrong

PATIENCE_S = 90.0
LOOK_S = 0.02


class Member:
    """One scheduler process."""

    def __init__(self, told: Membership, log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "detent.testing.member"]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(  # noqa: S603 - our own module
                [*command, json.dumps(msgspec.to_builtins(told))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.paused = False

    @property
    def pid(self) -> int:
        """Its process id, by which owners are told apart."""
        return self.process.pid

    def await_ready(self) -> Self:
        """Wait until its engine is open."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if line.strip() != "ready":
            raise Wrong(
                f"a member did not start: it said {line!r}; {self._log.read_text()[-1_500:]}"
            )
        return self

    def kill(self) -> None:
        """As a power cut: it is gone without a word."""
        self.process.kill()
        self.process.communicate()

    def pause(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def wake(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def close(self) -> None:
        """Ask it to close, and wait until it has."""
        said, _ = self.process.communicate("", timeout=PATIENCE_S)
        if self.process.returncode or said.strip() != "closed":
            raise Wrong(f"a member ended with {self.process.returncode}: it said {said!r}")


class Cluster:
    """A store, its members, its callers and its person; use it as a context manager."""

    def __init__(self, url: str, **membership: Any) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="detent-cluster-")
        place = Path(self._directory.name)
        self.file, self.log = place / "books.jsonl", place / "members.log"
        socket = place / "books"
        self.told = Membership(path=url, books=str(socket), **membership)
        self.members: list[Member] = []
        self.started = 0
        self._visitor: Visitor | None = None
        self._hasty: Visitor | None = None
        self._reader: OpenedStore | None = None
        command = [sys.executable, "-m", "detent.testing.bookkeeper", str(socket), str(self.file)]
        self._keeper = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        if self._keeper.stdout is not None:
            self._keeper.stdout.readline()
        self._books = BooksByWire(str(socket))

    def join(self, **membership: Any) -> Member:
        """Start another member."""
        told = msgspec.structs.replace(self.told, **membership)
        member = Member(told, self.log)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        """Close a member in peace."""
        self.members.remove(member)
        member.close()

    def kill(self, member: Member) -> None:
        """Kill a member."""
        self.members.remove(member)
        member.kill()

    @property
    def visitor(self) -> Visitor:
        """The caller: it belongs to no member, and only leaves arrivals."""
        if self._visitor is None:
            self._visitor = Visitor(self.told.path)
        return self._visitor

    @property
    def store(self) -> OpenedStore:
        """The store, to look at."""
        if self._reader is None:
            self._reader = open_reader(self.told.path)
        return self._reader

    def start(self, count: int) -> None:
        """Start so many more instances, each with what it needs from callers."""
        kid, *others = definitions()
        self.visitor.deploy(kid)
        for place in range(self.started, self.started + count):
            data = {"list": [1, 2], "n": place}
            self.visitor.start(others[place % 3], data, key=key_of(place))
            if place % 3 == 0:
                id = derived_id("default", "instance", key_of(place))
                self.visitor.signal(id, "go", {"by": "caller"}, id=f"go:{id}")
        self.started += count

    def owned(self) -> dict[int, list[int]]:
        """Which partitions each process owns by a valid lease."""
        store, now_ms = self.store, wall_time_ms()
        pids = {owner.id: owner.pid for owner in store.owners() if owner.lease_until_ms > now_ms}
        found: dict[int, list[int]] = {pid: [] for pid in pids.values()}
        for row in store.partitions():
            if row.lease_until_ms > now_ms and row.owner in pids:
                found[pids[row.owner]].append(row.p)
        return found

    def await_shares(self, *shares: int) -> dict[int, list[int]]:
        """Wait until the members own so many partitions each, and all is owned."""
        wanted = sorted(shares)
        pids = [member.pid for member in self.members if not member.paused]

        def shared() -> dict[int, list[int]] | None:
            owned = self.owned()
            if sorted(len(owned.get(pid, ())) for pid in pids) != wanted:
                return None
            return owned if sum(wanted) == self.told.partitions else None

        found: dict[int, list[int]] = self.wait(shared, f"shares of {wanted}")
        return found

    def open_instances(self) -> list[str]:
        """Those that have not ended."""
        rows = self.store.instances(Page(limit=1_000_000, without=SYSTEM))
        return [row.id for row in rows if row.state not in TERMINAL]

    def await_ends(self) -> None:
        """Wait until every instance has ended, with a person who decides meanwhile."""
        self.wait(lambda: not self.decide() and not self.open_instances(), "the end of all")

    def decide(self, *, wait: bool = True) -> int:
        """The person: look into the books, and say what happened; how much was in doubt.

        Without `wait` nobody waits for the answer: perhaps nobody can give it now.
        """
        rows = self.store.doubts("", "", 1_000)
        asked = [row for row in rows if row.state == "indeterminate"]
        for doubt in asked:
            key, books = doubt.effect, self._books
            action, result = "again", None
            if books.happened(key):
                action, result = "happened", books.result(key)
            elif books.count("refused", key):
                action = "failed"
            id = f"resolve:{key}:{books.count('person', f'resolve:{key}')}"
            books.add(Deed("asked", id, doubt.instance, action, ""))
            args = {"key": key, "action": action, "result": result}
            try:
                self._person(wait=wait).command(doubt.instance, "resolve", args, id=id)
            except RequestError as refused:
                if refused.code == "request.timeout":
                    continue  # the same answer is given again
                if not refused.code.startswith("effect."):
                    raise
            books.add(Deed("person", f"resolve:{key}", doubt.instance, action, ""))
        return len(asked)

    def _person(self, *, wait: bool) -> Visitor:
        if wait:
            return self.visitor
        if self._hasty is None:
            self._hasty = Visitor(self.told.path, timeout_ms=1_000)
        return self._hasty

    def wait(self, look: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
        """Look until there is something to be seen."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                found = look()
            except DetentError as error:
                if error.code not in ("store.unavailable", "request.timeout"):
                    raise
                found = None
            if found:
                return found
            time.sleep(LOOK_S)
        raise Wrong(f"waited {seconds:.0f} s for {what}: {self.owned()}, {self.tail()}")

    def outside(self) -> Outside:
        """What happened in the world."""
        return read_books(self.file)

    def tail(self) -> str:
        """The last that the members complained about."""
        return self.log.read_text(errors="replace")[-2_000:] if self.log.exists() else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for member in self.members:
            member.kill()
        for opened in (self._visitor, self._hasty, self._reader):
            if opened is not None:
                opened.close()
        self._books.close()
        self._keeper.kill()
        self._keeper.communicate()
        self._directory.cleanup()
