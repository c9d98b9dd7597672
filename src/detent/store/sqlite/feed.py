"""The change feed on SQLite: one lane, since transactions are committed one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.ids import SYSTEM
from detent.ports.feed import FeedPage, FeedRow
from detent.store.sqlite.statements import row_of, rows_of

if TYPE_CHECKING:
    import apsw

    from detent.ports.feed import FeedQuery

LANE = "all"
# The engine's own instances are left out after the limit, so that they cannot make a page costly.
_ROWS = f"""
SELECT j.pos, i.id, j.seq, j.tick, j.snapshot_digest, j.body, i.ns = '{SYSTEM}'
FROM (SELECT pos FROM journal INDEXED BY journal_moved WHERE moved = ? AND pos > ?
    ORDER BY pos LIMIT ?) AS found
CROSS JOIN journal j ON j.pos = found.pos CROSS JOIN instance i ON i.n = j.inst
ORDER BY j.pos
"""


def feed(connection: apsw.Connection, query: FeedQuery) -> FeedPage:
    """The next rows in which instances of the tenant moved."""
    after = query.after.get(LANE, 0)
    found = rows_of(connection, _ROWS, (query.tenant, after, query.limit))
    rows = [FeedRow(LANE, *row[:-1]) for row in found if not row[-1]]
    at = found[-1][0] if found else after
    return FeedPage(rows, {LANE: at}, more=len(found) == query.limit)


def feed_ends(connection: apsw.Connection) -> dict[str, int]:
    """The newest position."""
    return {LANE: row_of(connection, "SELECT coalesce(max(pos), 0) FROM journal")[0]}
