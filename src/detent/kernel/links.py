"""One partition's chain of turns, walked beside the journal rows whose heads it lists.

Journal rows come in the order of their position; within a partition that is the order of turns, and
within a turn the order of its heads. So a turn row and the journal check one another head by head:
a row that is missing, added, moved or taken from elsewhere leaves the two lists different.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

from detent.kernel.chain import GENESIS, root_of

HASH_BYTES = 32


class Broken(Struct, frozen=True, kw_only=True):
    """The first thing that does not hold: where, what, and both sides."""

    where: str
    what: str
    expected: str
    found: str


class ChainBroken(Exception):
    """Unwinds a verification at its first finding."""

    def __init__(self, where: str, what: str, expected: object, found: object) -> None:
        super().__init__(where)
        self.broken = Broken(where=where, what=what, expected=shown(expected), found=shown(found))


class TurnLike(Protocol):
    """What is read of a turn row."""

    @property
    def p(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def tick(self) -> int: ...
    @property
    def heads(self) -> bytes: ...
    @property
    def root(self) -> bytes: ...


class End(NamedTuple):
    """Where a partition's chain ends: the turn and root of its row."""

    p: int
    turn: int
    root: bytes


class Link:
    """The walk over the turns of one partition."""

    __slots__ = (
        "_awaited",
        "_rows",
        "anchored",
        "end",
        "expected",
        "got",
        "latest",
        "p",
        "root",
        "sealed",
        "turn",
        "turns",
    )

    def __init__(self, end: End, rows: Iterator[TurnLike], awaited: list[bytes]) -> None:
        self.p = end.p
        self.end = end
        self.turn = 0
        self.root = GENESIS
        self.expected = b""  # heads the present turn row lists
        self.got: list[bytes] = []  # heads met in the journal for the present turn
        self.turns = 0
        self.latest = 0  # the highest turn named by a journal row, though later than `end`
        self.sealed = 0  # the last turn that a seal covers
        self.anchored: tuple[int, bytes] | None = None
        self._rows = rows
        self._awaited = awaited[::-1]  # roots that seals name, in order
        self._meet()

    def move(self, turn: int, pos: int) -> None:
        """Close the present turn and go on to the one a journal row names."""
        if turn < self.turn:
            where = f"journal position {pos}"
            raise ChainBroken(where, "turn", f"{self.turn} or later", turn)
        self.close()
        while self.turn < turn:
            if self.expected:
                self.close()
            self._next()

    def finish(self) -> None:
        """Go to the end of the chain and compare it with the partition's row."""
        self.move(self.end.turn, 0)
        self.close()
        where = f"partition {self.p}"
        if self.root != self.end.root:
            raise ChainBroken(where, "root", self.root, self.end.root)
        if self._awaited:
            raise ChainBroken(where, "root named by a seal", self._awaited[-1], "no such turn")
        if self.anchored is not None:
            turn, root = self.anchored
            raise ChainBroken(
                where,
                "tail",
                f"turn {turn} with root {root.hex()}",
                f"turn {self.turn} is the last",
            )

    def close(self) -> None:
        """The journal must have had exactly the heads that the present turn lists."""
        got = b"".join(self.got)
        if got != self.expected:
            self._blame()
        self.got = []
        self.expected = b""

    def _blame(self) -> None:
        where = f"turn {self.turn} of partition {self.p}"
        listed = [
            self.expected[at : at + HASH_BYTES] for at in range(0, len(self.expected), HASH_BYTES)
        ]
        for place, head in enumerate(self.got):
            if place >= len(listed):
                raise ChainBroken(f"{where}, head {place}", "journal row", "none", head)
            if listed[place] != head:
                raise ChainBroken(f"{where}, head {place}", "journal row", listed[place], head)
        place = len(self.got)
        raise ChainBroken(f"{where}, head {place}", "journal row", listed[place], "none")

    def _next(self) -> None:
        row = next(self._rows, None)
        where = f"turn {self.turn + 1} of partition {self.p}"
        if row is None:
            raise ChainBroken(where, "turn row", "one", "none")
        if row.n != self.turn + 1 or row.p != self.p:
            raise ChainBroken(where, "turn row", f"turn {self.turn + 1}", f"turn {row.n}")
        root = root_of(self.root, row.p, row.n, row.tick, row.heads)
        if root != row.root:
            raise ChainBroken(where, "root", root, row.root)
        self.turn = row.n
        self.turns += 1
        self.root = row.root
        self.expected = row.heads
        self._meet()

    def _meet(self) -> None:
        while self._awaited and self._awaited[-1] == self.root:
            self._awaited.pop()
            self.sealed = self.turn
        if self.anchored is not None and self.anchored[0] == self.turn:
            if self.anchored[1] != self.root:
                where = f"turn {self.turn} of partition {self.p}"
                raise ChainBroken(where, "root named by the anchor", self.anchored[1], self.root)
            self.anchored = None

    def anchor(self, turn: int, root: bytes) -> None:
        """Expect a root at a turn; turn 0 stands for a partition that had none yet."""
        self.anchored = (turn, root)
        self._meet()


def shown(value: object) -> str:
    """Either side of a finding, for people."""
    return value.hex() if isinstance(value, bytes) else str(value)
