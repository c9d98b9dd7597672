"""Killing a real process at named points, starting it again until all is done, and counting.

A *story* is one store: its process is killed a few times, then left in peace to finish. Afterwards
the chain is verified, every record replayed, the bookkeeper's file audited, and the end compared
with that of the same work in virtual time, which nobody disturbed. No effect may be in flight at
more kills than an engine forgives (over five a repeatable one fails for good).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import IO, NamedTuple

import msgspec

from detent.bootstrap.stores import open_reader
from detent.model.ids import derived_id
from detent.model.limits import LEASE_TTL_MS
from detent.runtime.failpoints import OF_TURNS
from detent.testing.auditing import Ending, audit, compare, figures
from detent.testing.bookkeeper import read_books
from detent.testing.engines import virtual_engine
from detent.testing.killed import (
    LOST,
    STUCK,
    Task,
    definitions,
    expected_state,
    handlers,
    key_of,
)
from detent.testing.outside import Outside, Wrong
from detent.testing.providers import Providers

KILLS_PER_STORY = 5
ANYTIME = "anytime"  # the parent kills, whenever
POINTS = (*OF_TURNS, ANYTIME)
LIFE_S = 120.0
SHORT_LEASE_MS = 1_500  # so that a life does not begin with half a minute of waiting


class Life(NamedTuple):
    """How one life of the process ended."""

    killed: int
    done: bool


class StoryReport(NamedTuple):
    """What one store went through."""

    seed: int
    kills: dict[str, int]
    lives: int
    once_calls: int
    decided: int
    failure: str = ""


def tell_story(seed: int, address: str = "") -> StoryReport:
    """Kill, restart, finish, audit; on a file, or on a new store at an address."""
    rng = Random(f"detent kills {seed}")
    kills: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="detent-kills-") as directory:
        place = Path(directory)
        books, file = place / "books", place / "books.jsonl"
        task = Task(
            path=address or str(place / "store.db"),
            books=str(books),
            writer=rng.choice(("thread", "process")),
            clock=rng.choice(("stepped", "stepped", "wall")),
            lease_ttl_ms=SHORT_LEASE_MS if address else LEASE_TTL_MS,
        )
        keeper = _start_keeper(books, file)
        lives = 0
        try:
            finished = False
            while not finished:
                lives += 1
                enough = sum(kills.values()) >= KILLS_PER_STORY or lives > 2 * KILLS_PER_STORY
                point = "" if enough else rng.choice(POINTS)
                life = _live(task, point, rng)
                finished = life.done
                if life.killed:
                    kills[point] = kills.get(point, 0) + life.killed
                if enough:
                    _must_have_finished(life)
                else:  # there is new work in every life
                    finished = False
                    task = msgspec.structs.replace(task, instances=task.instances + 3)
            figures_ = _audit(task, file)
        except Wrong as wrong:
            return StoryReport(seed, kills, lives, 0, 0, str(wrong))
        finally:
            keeper.kill()
            keeper.communicate()  # waits, and closes the pipe
    return StoryReport(seed, kills, lives, *figures_)


def _must_have_finished(life: Life) -> None:
    if not life.done:
        raise Wrong("left in peace, it did not finish")


def _start_keeper(books: Path, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "detent.testing.bookkeeper", str(books), str(file)]
    keeper = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own module
    if keeper.stdout is not None:
        keeper.stdout.readline()
    return keeper


def _live(task: Task, point: str, rng: Random) -> Life:
    """One life of the process, with a failpoint armed."""
    most = 1 if point == "during_recovery" else 8  # a life recovers once
    armed = f"{point}:{rng.randint(1, most)}" if point in OF_TURNS else ""
    env = {**os.environ, "DETENT_FAILPOINT": armed}
    told = json.dumps(msgspec.to_builtins(task))
    lines: list[str] = []
    command = [sys.executable, "-m", "detent.testing.killed", told]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(  # noqa: S603 - our own module
            command, stdout=subprocess.PIPE, stderr=errors, env=env, text=True
        ) as child,
    ):
        timer = threading.Timer(LIFE_S, child.kill)
        timer.start()
        if child.stdout is not None:
            _listen(child, child.stdout, lines, rng.uniform(0.0, 0.5) if point == ANYTIME else None)
        status = child.wait()
        late = not timer.is_alive()
        timer.cancel()
        errors.seek(0)
        lines += errors.read().splitlines()[-5:]
    if late:
        raise Wrong(f"it hung for {LIFE_S:.0f} s (failpoint {armed or 'none'})")
    return _ended(task, point, status, lines)


def _listen(
    child: subprocess.Popen[str], stream: IO[str], lines: list[str], kill_after: float | None
) -> None:
    for line in stream:
        lines.append(line.strip())
        if line.strip() == "ready" and kill_after is not None:
            threading.Timer(kill_after, _kill, [child]).start()


def _kill(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        child.kill()


def _ended(task: Task, point: str, status: int, lines: list[str]) -> Life:
    done = "done" in lines
    if status == -signal.SIGKILL:
        return Life(1, done)
    lost = lines.count("writer lost")
    if status == STUCK:
        raise Wrong(f"not all ended in time (failpoint {point or 'none'}): {lines[-5:]}")
    if status not in (0, LOST) or (status == 0 and not done):
        raise Wrong(f"it ended with status {status} (failpoint {point or 'none'}): {lines[-5:]}")
    if status == LOST and not point:
        raise Wrong(f"it lost its writer unasked: {lines[-5:]}")
    if status == LOST and not lost:
        lost = 1 if task.writer == "process" else 0  # it died before it was ready
    return Life(lost, done)


def _audit(task: Task, file: Path) -> tuple[int, int]:
    store = open_reader(task.path)
    try:
        outside = read_books(file)
        ending = audit(store, outside)
        problems = store.check()
        if problems:
            raise Wrong(f"the database is damaged: {problems}")
    finally:
        store.close()
    compare(undisturbed(task.instances), ending)
    for place in range(task.instances):
        id = derived_id("default", "instance", key_of(place))
        if id not in ending.instances:
            raise Wrong(f"lost: instance {place} is not in the store")
        if ending.instances[id]["state"] != expected_state(place):
            raise Wrong(f"instance {place} ended {ending.instances[id]}")
    for where, times in ending.applied.items():
        if times != 1:
            raise Wrong(f"doubled: {where} took effect {times} times")
    return tuple(figures(outside))  # type: ignore[return-value]


@cache
def undisturbed(instances: int) -> Ending:
    """How the same work ends when nobody is killed."""
    outside = Outside()
    kid, *others = definitions()
    with virtual_engine(handlers(Providers(outside)), seed="undisturbed") as engine:
        engine.deploy(kid)
        for place in range(instances):
            engine.start(others[place % 3], {"list": [1, 2], "n": place}, key=key_of(place))
        for place in range(0, instances, 3):
            id = derived_id("default", "instance", key_of(place))
            engine.signal(id, "go", {"by": "caller"}, id=f"go:{id}")
        engine.run_until_idle()
        return engine.inspect.look(lambda store: audit(store, outside))
