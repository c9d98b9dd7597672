"""Saying why a commit was not taken: which partitions were lost, which instances contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.store.sqlite.statements import ManyKeys, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.ports.store import Commit

_SELECT_FENCES = "SELECT p, owner, fence_epoch, turn FROM partition"
_SELECT_VERSIONS = ManyKeys("SELECT n, version FROM snapshot WHERE n IN ($keys)")
_SELECT_NUMBERS = ManyKeys("SELECT n FROM instance WHERE n IN ($keys)")
_SELECT_IDS = ManyKeys("SELECT id FROM instance WHERE id IN ($keys)")


class Contradicted(Exception):
    """A guarded write found other rows than the commit was decided on."""

    def __init__(self, reason: str, effects: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason  # version | birth | flight
        self.effects = list(effects)  # withdrawn too late: their calls began


def fenced(connection: apsw.Connection, commit: Commit) -> StoreError:
    """Called after the fence and before the rollback: what it hit has the next turn number."""
    stored = {row[0]: row for row in rows_of(connection, _SELECT_FENCES)}
    lost = []
    for turn in commit.partitions:
        _, owner, epoch, number = stored.get(turn.p, (turn.p, "", -1, -1))
        if (epoch, number) != (turn.fence_epoch, turn.turn + 1):
            lost.append({"p": turn.p, "owner": owner, "fence_epoch": epoch, "turn": number})
    names = ", ".join(str(row["p"]) for row in lost)
    return StoreError(
        "store.fenced",
        f"partitions {names} were taken over or have moved on; read them again before going on",
        partitions=[row["p"] for row in lost],
        stored=lost,
    )


def conflict(connection: apsw.Connection, commit: Commit, found: Contradicted) -> StoreError:
    """Called after the rollback: the instances of the commit that do not fit what is stored."""
    if found.reason == "flight":
        return StoreError(
            "store.conflict",
            f"these effects were to be withdrawn and their calls have begun: "
            f"{', '.join(found.effects[:5])}; decide anew with that",
            reason=found.reason,
            effects=found.effects,
            instances=[],
        )
    if found.reason == "birth":
        instances = _births_there(connection, commit)
        sentence = "these ids were to be born and exist already"
    else:
        instances = _versions_moved(connection, commit)
        sentence = "these instances are not at the version before the one to be written"
    return StoreError(
        "store.conflict",
        f"{sentence}: {', '.join(instances[:5])}; read them again and decide anew",
        reason=found.reason,
        instances=instances,
    )


def _births_there(connection: apsw.Connection, commit: Commit) -> list[str]:
    births = [change.id for change in commit.changes if change.birth is not None]
    there = {row[0] for row in _SELECT_IDS.fetch(connection, births)}
    return [born for at, born in enumerate(births) if born in there or born in births[:at]]


def _versions_moved(connection: apsw.Connection, commit: Commit) -> list[str]:
    changes = [change for change in commit.changes if change.birth is None]
    numbers = [change.n for change in changes]
    versions = dict(_SELECT_VERSIONS.fetch(connection, numbers))
    exist = {row[0] for row in _SELECT_NUMBERS.fetch(connection, numbers)}
    return [
        change.id
        for change in changes
        if change.n not in exist or versions.get(change.n, 0) != change.version - 1
    ]
