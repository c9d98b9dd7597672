"""Watching instances while an engine works: live on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from detent.cli.holding import holding
from detent.cli.palette import STATES, colour
from detent.cli.pictures import Pictures
from detent.cli.reader import Reader
from detent.cli.screen import Branch, Cell, Screen, rich_text, rich_tree
from detent.cli.tally import count_steps
from detent.cli.tree_view import tree_branch
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.ports.store import Store
from detent.service.histories import instance_tree

_LIVE_S = 0.15
_PLAIN_S = 1.0
_STANDING_S = 1.0
_COUNTED = 2_000  # instances whose own states are looked up; of more, those of the store are
_BAR = 40


class Start(NamedTuple):
    """How a store stood before a run: steps and ends of before are not counted as the run's."""

    pos: int
    ended: dict[str, int]


def mark(reader: Reader) -> Start:
    """Remember how the store stands."""
    states = reader.store.count_states(reader.tenant or "")
    ended = {state: count for state, count in states.items() if state in TERMINAL}
    return Start(reader.store.statistics()["journal_rows"], ended)


class Watch:
    """Follows some instances, or the whole store; `finished` says when all of them have ended."""

    def __init__(self, reader: Reader, ids: Sequence[str] | None, title: str, start: Start) -> None:
        """`ids` are the instances to follow; None is whatever is in the store."""
        self.reader = reader
        self.title = title
        self._open = deque(ids or ())
        self._own = dict.fromkeys(ids or (), "") if ids and len(ids) <= _COUNTED else None
        self._standing = _Standing(reader)
        self._began = time.monotonic()
        self._pos = start.pos
        self._ended = start.ended
        self.steps = 0

    @property
    def store(self) -> Store:
        """The store it looks at."""
        return self.reader.store

    @property
    def seconds(self) -> float:
        """How long it has been watching."""
        return time.monotonic() - self._began

    def finished(self) -> bool:
        """Whether every instance has ended; one that has is never asked for again."""
        while self._open:
            row = self.store.instance(self._open[0])
            if row is not None and row.state not in TERMINAL:
                return False
            self._open.popleft()
        return True

    def counts(self) -> dict[str, int]:
        """How many instances are in which state; those that had ended before are left out."""
        more, self._pos = count_steps(self.store, self._pos)
        self.steps += more
        if self._own is not None:
            return self._own_counts(self._own)
        found = self.store.count_states(self.reader.tenant or "")
        left = {state: found.get(state, 0) - self._ended.get(state, 0) for state in INSTANCE}
        return {state: count for state, count in left.items() if count}

    def _own_counts(self, own: dict[str, str]) -> dict[str, int]:
        """Those of the instances themselves: a schedule beside them may start others."""
        for id, state in own.items():
            if state not in TERMINAL:
                row = self.store.instance(id)
                own[id] = "" if row is None else row.state
        found = Counter(own.values())
        return {state: found[state] for state in INSTANCE if found[state]}

    def held(self) -> dict[str, str]:
        """What holds the instance that is shown, by node."""
        chosen = self.shown_instance()
        return {} if chosen is None else self._standing.of(chosen)

    def shown_instance(self) -> str | None:
        """The one whose tree is shown: the first that has not ended."""
        return self._open[0] if self._open else None


class _Standing:
    """Why an instance stands; asked seldom, since a long line at a gate takes its time."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: tuple[str, dict[str, str]] = ("", {})
        self._next = 0.0

    def of(self, instance: str) -> dict[str, str]:
        """What holds each node of the instance."""
        began = time.monotonic()
        if instance != self._known[0] or began >= self._next:
            self._known = (instance, holding(self._reader.at_present(), instance))
            took = time.monotonic() - began
            self._next = began + max(_STANDING_S, 20 * took)
        return self._known[1]


def follow(screen: Screen, watch: Watch, until: float | None) -> bool:
    """Watch until all have ended, or until a moment of the monotonic clock; whether they have."""
    end = float("inf") if until is None else until
    with showing(screen, watch) as refresh:
        while True:
            done = watch.finished()
            refresh()
            if done or time.monotonic() >= end:
                return done
            time.sleep(_LIVE_S)


Lines = Callable[[], Sequence[Sequence[str | Cell]]]


def showing(
    screen: Screen, watch: Watch, lines: Lines = tuple
) -> AbstractContextManager[Callable[[], None]]:
    """How a watch is shown: what is given out shows it anew, with these lines below."""
    if not screen.terminal:
        return nullcontext(_PlainProgress(screen, watch))
    return _Live(screen, watch, lines)


class _PlainProgress:
    """Prints a line of counters when they changed, at most once a second."""

    def __init__(self, screen: Screen, watch: Watch) -> None:
        self._screen = screen
        self._watch = watch
        self._next = 0.0
        self._last: tuple[dict[str, int], bool] = ({}, True)

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PLAIN_S
        counts = self._watch.counts()
        why = next(iter(self._watch.held().items()), None)
        if (counts, why is None) != self._last:
            self._last = (counts, why is None)
            about = "" if why is None else f"   {why[0] or 'it'} {why[1]}"
            self._screen.line(counters(counts) + about)
            self._screen.flush()


class _Live:
    """A display of rich that is redrawn in place."""

    def __init__(self, screen: Screen, watch: Watch, lines: Lines) -> None:
        self._screen = screen
        self._watch = watch
        self._lines = lines
        self._pictures = Pictures(screen)

    def __enter__(self) -> Callable[[], None]:
        self._pictures.__enter__()
        return self.refresh

    def __exit__(self, *_exc: object) -> None:
        self._pictures.__exit__()

    def refresh(self) -> None:
        self._pictures.show(picture(self._screen, self._watch, self._lines()))


def picture(
    screen: Screen,
    watch: Watch,
    lines: Sequence[Sequence[str | Cell]] = (),
    *,
    paced: bool = False,
) -> Any:
    """What a live display shows: title, bar, counters, further lines, and one instance's tree.

    In a `paced` demonstration there is no rate, since it would measure the pace.
    """
    from rich.console import Group

    counts = watch.counts()
    rate = "" if paced else f"   {watch.steps / max(watch.seconds, 0.001):,.0f} steps/s"
    parts: list[Any] = [
        rich_text([Cell(watch.title, "bold"), Cell(f"   {watch.seconds:5.1f} s", "bright_black")]),
        rich_text(bar(counts)),
        rich_text([*pieces(counts), Cell(rate, "bright_black")]),
        *(rich_text(line) for line in lines),
    ]
    chosen = watch.shown_instance()
    if chosen is not None:
        parts += [
            "",
            rich_tree(one_tree(watch.reader, chosen, wide=screen.wide, held=watch.held())),
        ]
    return Group(*parts)


def one_tree(
    reader: Reader, instance_id: str, *, wide: bool, held: dict[str, str] | None = None
) -> Branch:
    """The execution tree of one instance, with what holds it."""
    row = reader.store.instance(instance_id)
    state = row.state if row is not None else ""
    title = [
        Cell(instance_id, "bright_black"),
        Cell(f"  {state}", colour(state)),
    ]
    found = instance_tree(reader.store, instance_id, None)
    resolution_ms = reader.store.meta().resolution_ms
    known = holding(reader, instance_id) if held is None else held
    return tree_branch(title, found, wide=wide, resolution_ms=resolution_ms, held=known)


def bar(counts: dict[str, int], width: int = _BAR) -> list[Cell]:
    """One bar, a stretch for each state, those that ended first."""
    total = sum(counts.values())
    ended_first = ("completed", "failed", "cancelled", "paused", "waiting", "running", "scheduled")
    cells: list[Cell] = []
    drawn = reached = 0
    for state in ended_first:
        reached += counts.get(state, 0)
        upto = round(width * reached / total) if total else 0
        cells.append(Cell("━" * (upto - drawn), STATES[state]))
        drawn = upto
    return [*cells, Cell("━" * (width - drawn), "bright_black")]


def pieces(counts: dict[str, int]) -> list[Cell]:
    """Counters, each in the colour of its state."""
    return [
        Cell(f"{'  ' if place else ''}{state} {count:,}", colour(state))
        for place, (state, count) in enumerate(counts.items())
    ]


def counters(counts: dict[str, int]) -> str:
    """Counters on one line of plain text."""
    return "  ".join(f"{state} {count:,}" for state, count in counts.items())
