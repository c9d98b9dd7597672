"""Settings of an engine: what is fixed in the store, and what one process chooses."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from detent.model import limits
from detent.model.errors import RequestError
from detent.runtime.settings import WriterSettings

ClockMode = Literal["wall", "stepped", "virtual"]
WriterPlace = Literal["thread", "process"]


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen when an engine is opened."""

    path: str
    writer: WriterPlace = "thread"
    clock: ClockMode | None = None  # None: as the store was created, wall for a new one
    resolution_ms: int | None = None
    partitions: int | None = None
    epoch_ms: int | None = None
    max_in_flight: int = 1_000
    threads: int | None = None
    switch_interval_ms: float | None = 1.0  # how long a busy Python thread keeps the writer waiting
    seed: str | None = None  # virtual time: salts, ids and instance seeds derive from it
    turns: WriterSettings = WriterSettings()


def check(settings: Settings) -> Settings:
    """Refuse values that no engine can work with."""
    if settings.writer not in ("thread", "process"):
        raise _bad("writer", "'thread' or 'process'", settings.writer)
    if settings.clock not in (None, "wall", "stepped", "virtual"):
        raise _bad("clock", "'wall', 'stepped' or 'virtual'", settings.clock)
    if settings.clock == "virtual" and settings.writer == "process":
        raise _bad("writer", "'thread' with a virtual clock", settings.writer)
    resolution_ms = settings.resolution_ms
    if resolution_ms is not None and not 1 <= resolution_ms <= limits.RESOLUTION_MS:
        raise _bad("resolution_ms", f"1 to {limits.RESOLUTION_MS}", resolution_ms)
    if settings.partitions is not None and not 1 <= settings.partitions <= limits.PARTITIONS_MOST:
        raise _bad("partitions", f"1 to {limits.PARTITIONS_MOST}", settings.partitions)
    return settings


def _bad(name: str, expected: str, got: object) -> RequestError:
    return RequestError("request.invalid", f"{name} must be {expected}; got {got!r}")
