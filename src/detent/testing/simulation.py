"""Simulation of one seed: a run without a crash, then one crash at every write of that run.

The first run keeps an image of the store, the length of the world's record and the callers'
progress at each write. A crash at a write is then a new engine over that image, with nothing else
left; the run goes on from there, is audited, and must have ended as the first one did.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from detent.bootstrap.making import VIRTUAL_EPOCH_MS
from detent.model.ids import timed_id
from detent.ports.opening import NewStore
from detent.store.sqlite import SqliteStore, open_store
from detent.testing.auditing import Ending, audit, compare, figures
from detent.testing.driving import Drive, Progress
from detent.testing.faulty import (
    MOMENTS,
    Crash,
    Fault,
    FaultyStore,
    Moment,
    Write,
    break_off,
    image_of,
    opened,
)
from detent.testing.outside import Outside
from detent.testing.workload import world_of
from detent.testing.world import RESOLUTION_MS, World

if TYPE_CHECKING:
    import apsw

    from detent.ports.store import Store

PARTITIONS = 2
STATEMENTS = 12  # how far into a transaction a crash may come; few have more
DEAD = 0.4  # share of the crashes of worlds with limits after which time passes
HOUR_TICKS = 36_000
TWICE = 0.1  # share of the crashes that are followed by a second one soon after


class Point(NamedTuple):
    """Where a run can be cut: the write, and what had been done outside by then."""

    write: Write
    before: bytes
    after: bytes
    deeds: int
    acted: int


class Failure(NamedTuple):
    """A crash after which something was wrong."""

    seed: int
    point: str
    message: str


class Report(NamedTuple):
    """What simulating one seed found; once effects are counted over all its runs."""

    seed: int
    writes: int = 0
    crashes: int = 0
    once_calls: int = 0
    decided: int = 0
    failures: Sequence[Failure] = ()


class First(NamedTuple):
    """The run without a crash."""

    world: World
    ending: Ending
    points: list[Point]
    outside: Outside


def simulate(seed: int, *, sample: int | None = None, only: str = "") -> Report:
    """Run the world of a seed with and without crashes; `only` names one point, as `12:during`."""
    world = world_of(seed)
    try:
        first = run_through(world)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the finding
        return Report(seed, failures=[Failure(seed, "", describe(error))])
    failures: list[Failure] = []
    once = decided = 0
    chosen = _chosen(first, sample, only)
    for point, moment in chosen:
        try:
            outside = crash_at(first, point, moment)
        except Exception as error:  # noqa: BLE001 - as above
            failures.append(Failure(seed, f"{point.write.number}:{moment}", describe(error)))
        else:
            counted = figures(outside)
            once += counted.once_calls
            decided += counted.decided_by_people
    return Report(seed, len(first.points), len(chosen), once, decided, failures)


def run_through(world: World) -> First:
    """The run without a crash: how it ends, and where it can be cut."""
    outside, progress, points = Outside(), Progress(), list[Point]()
    connection = new_database(world.seed)
    images: list[bytes] = []
    marks: list[tuple[int, int]] = []

    def watch(write: Write, moment: Moment) -> None:
        if moment == "before":
            images[:] = [image_of(connection)]
            marks[:] = [(len(outside.deeds), progress.acted)]
        else:
            points.append(Point(write, images[0], image_of(connection), *marks[0]))

    store = FaultyStore(connection, watch=watch)
    Drive(world, store, outside, progress).run()
    ending = audit(_port(FaultyStore(connection)), outside)
    connection.close()
    return First(world, ending, points, outside)


def crash_at(first: First, point: Point, moment: Moment) -> Outside:
    """Crash at a point, go on in a new engine, audit and compare; the world as it is then."""
    world = first.world
    rng = Random(f"{world.seed} {point.write.number} {moment}")
    outside = first.outside.until(point.deeds)
    progress = Progress(point.acted)
    connection = opened(point.after if moment == "after" else point.before)
    twice = rng.random() < TWICE
    if moment == "during":
        store = SqliteStore(connection, FaultyStore(connection).meta(), None)
        break_off(connection, store, point.write, rng.randrange(STATEMENTS))
        if not twice and image_of(connection) == point.before:
            return outside  # not a byte is left of it: what follows is the crash before the write
    if twice:
        again = Fault(rng.randint(1, 4), rng.choice(MOMENTS), rng.randrange(STATEMENTS))
        with suppress(Crash):
            Drive(world, FaultyStore(connection, again), outside, progress).run()
    dead = _pass_time(connection, rng) if world.traits.limited else False
    Drive(world, FaultyStore(connection), outside, progress).run()
    ending = audit(_port(FaultyStore(connection)), outside)
    connection.close()
    if not world.traits.wild and not dead:
        compare(first.ending, ending)
    return outside


def _pass_time(connection: apsw.Connection, rng: Random) -> bool:
    """Let time pass while nobody runs, or not: what was granted before is old by then."""
    if rng.random() >= DEAD:
        return False
    ticks = rng.choice((1, 50, HOUR_TICKS, 30 * HOUR_TICKS))
    connection.execute("UPDATE partition SET tick = tick + ?", (ticks,))
    return True


def new_database(seed: int) -> apsw.Connection:
    """An empty store in memory."""
    new = NewStore(
        epoch_ms=VIRTUAL_EPOCH_MS,
        resolution_ms=RESOLUTION_MS,
        clock="virtual",
        partitions=PARTITIONS,
        store_id=timed_id(VIRTUAL_EPOCH_MS, seed.to_bytes(10, "big")),
    )
    store = open_store(":memory:", create=new)
    return opened(image_of(store._connection))  # noqa: SLF001 - a fresh store has no other door


def _chosen(first: First, sample: int | None, only: str) -> list[tuple[Point, Moment]]:
    points = first.points
    if only:
        number, _, moment = only.partition(":")
        return [(points[int(number) - 1], cast("Moment", moment))]
    chosen = [(point, moment) for point in points for moment in MOMENTS]
    if sample is None or len(chosen) <= sample:
        return chosen
    rng = Random(f"detent crashes {first.world.seed}")
    return [chosen[i] for i in sorted(rng.sample(range(len(chosen)), sample))]


def _port(store: Any) -> Store:
    return cast("Store", store)


def describe(error: BaseException) -> str:
    """An error with the last places it came through."""
    told = f"{type(error).__name__}: {error}"
    if type(error).__name__ == "Wrong":
        return told
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    return f"{told} ({where})"
