"""`detent cluster`: the processes that share a store."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec import to_builtins

from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.reader import reading_file
from detent.cli.screen import Cell, Screen, Table
from detent.cli.shown import plural
from detent.cli.times import span
from detent.runtime.clock import wall_time_ms
from detent.service import cluster as service


@click.group()
@shared
def cluster() -> None:
    """See which processes own a store."""


@cluster.command()
@shared
@pass_invocation
def status(options: Invocation) -> None:
    """Show who owns which partitions, how old the leases are, and what waits.

    A partition without an owner is taken by a process that shares the store when it next looks.
    """
    with reading_file(options) as reader:
        found = service.cluster(reader.store, wall_time_ms(), reader.now_ms)
    options.emit(to_builtins(found), lambda screen: _show(screen, found))


def _show(screen: Screen, found: service.ClusterView) -> None:
    rows: list[Sequence[str | Cell]] = []
    now_ms = wall_time_ms()
    for node in found.nodes:
        held = [each for each in found.partitions if each.owner == node.id]
        rows.append(
            (
                f"{node.host}:{node.pid}",
                node.status,
                ranges([each.partition for each in held]) or "-",
                span(max(0, now_ms - node.last_heartbeat_ms)),
                span(min((each.lease_left_ms for each in held), default=0)),
                span(max((each.late_ms for each in held), default=0)),
                f"{sum(each.waiting for each in held):,}",
            )
        )
    columns = ("process", "status", "partitions", "lease age", "lease left", "late", "waiting")
    screen.table(Table(columns=columns, rows=rows, empty="no process owns this store"))
    free = [each for each in found.partitions if not each.owner]
    if free:
        waiting = sum(each.waiting for each in free)
        numbers = ranges([each.partition for each in free])
        screen.line(f"nobody owns {numbers}; {plural(waiting, 'input')} waiting there")


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as people write them: 0-3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
