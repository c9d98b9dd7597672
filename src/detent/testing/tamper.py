"""`python -m detent.testing.tamper`: harm a store at random, and see that every harm is found.

A store with every kind of row is made once; each round copies it, changes one covered thing
(`tampering`), or cuts its tail off, and verifies it against an anchor taken before.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import apsw

import detent
from detent.kernel.anchor import Anchor
from detent.service.proving import make_anchor, verify_store
from detent.store.sqlite import open_store
from detent.testing.tampering import tamper

CUT_EVERY = 8


@detent.handler
def act(n: int) -> dict[str, int]:
    """The handler of the store's instances."""
    return {"n": n}


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; 0 when every one was found."""
    parser = argparse.ArgumentParser(prog="detent.testing.tamper", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many changes (10000)")
    parser.add_argument("--seed", type=int, help="one change only")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="detent-tamper-") as place:
        path = Path(place) / "whole.db"
        make_store(path)
        seeds = range(given.count) if given.seed is None else range(given.seed, given.seed + 1)
        missed = _missed(path, seeds)
    for seed, what in missed:
        print(f"NOT FOUND: {what}\nrepeat it with: python -m detent.testing.tamper --seed {seed}")
    print(f"{len(seeds)} tamperings, {len(seeds) - len(missed)} found, {len(missed)} missed")
    return 1 if missed else 0


def make_store(path: Path) -> None:
    """A closed store with journal, turns, seals, snapshots, blobs and definitions."""
    body = [
        detent.step("a", act, params={"n": 1}),
        detent.wait("w", duration="1h", signal="go"),
        detent.parallel("p", [detent.step("b", act, params={"n": 2})], [detent.step("c", "noop")]),
    ]
    sequence = detent.sequence("harmed", *body)
    big = {"text": "x" * 40_000}
    with detent.Engine(path, clock="virtual", handlers=[act], seed="tamper") as engine:
        for number in range(40):
            instance = engine.start(sequence, big if number % 10 == 0 else {"number": number})
            if number % 3 == 0:
                engine.signal(instance, "go")
            engine.advance(1_000)
        engine.run_until_idle()
        engine.start(sequence, {"standing": True})
        engine.advance(1_000)


def _missed(path: Path, seeds: range) -> list[tuple[int, str]]:
    anchor = _look(path, make_anchor)
    if not _look(path, lambda store: verify_store(store, anchor)).valid:
        raise SystemExit("the store was not valid to begin with")
    chunk = max(1, len(seeds) // 64)
    parts = [seeds[offset : offset + chunk] for offset in range(0, len(seeds), chunk)]
    missed: list[tuple[int, str]] = []
    with ProcessPoolExecutor() as pool:
        futures = [pool.submit(_rounds, path, part, anchor) for part in parts]
        for number, future in enumerate(futures, 1):
            missed += future.result()
            if sys.stderr.isatty():
                print(f"\r{number * chunk} of {len(seeds)}", end="", file=sys.stderr)
    return missed


def _rounds(path: Path, seeds: range, anchor: Anchor) -> list[tuple[int, str]]:
    missed = []
    with tempfile.TemporaryDirectory(prefix="detent-tamper-") as place:
        copy = Path(place) / "harmed.db"
        for seed in seeds:
            shutil.copyfile(path, copy)
            what = cut_tail(copy, seed) if seed % CUT_EVERY == 0 else tamper(copy, seed)
            if _look(copy, lambda store: verify_store(store, anchor)).valid:
                missed.append((seed, what))
            for leftover in Path(place).glob("harmed.db-*"):
                leftover.unlink()
    return missed


def cut_tail(path: Path, seed: int) -> str:
    """Cut the newest turns of one partition off, with everything that would tell."""
    chance = random.Random(seed)
    connection = apsw.Connection(str(path))
    try:
        rows: list[Any] = connection.execute(
            "SELECT p, max(n) FROM turn GROUP BY p HAVING max(n) > 1"
        ).fetchall()
        p, last = chance.choice(rows)
        keep = last - chance.randint(1, min(3, last - 1))
        connection.execute(
            "DELETE FROM journal WHERE turn > ? AND inst IN (SELECT n FROM instance WHERE p = ?)",
            (keep, p),
        )
        connection.execute("DELETE FROM turn WHERE p = ? AND n > ?", (p, keep))
        connection.execute(
            "UPDATE partition SET turn = ?, root = (SELECT root FROM turn WHERE p = ? AND n = ?)"
            " WHERE p = ?",
            (keep, p, keep, p),
        )
    finally:
        connection.close()
    return f"seed {seed}: partition {p} cut from turn {last} to {keep}"


def _look(path: Path, use: Any) -> Any:
    store = open_store(path, create=None)
    try:
        return use(store)
    except detent.DetentError as error:
        return Refused(error)
    finally:
        store.close()


class Refused:
    """A store that was so harmed that it could not even be read: found."""

    valid = False

    def __init__(self, error: detent.DetentError) -> None:
        self.error = error


if __name__ == "__main__":
    raise SystemExit(main())
