"""Ids: derived ones are de-duplication by primary key, others are ordered by time."""

from __future__ import annotations

import hashlib
from typing import Literal

Space = Literal[
    "instance",
    "dry-run",
    "request",
    "child",
    "schedule",
    "cron",  # what a schedule starts; the schedule itself is in "schedule"
    "gate",
    "signal",
    "webhook",
    "event",
    "events",
    "wait",
    "definition",
    "work",
    "attempt",  # a line in the history of a task
]

_VERSION_AT = 14  # where a UUID says its version

SYSTEM = "detent"  # the namespace of the engine's own instances


def derived_id(tenant: str, space: Space, key: str) -> str:
    """The UUIDv8 of (tenant, space, key): the same words give the same id for ever."""
    words = f"{tenant}\x00{space}\x00{key}".encode("utf-8", "surrogatepass")
    return _uuid(hashlib.sha256(words).digest()[:16], 8)


def timed_id(ms: int, chance: bytes) -> str:
    """A UUIDv7 from a time in milliseconds and ten bytes of chance."""
    return _uuid(ms.to_bytes(6, "big") + chance[:10], 7)


def is_timed(id: str) -> bool:
    """Whether an id was made by time and chance, so that nothing has it yet when it is new."""
    return id[_VERSION_AT : _VERSION_AT + 1] == "7"


def partition_of(instance: str, partitions: int) -> int:
    """The partition an instance belongs to, stable over releases."""
    return int.from_bytes(hashlib.sha256(instance.encode()).digest()[:8], "big") % partitions


def effect_key(instance: str, generation: int, node: str, attempt: int) -> str:
    """The key of an effect: the same after doubt, crash, redelivery and in replay."""
    words = f"{instance}\x00{generation}\x00{node}\x00{attempt}"
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def work_id(effect: str) -> str:
    """The id of the work item of an effect: a retry has another, a reclaim keeps it."""
    return derived_id("", "work", effect)


def _uuid(raw: bytes, version: int) -> str:
    number = int.from_bytes(raw, "big")
    number &= ~(0xF << 76) & ~(0x3 << 62)
    number |= (version << 76) | (0x2 << 62)
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
