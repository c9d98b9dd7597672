"""Where the time of a step goes: w1 under a sampling-free profile, summed by part of the engine."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import detent
from bench.load import HANDLERS, STEPS, W1, place

PARTS = ("kernel", "runtime", "store", "handlers", "bootstrap", "model", "expression", "service")


def share_by_part(
    count: int = 2_000,
    definition: detent.Definition = W1,
    prepare: Callable[[detent.Engine], None] = lambda _engine: None,
) -> dict[str, float]:
    """The share of the writer's own time in each part; virtual time, so that all is one thread."""
    with (
        place() as directory,
        detent.Engine(directory / "p.db", clock="virtual", handlers=HANDLERS, seed="p") as engine,
    ):
        prepare(engine)
        engine.start_many(definition, [{"i": i} for i in range(count)])
        profile = cProfile.Profile()
        profile.enable()
        engine.run_until_idle()
        profile.disable()
    spent: dict[str, float] = {}
    for (path, _line, name), row in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        spent[_part(path, name)] = spent.get(_part(path, name), 0.0) + row[2]
    total = sum(spent.values())
    ordered = sorted(spent.items(), key=lambda pair: -pair[1])
    return {part: round(seconds / total, 3) for part, seconds in ordered if seconds / total > 0.01}


def _part(path: str, name: str) -> str:
    for part in PARTS:
        if f"/detent/{part}/" in path:
            return part
    for library, word in (("apsw", "sqlite"), ("msgspec", "msgspec"), ("hashlib", "sha256")):
        if library in name:
            return word
    if "lock" in name or "select" in name:
        return "waiting for handlers"
    return "python"


__all__ = ["STEPS", "share_by_part"]
