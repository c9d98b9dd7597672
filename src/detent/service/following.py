"""Following an instance: what is new of it since the last look, in order and each exactly once.

A follower remembers how far it has read. It begins with the state in which it finds the instance
and the outputs there are; from then on it tells each change of state and each output in the order
of the journal. A look reads a bounded part of the journal, so that following costs the same
whatever the length of a history and however slow whoever listens is. Who comes back is told what
came after the last they know: the journal is read from there on, not from its beginning.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.places import Places
from detent.kernel.recording import program_of
from detent.kernel.views import Noted, OutputReader, OutputRow, noted
from detent.model import limits
from detent.service.arguments import invalid
from detent.service.reading import (
    StoredBlobs,
    StoredPrograms,
    find_instance,
    program_for,
    read_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from detent.kernel.program import Program
    from detent.ports.store import JournalRow, Store

END = "done"
_OTHER_BLOCKS = ("blocks.injected", "migration.applied")

_BACK_ROWS = 50  # of one look back
_LAST = 10**limits.PLACE_DIGITS - 1  # the index of no entry: behind all of its row

Place = tuple[int, int]  # seq of a journal row, index of an entry in it


class News(Struct, frozen=True):
    """A change of state, or an output with its place."""

    state: str = ""
    output: OutputRow | None = None


class Look(Struct, frozen=True):
    """What is new, in order, as it is shown; `more` when the next look finds something at once."""

    shown: list[bytes]
    more: bool
    ended: bool


class Follower:
    """Reads on where it stopped; used by one thread at a time."""

    def __init__(self, instance: str, tenant: str | None, after: str = "") -> None:
        """`after` is the id of the last output that is known already, or of the end."""
        self.instance = instance
        self.state = ""
        self._tenant = tenant
        self._after = read_place(after) if after else (0, -1)
        seq, index = self._after
        self._from = seq if index == _LAST else max(0, seq - 1)  # up to here is only looked back at
        self._seq = self._from  # read up to here
        self._began = 0  # what was there at the first look; changes of state before are history
        self._n = 0
        self._program: Program | None = None
        self._places: Any = None
        self._outputs = OutputReader(flat=False)

    def begin(self, store: Store) -> str:
        """The state in which the instance is found; `instance.not_found` where there is none."""
        row = find_instance(store, self.instance, self._tenant)
        loaded = store.load([row.id])[row.id]  # state and version of one moment
        self.state, self._began, self._n = loaded.state, loaded.version, row.n
        return self.state

    @property
    def end(self) -> str:
        """The id of the end: who knows it knows everything that was read."""
        return f"{END}.{self._seq}"

    @property
    def known(self) -> bool:
        """Whether whoever comes back knows how it ended, and that it is over."""
        return self.ended and self._after >= (self._began, _LAST)

    @property
    def ended(self) -> bool:
        """Whether the instance has ended, as far as it was followed."""
        return self.state in TERMINAL

    def look(self, store: Store, show: Callable[[News], bytes]) -> Look:
        """What is new since the last look, as `show` shows it."""
        shown: list[bytes] = []
        size = 0
        self._outputs.back = partial(self._before, store)
        rows = store.journal(self._n, self._seq, limits.STREAM_ROWS)
        if rows:
            program = self._program or self._compiled(store)
            self._places = Places(program)  # not kept for long: in a loop every path is a new one
        for row in rows:
            for news in self._read(store, row):
                shown.append(show(news))
                size += len(shown[-1])
            self._seq = row.seq
            if size > limits.STREAM_LOOK_BYTES:
                return Look(shown, more=True, ended=False)
        more = len(rows) == limits.STREAM_ROWS
        return Look(shown, more, ended=self.ended and not more)

    def _read(self, store: Store, row: JournalRow) -> Iterator[News]:
        for entry in noted([row], StoredBlobs(store, self.instance)):
            if entry.action in _OTHER_BLOCKS:
                self._places = Places(self._compiled(store))
            moved = _moved(entry)
            if moved and row.seq > self._began:
                self.state = moved
                yield News(state=moved)
            output = self._outputs.read(entry, self._places)
            if output is not None and read_place(entry.id) > self._after:
                yield News(output=output)

    def _before(self, store: Store) -> Iterator[Noted]:
        """The entries of the rows that are not read, the newest first."""
        blobs, until = StoredBlobs(store, self.instance), self._from
        while until > 0:
            start = max(0, until - _BACK_ROWS)
            for row in reversed(store.journal(self._n, start, until - start)):
                yield from reversed(list(noted([row], blobs)))
            until = start

    def _compiled(self, store: Store) -> Program:
        row = find_instance(store, self.instance, self._tenant)
        snapshot = read_snapshot(store, row)
        if snapshot is None:
            found = program_of(StoredPrograms(store), row.definition)
        else:
            found = program_for(store, snapshot)
        self._outputs.flat = found.flat
        self._program = found
        return found


def read_place(id: str) -> Place:
    """The place of an entry by its id, `<seq>.<index>`; `request.invalid` for anything else.

    That of an end, `done.<seq>`, is behind everything that was read by then.
    """
    first, _, second = id.partition(".")
    seq, index = (second, str(_LAST)) if first == END else (first, second)
    for part in (seq, index):
        if not part.isascii() or not part.isdecimal() or len(part) > limits.PLACE_DIGITS:
            raise invalid("Last-Event-ID", "the id of an output event", id)
    return int(seq), int(index)


def _moved(entry: Noted) -> str:
    """The state that an entry says the instance went to; empty when it tells of no change."""
    detail = entry.detail
    if entry.action.startswith("run.") and isinstance(detail, dict):
        return str(detail.get("to", ""))
    return ""
