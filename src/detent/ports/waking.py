"""Wake-ups between the processes of one store. A lost one costs latency and nothing else."""

from __future__ import annotations

from typing import NamedTuple, Protocol

Topic = tuple[str, str, str]  # handler, queue and tenant of a work item


class Wake(NamedTuple):
    """What there is to look at."""

    partitions: tuple[int, ...] = ()  # arrivals were left for these
    work: tuple[Topic, ...] = ()  # one more item of each can be had
    missed: bool = False  # wake-ups may have been lost: there may be anything


class Listener(Protocol):
    """Hears wake-ups on a thread of its own."""

    @property
    def address(self) -> str:
        """Where others send wake-ups for this one alone; empty where all are told."""

    def start(self) -> None: ...
    def close(self) -> None: ...
