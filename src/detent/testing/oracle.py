"""`python -m detent.testing.oracle`: the calendar against brute force, at every change of offset.

For every IANA zone and every change of its offset from 2000 to 2040 all wall minutes around it are
turned into instants under every policy; windows and cron expressions with edges before, in and
after the gap or fold are asked minute by minute. Zones with the very same data are asked for
windows and cron under one of their names.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from detent.testing.brute_time import Walk, changes_of, zone_groups
from detent.testing.comparing import Count, compare_cron, compare_instants, compare_windows

HOUR = 60
DAY = 24 * HOUR
SHOWN = 20


class Total(NamedTuple):
    """What was compared, and what differed."""

    zones: int = 0
    changes: int = 0
    instants: int = 0
    windows: int = 0
    crons: int = 0
    differences: tuple[str, ...] = ()

    def plus(self, other: Total) -> Total:
        """Both together."""
        return Total(
            self.zones + other.zones,
            self.changes + other.changes,
            self.instants + other.instants,
            self.windows + other.windows,
            self.crons + other.crons,
            self.differences + other.differences,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, report, and return 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="detent.testing.oracle", description=__doc__)
    parser.add_argument("--zone", help="one zone only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    told = parser.parse_args(argv)
    groups = [[told.zone]] if told.zone else zone_groups()
    began = time.monotonic()
    total = Total()
    with ProcessPoolExecutor(told.jobs) as pool:
        # One group at a time: with many changes in some and none in others, chunks would be uneven.
        for found in pool.map(partial(compare_group, step=HOUR), groups):
            total = total.plus(found)
            if sys.stderr.isatty():
                print(f"\r{total.zones} zones, {total.changes:,} changes", end="", file=sys.stderr)
    for difference in total.differences[:SHOWN]:
        print(difference)
    print(report(total), f"in {time.monotonic() - began:.0f} s")
    return 1 if total.differences else 0


def report(total: Total) -> str:
    """Say in one line what was compared."""
    return (
        f"{total.zones:,} zones, {total.changes:,} changes of offset: {total.instants:,} instants, "
        f"{total.windows:,} window answers, {total.crons:,} cron fires, "
        f"{len(total.differences):,} differences"
    )


def sample(seed: int, zones: int, changes: int) -> Total:
    """Compare some changes of some zones, the same ones for the same seed."""
    chance = random.Random(seed)
    total = Total()
    for names in chance.sample(zone_groups(), zones):
        found = list(changes_of(names[0], DAY))
        picked = chance.sample(found, min(changes, len(found)))
        for change in sorted(picked):
            total = total.plus(compare_change(names, change))
        total = total.plus(Total(zones=len(names)))
    return total


def compare_group(names: list[str], step: int) -> Total:
    """Compare every change of the zones that share one set of data."""
    total = Total(zones=len(names))
    for change in changes_of(names[0], step):
        total = total.plus(compare_change(names, change))
    return total


def compare_change(names: list[str], change: int) -> Total:
    """Compare everything around one change of offset."""
    walk = Walk(names[0], change)
    instants, windows, crons = Count(), Count(), Count()
    for name in names:
        compare_instants(walk, name, instants)
    compare_windows(walk, names[0], windows)
    compare_cron(walk, names[0], crons)
    differing = list(_told(names, change, instants, windows, crons))
    return Total(
        0, len(names), instants.made, windows.made, crons.made, differences=tuple(differing)
    )


def _told(names: list[str], change: int, *counts: Count) -> Iterator[str]:
    when = datetime.fromtimestamp(change * 60, UTC).isoformat()
    for count in counts:
        for difference in count.differences:
            yield f"{names[0]} {when}: {difference}; repeat it with --zone {names[0]}"


if __name__ == "__main__":
    raise SystemExit(main())
