"""`python -m detent.testing.simulate`: seeded worlds, each crashed at every write it makes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from detent.testing.simulation import Failure, Report, simulate

SAMPLE = 20
SHOWN = 10
_SECONDS = 5.0


class Total(NamedTuple):
    """The sums of many reports."""

    seeds: int = 0
    writes: int = 0
    crashes: int = 0
    once_calls: int = 0
    decided: int = 0
    failures: tuple[Failure, ...] = ()

    def plus(self, report: Report) -> Total:
        """With one more report."""
        return Total(
            self.seeds + 1,
            self.writes + report.writes,
            self.crashes + report.crashes,
            self.once_calls + report.once_calls,
            self.decided + report.decided,
            (*self.failures, *report.failures),
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run, report, and return the exit status."""
    told = _arguments().parse_args(argv)
    seeds = [told.seed] if told.seed is not None else range(told.first, told.first + told.seeds)
    sample = SAMPLE if told.crash_points == "sample" else None
    began = time.monotonic()
    shown = began
    total = Total()
    for report in _reports(seeds, partial(simulate, sample=sample, only=told.point), told.jobs):
        total = total.plus(report)
        for failure in report.failures[:1]:
            print(_told(failure, len(report.failures)), flush=True)
        if time.monotonic() - shown > _SECONDS:
            shown = time.monotonic()
            print(
                f"{total.seeds} of {len(seeds)} seeds, {total.crashes:,} crashes, "
                f"{len(total.failures)} failures, {shown - began:.0f} s",
                flush=True,
            )
    print(_summary(total, time.monotonic() - began))
    return 1 if total.failures else 0


def _reports(seeds: Sequence[int], run: partial[Report], jobs: int) -> Iterator[Report]:
    if jobs == 1 or len(seeds) == 1:
        yield from map(run, seeds)
        return
    # Fresh processes: a forked one would share locks with the threads of this one.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=4)


def _summary(total: Total, seconds: float) -> str:
    share = 100 * total.decided / total.once_calls if total.once_calls else 0.0
    return (
        f"{total.seeds:,} seeds, {total.writes:,} writes, {total.crashes:,} crash points, "
        f"{len(total.failures)} failures in {seconds:.0f} s\n"
        f"once effects: {total.once_calls:,} calls over all runs, {total.decided:,} "
        f"decided by a person ({share:.1f} %), none called twice unasked"
        if not total.failures
        else f"{total.seeds:,} seeds, {total.crashes:,} crash points, "
        f"{len(total.failures)} FAILURES in {seconds:.0f} s"
    )


def _told(failure: Failure, count: int) -> str:
    where = f"crash {failure.point}" if failure.point else "no crash at all"
    more = f" (and {count - 1} more of this seed)" if count > 1 else ""
    point = f" --point {failure.point}" if failure.point else ""
    return (
        f"\nseed {failure.seed}, {where}: {failure.message}{more}\n"
        f"repeat it with: python -m detent.testing.simulate --seed {failure.seed}{point}\n"
    )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m detent.testing.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="one seed only")
    parser.add_argument("--point", default="", help="one crash of that seed, as 12:during")
    parser.add_argument("--crash-points", choices=("all", "sample"), default="all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
