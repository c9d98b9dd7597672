"""`python -m detent.testing.crash`: kills of a real process, and cuts of its power."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from detent.testing.cuts import CUTS_PER_WORLD, CutReport, cut_world
from detent.testing.kills import StoryReport, tell_story
from detent.testing.postgres import PostgresServer

KILLS = 500
CUTS = 1_000
SHOWN_S = 5.0
COMMAND = "python -m detent.testing.crash"


def main(argv: list[str] | None = None) -> int:
    """Run what is asked for, report, and return the exit status."""
    told = _arguments().parse_args(argv)
    if told.postgres:
        return _kill_on_postgres(told)
    if told.story is not None:
        return _kill_all([tell_story(told.story)], 1)
    if told.cut_seed is not None:
        return _cut_all([cut_world(told.cut_seed, only=told.cut)])
    both = told.kills is None and told.cuts is None
    kills = KILLS if both else told.kills
    cuts = CUTS if both else told.cuts
    failed = 0
    if cuts:
        seeds = range(told.first, told.first + -(-cuts // CUTS_PER_WORLD))
        failed |= _cut_all(_spread(cut_world, seeds, told.jobs))
    if kills:
        failed |= _kill_all(_spread(tell_story, _from(told.first), told.jobs), kills)
    return failed


def _kill_on_postgres(told: argparse.Namespace) -> int:
    """The same kills on a server that is left alone; each story has a schema of its own."""
    with PostgresServer(durable=True) as server:
        seeds = _from(told.first) if told.story is None else iter([told.story])
        stories = (tell_story(seed, server.url(f"story_{seed}")) for seed in seeds)
        wanted = (told.kills or KILLS) if told.story is None else 1
        return _kill_all(stories, wanted, " --postgres")


def _kill_all(stories: Iterable[StoryReport], wanted: int, more: str = "") -> int:
    """Take stories until there were kills enough."""
    began = shown = time.monotonic()
    kills: dict[str, int] = {}
    count = lives = once = decided = failures = 0
    for story in stories:
        count, lives = count + 1, lives + story.lives
        once, decided = once + story.once_calls, decided + story.decided
        for point, times in story.kills.items():
            kills[point] = kills.get(point, 0) + times
        if story.failure:
            failures += 1
            again = f"repeat it with: {COMMAND}{more} --story {story.seed}"
            print(f"\nstory {story.seed}: {story.failure}\n{again}\n", flush=True)
        if time.monotonic() - shown > SHOWN_S:
            shown = time.monotonic()
            killed = sum(kills.values())
            print(f"{killed} kills, {failures} failures, {shown - began:.0f} s", flush=True)
        if sum(kills.values()) >= wanted:
            break
    by_point = ", ".join(f"{point} {kills[point]}" for point in sorted(kills))
    share = 100 * decided / once if once else 0.0
    print(
        f"{sum(kills.values())} kills in {count} stores and {lives} lives of a process, "
        f"{failures} failures in {time.monotonic() - began:.0f} s\n  by point: {by_point}\n"
        f"  once effects: {once} calls, {decided} decided by a person ({share:.1f} %)"
    )
    return 1 if failures else 0


def _cut_all(reports: Iterable[CutReport]) -> int:
    began = shown = time.monotonic()
    seeds = cuts = lossy = failures = 0
    for report in reports:
        seeds, cuts, lossy = seeds + 1, cuts + report.cuts, lossy + report.lossy
        failures += len(report.failures)
        for failure in report.failures[:1]:
            cut = "" if failure.cut is None else f" --cut {failure.cut}"
            again = f"repeat it with: {COMMAND} --cut-seed {failure.seed}{cut}"
            print(f"\nseed {failure.seed}{cut}: {failure.message}\n{again}\n", flush=True)
        if time.monotonic() - shown > SHOWN_S:
            shown = time.monotonic()
            print(f"{cuts} cuts, {failures} failures, {shown - began:.0f} s", flush=True)
    print(
        f"{cuts:,} power cuts in {seeds} worlds, {failures} failures in "
        f"{time.monotonic() - began:.0f} s; by {lossy:,} of them the disk lost what was written"
    )
    return 1 if failures else 0


def _spread(run: Callable[[int], Any], seeds: Iterable[int], jobs: int) -> Iterator[Any]:
    if jobs == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        batch: list[Any] = []
        try:
            for seed in seeds:  # no more than a few ahead: there may be no end of seeds
                batch.append(pool.apply_async(run, (seed,)))
                if len(batch) > jobs:
                    yield batch.pop(0).get()
            while batch:
                yield batch.pop(0).get()
        finally:
            for each in batch:  # one that is cut off would leave its own processes behind
                each.wait()


def _from(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--kills", type=int, help=f"kills of a real process ({KILLS})")
    parser.add_argument("--cuts", type=int, help=f"power cuts ({CUTS})")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--postgres", action="store_true", help="kills only, on PostgreSQL")
    parser.add_argument("--story", type=int, help="one story of kills only")
    parser.add_argument("--cut-seed", type=int, help="the cuts of one world only")
    parser.add_argument("--cut", type=int, help="one cut of that world only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
