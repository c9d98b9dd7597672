"""The change feed on PostgreSQL: a lane for each partition, whose one writer orders it.

Positions of two partitions are not in the order of their commits, so each lane is read on from its
own; a page is merged by position, which for one writer is the order of its commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.ids import SYSTEM
from detent.ports.feed import FeedPage, FeedRow
from detent.store.postgres.statements import Rows

if TYPE_CHECKING:
    from detent.ports.feed import FeedQuery
    from detent.store.postgres.session import Session

# The engine's own instances are left out after the limit, so that they cannot make a page costly.
_ROWS = Rows(
    f"""
SELECT found.p, found.pos, i.id, found.seq, found.tick, found.snapshot_digest, found.body,
    i.ns = '{SYSTEM}'
FROM (
    SELECT each.* FROM $rows CROSS JOIN LATERAL (
        SELECT j.p, j.pos, j.inst, j.seq, j.tick, j.snapshot_digest, j.body FROM journal j
        WHERE j.moved = $1 AND j.p = new.p AND j.pos > new.after
        ORDER BY j.pos LIMIT $2) AS each
    ORDER BY each.pos LIMIT $2) AS found
JOIN instance i ON i.n = found.inst
ORDER BY found.pos
""",
    "p int, after int",
)
_ENDS = """
SELECT p, coalesce((SELECT t.pos FROM turn t WHERE t.p = partition.p ORDER BY t.n DESC LIMIT 1), 0)
FROM partition ORDER BY p
"""


def feed(session: Session, query: FeedQuery, partitions: int) -> FeedPage:
    """The next rows in which instances of the tenant moved."""
    at = dict(query.after)  # a lane that nothing was read of is not named
    lanes = [(p, at.get(str(p), 0)) for p in range(partitions)]
    found = session.rows(*_ROWS.of(lanes, query.tenant, query.limit))
    for row in found:
        at[str(row[0])] = row[1]
    rows = [FeedRow(str(row[0]), *row[1:-1]) for row in found if not row[-1]]
    return FeedPage(rows, at, more=len(found) == query.limit)


def feed_ends(session: Session) -> dict[str, int]:
    """The newest position of each lane."""
    return {str(p): pos for p, pos in session.rows(_ENDS)}
