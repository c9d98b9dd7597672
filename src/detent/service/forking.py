"""Forking an instance before one of its blocks, and saying what is copied and what runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from detent.kernel.places import Places
from detent.model.snapshot import decode_snapshot
from detent.service.arguments import invalid
from detent.service.histories import program_now
from detent.service.proving import fork_input, fork_of
from detent.service.reading import find_instance
from detent.service.steering import brought_signals

if TYPE_CHECKING:
    from detent.kernel.fork import ForkRequest
    from detent.kernel.program import Program
    from detent.model.link import Submission
    from detent.ports.store import Store


class ForkPlan(NamedTuple):
    """What makes the fork, how many blocks have their output copied, and which run again."""

    submission: Submission
    copied: int
    rerun: tuple[str, ...]


def fork_signals(signals: Any) -> tuple[tuple[str, Any], ...]:
    """Signals for a fork: update_context, or some of the caller's own."""
    return tuple((each["name"], each["payload"]) for each in brought_signals(signals))


def plan_fork(store: Store, instance: str, tenant: str | None, request: ForkRequest) -> ForkPlan:
    """A fork that begins before the block or node, or after the row, that the request names."""
    row = find_instance(store, instance, tenant)
    forked = fork_input(store, instance, tenant, request)
    rerun = _from(program_now(store, row), request.before) if request.before else ()
    snapshot = decode_snapshot(forked.snapshot)
    return ForkPlan(fork_of(forked, snapshot), len(snapshot.outputs), rerun)


def _from(program: Program, path: str) -> tuple[str, ...]:
    """The blocks of the top level from the one that holds a node on."""
    place = Places(program).find(path)
    node = None if place is None else place.node
    while node is not None and node.parent:
        node = program.nodes.get(node.parent)
    if node not in program.main:
        raise invalid("from_block_id", "a block of the instance, or the path of a node", path)
    return tuple(each.id for each in program.main[program.main.index(node) :])
