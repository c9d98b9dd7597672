"""Power cuts: a world runs on a `Disk`, and power goes at any operation of the run.

The run is done once, on a disk that records. A cut is then made by chance: an operation at which
power goes, and what the disk keeps of that which was not synced. The files are put down anew and
opened as always. The store must be sound, hold exactly what had been acknowledged (and perhaps the
write that was under way, whole), and a new engine must bring the world to the same end. Some cuts
are followed by a second one in the life after.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import traceback
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import apsw

from detent.bootstrap.making import VIRTUAL_EPOCH_MS
from detent.model.ids import timed_id
from detent.ports.opening import NewStore
from detent.store.sqlite import open_store
from detent.testing.auditing import Ending, audit, compare
from detent.testing.driving import Drive, Progress
from detent.testing.faulty import FaultyStore, Moment, Write
from detent.testing.outside import Outside, Wrong
from detent.testing.tearing import (
    KEEPS,
    SECTORS,
    Disk,
    Files,
    Loss,
    Operation,
    read_files,
    survivors,
    write_files,
)
from detent.testing.workload import world_of
from detent.testing.world import RESOLUTION_MS, World

if TYPE_CHECKING:
    from detent.ports.store import Store

PARTITIONS = 2
CUTS_PER_WORLD = 20
TWICE = 0.15  # share of the cuts that are followed by a second one
CHECKPOINT_PAGES = (8, 20, 60)  # so few that cuts come in the middle of checkpoints
CHECKPOINT_ODDS = 0.1
CHECKPOINTS = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)


class Standing(NamedTuple):
    """What a store holds: enough to say what is missing, and a digest of every row."""

    turns: tuple[tuple[int, int], ...]
    versions: tuple[tuple[int, int], ...]
    rows: str


class Acknowledged(NamedTuple):
    """What a store held when a write returned, and how many operations had been asked by then."""

    operations: int
    standing: Standing | None  # None: there is no store yet


class Life(NamedTuple):
    """One run on a recording disk."""

    world: World
    before: Files
    operations: list[Operation]
    acknowledged: list[Acknowledged]
    outside: Outside
    acted: int
    ending: Ending


class CutFailure(NamedTuple):
    """A cut after which something was wrong; without a cut it is the run itself."""

    seed: int
    cut: int | None
    message: str


class CutReport(NamedTuple):
    """What the cuts of one world found."""

    seed: int
    cuts: int = 0
    lossy: int = 0  # cuts by which the disk lost anything that was written
    failures: tuple[CutFailure, ...] = ()
    torn: int = 0  # cuts after which the write under way was gone, whole


class Cut(NamedTuple):
    """What one cut did."""

    torn: bool
    lossy: bool


def cut_world(seed: int, cuts: int = CUTS_PER_WORLD, only: int | None = None) -> CutReport:
    """Run the world of a seed, and cut it so many times, or make the one cut of that number."""
    world = world_of(seed)
    with tempfile.TemporaryDirectory(prefix="detent-cuts-") as directory:
        place = Path(directory)
        try:
            life = live(world, place / "first.db")
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is the finding
            return CutReport(seed, failures=(CutFailure(seed, None, _text(error)),))
        failures: list[CutFailure] = []
        made: list[Cut] = []
        numbers = range(cuts) if only is None else (only,)
        for number in numbers:
            try:
                made.append(cut(life, place / f"{number}", Random(f"detent cut {seed} {number}")))
            except Exception as error:  # noqa: BLE001 - as above
                failures.append(CutFailure(seed, number, _text(error)))
    torn, lossy = sum(each.torn for each in made), sum(each.lossy for each in made)
    return CutReport(seed, len(numbers), lossy, tuple(failures), torn)


def live(world: World, path: Path, past: Life | None = None, *, synchronous: str = "") -> Life:
    """Run a world to its end on a recording disk, from the start or from what `past` left.

    The store syncs as it was opened; with another `synchronous` the cuts must find losses.
    """
    rng = Random(f"detent disk {world.seed}")
    outside = Outside() if past is None else past.outside
    progress = Progress(0 if past is None else past.acted)
    before = read_files(path)
    disk = Disk(path, lambda: (len(outside.deeds), progress.acted))
    connection = _connect(path, world, disk.name)
    if synchronous:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.wal_autocheckpoint(rng.choice(CHECKPOINT_PAGES))
    held = [
        Acknowledged(0, None if past is None else past.acknowledged[-1].standing),
        Acknowledged(len(disk.operations), standing(connection)),
    ]

    def watch(_write: Write, moment: Moment) -> None:
        if moment == "after":
            held.append(Acknowledged(len(disk.operations), standing(connection)))
        elif rng.random() < CHECKPOINT_ODDS:
            connection.wal_checkpoint(mode=rng.choice(CHECKPOINTS))

    Drive(world, FaultyStore(connection, watch=watch), outside, progress).run()
    ending = audit(_port(connection), outside)
    connection.close()
    disk.close()
    return Life(world, before, disk.operations, held, outside, progress.acted, ending)


def cut(life: Life, directory: Path, rng: Random, *, again: bool = True) -> Cut:
    """Let power go once, open what is left, check it, and go on to the end."""
    directory.mkdir()
    path = directory / "store.db"
    number = rng.randint(0, len(life.operations))
    done = life.operations[:number]
    loss = Loss(rng.choice(KEEPS), rng.choice(SECTORS))
    seed = rng.random()
    files = survivors(life.before, done, loss, Random(seed))
    write_files(path, files)
    acted, outside = _world_at(life, number)
    connection = _connect(path, life.world)
    left = _check_files(life, number, connection)
    held = [Acknowledged(0, left)]
    rest = life._replace(outside=outside, acted=acted, acknowledged=held)
    if again and rng.random() < TWICE:
        connection.close()
        second = live(life.world, path, rest)
        _check_ending(life, second.ending)
        cut(second, directory / "again", rng, again=False)
    else:
        connection.execute("PRAGMA synchronous = OFF")  # from here on power stays
        Drive(life.world, FaultyStore(connection), outside, Progress(acted)).run()
        _check_ending(life, audit(_port(connection), outside))
        connection.close()
    shutil.rmtree(directory)
    whole = survivors(life.before, done, Loss("all", loss.sector), Random(seed))
    promised, under_way = _promised(life, number)
    return Cut(torn=under_way and left == promised, lossy=files != whole)


def standing(connection: apsw.Connection) -> Standing:
    """What a store holds now."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    rows = hashlib.sha256()
    for (table,) in tables.fetchall():
        found = connection.execute(f"SELECT * FROM {table}").fetchall()
        rows.update(repr((table, found)).encode())
    turns: list[Any] = connection.execute("SELECT p, turn FROM partition ORDER BY p").fetchall()
    versions: list[Any] = connection.execute(
        "SELECT n, version FROM snapshot ORDER BY n"
    ).fetchall()
    return Standing(tuple(turns), tuple(versions), rows.hexdigest())


def _connect(path: Path, world: World, vfs: str = "") -> apsw.Connection:
    new = NewStore(
        epoch_ms=VIRTUAL_EPOCH_MS,
        resolution_ms=RESOLUTION_MS,
        clock="virtual",
        partitions=PARTITIONS,
        store_id=timed_id(VIRTUAL_EPOCH_MS, world.seed.to_bytes(10, "big")),
    )
    # The connection alone: a store of ours would checkpoint from a thread, at no repeatable time.
    return open_store(path, create=new, vfs=vfs)._connection  # noqa: SLF001


def _world_at(life: Life, number: int) -> tuple[int, Outside]:
    """How far the callers were, and what had happened outside, when power went."""
    if number == len(life.operations):
        return life.acted, life.outside.until(len(life.outside.deeds))
    deeds, acted = life.operations[number].moment
    return acted, life.outside.until(deeds)


def _check_files(life: Life, number: int, connection: apsw.Connection) -> Standing:
    """Nothing is damaged, nothing acknowledged is lost, nothing is there by half."""
    damage = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    if damage:
        raise Wrong(f"the database is damaged: {damage[:3]}")
    last = _last(life, number)
    promised = life.acknowledged[last].standing
    allowed = [each.standing for each in life.acknowledged[last : last + 2]]
    found = standing(connection)
    if promised is not None:
        _check_not_less("turns", promised.turns, found.turns)
        _check_not_less("versions", promised.versions, found.versions)
    if found not in allowed:
        raise Wrong("the store holds neither what was acknowledged nor the whole next write")
    return found


def _last(life: Life, number: int) -> int:
    """The place of the last write that had returned when power went."""
    return max(i for i, each in enumerate(life.acknowledged) if each.operations <= number)


def _promised(life: Life, number: int) -> tuple[Standing | None, bool]:
    """What was acknowledged when power went, and whether the next write had begun to write."""
    last = _last(life, number)
    held = life.acknowledged[last]
    return held.standing, number > held.operations and last + 1 < len(life.acknowledged)


def _check_not_less(what: str, promised: Any, found: Any) -> None:
    now = dict(found)
    for key, number in promised:
        if now.get(key, 0) < number:
            raise Wrong(
                f"lost: {what} of {key} stood at {number}, acknowledged; now {now.get(key)}"
            )


def _check_ending(life: Life, ending: Ending) -> None:
    if not life.world.traits.wild:
        compare(life.ending, ending)


def _port(connection: apsw.Connection) -> Store:
    return cast("Store", FaultyStore(connection))


def _text(error: BaseException) -> str:
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, Wrong):
        return told
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    return f"{told} ({where})"
