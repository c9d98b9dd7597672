"""The PostgreSQL adapter: a schema of a database, any number of processes.

In call order: `connecting` reads the URL and sets a session up, `opening` makes or checks the
schema, `ownership` takes partitions, `readiness` and `inbox` find what a turn is about, `commit`
writes it through `session` in one round trip, `waking` tells other processes. `views` and
`catalogue` serve everybody else.

Beyond plain SQL it relies on: tables split by hash, sequences, arrays unnested as rows, statements
that write inside WITH, SKIP LOCKED, LISTEN and NOTIFY. It takes no advisory locks.
docs/how-to/run-on-postgresql.md says what that means for databases that speak PostgreSQL's
protocol.
"""

from __future__ import annotations

from detent.store.postgres.opening import open_store
from detent.store.postgres.store import PostgresStore
from detent.store.postgres.waking import PostgresListener

__all__ = ["PostgresListener", "PostgresStore", "open_store"]
