"""Saying why a commit was not taken: which partitions were lost, which instances contradict.

Called after the rollback: what is read is what the commit met, or what has become of it since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.store.postgres.flights import flights
from detent.store.postgres.statements import keys

if TYPE_CHECKING:
    from detent.ports.store import Commit
    from detent.store.postgres.session import Session

_SELECT_FENCES = "SELECT p, owner, fence_epoch, turn FROM partition WHERE p = ANY($1)"
_SELECT_VERSIONS = """
SELECT i.n, coalesce(s.version, 0) FROM unnest($1) AS wanted(n)
JOIN instance i ON i.n = wanted.n LEFT JOIN snapshot s ON s.n = i.n
"""
_SELECT_IDS = "SELECT id FROM instance WHERE id = ANY($1)"


def fenced(session: Session, commit: Commit) -> StoreError:
    """The partitions of the commit that are not as it expected them."""
    wanted = keys([turn.p for turn in commit.partitions], "int")
    stored = {row[0]: row for row in session.rows(_SELECT_FENCES, (wanted,))}
    met = [(turn, stored.get(turn.p, (turn.p, "", -1, -1))) for turn in commit.partitions]
    moved = [row for turn, row in met if row[2:] != (turn.fence_epoch, turn.turn)]
    lost = [
        {"p": p, "owner": owner, "fence_epoch": epoch, "turn": number}
        for p, owner, epoch, number in moved or [row for _turn, row in met]
    ]
    names = ", ".join(str(row["p"]) for row in lost)
    return StoreError(
        "store.fenced",
        f"partitions {names} were taken over or have moved on; read them again before going on",
        partitions=[row["p"] for row in lost],
        stored=lost,
    )


def conflict(session: Session, commit: Commit, reason: str) -> StoreError:
    """The rows of the commit that do not fit what is stored: version | birth | flight."""
    if reason == "flight":
        effects = _overtaken(session, commit)
        return StoreError(
            "store.conflict",
            f"these effects were to be withdrawn and their calls have begun: "
            f"{', '.join(effects[:5])}; decide anew with that",
            reason=reason,
            effects=effects,
            instances=[],
        )
    if reason == "birth":
        instances = _births_there(session, commit)
        sentence = "these ids were to be born and exist already"
    else:
        instances = _versions_moved(session, commit)
        sentence = "these instances are not at the version before the one to be written"
    return StoreError(
        "store.conflict",
        f"{sentence}: {', '.join(instances[:5])}; read them again and decide anew",
        reason=reason,
        instances=instances,
    )


def _overtaken(session: Session, commit: Commit) -> list[str]:
    there = flights(session, commit.tombstones)
    marked = {mark.effect for mark in commit.marks}
    return [
        effect
        for effect in commit.tombstones
        if effect in marked or (effect in there and there[effect].dispatcher)
    ]


def _births_there(session: Session, commit: Commit) -> list[str]:
    births = [change.id for change in commit.changes if change.birth is not None]
    there = {row[0] for row in session.rows(_SELECT_IDS, (keys(births),))}
    return [born for at, born in enumerate(births) if born in there or born in births[:at]]


def _versions_moved(session: Session, commit: Commit) -> list[str]:
    changes = [change for change in commit.changes if change.birth is None]
    numbers = keys([change.n for change in changes], "int")
    versions = dict(session.rows(_SELECT_VERSIONS, (numbers,)))
    return [change.id for change in changes if versions.get(change.n) != change.version - 1]
