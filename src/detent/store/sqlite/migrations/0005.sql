-- The server's catalogue: what clients of the API know a definition by, and everything else that
-- is named, listed and looked up, but neither moves nor is proved.

-- The id and instant of making that a client chose, and how far a version is published. A derived
-- id cannot be computed here: rows of earlier releases are given theirs as the store is opened.
ALTER TABLE definition ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE definition ADD COLUMN status TEXT NOT NULL DEFAULT 'production';
ALTER TABLE definition ADD COLUMN created_at TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX definition_id ON definition(id) WHERE id <> '';

-- One table for all kinds: triggers, sessions, credentials, API keys, checkpoints and so on. The
-- body is a value of the kind's own; the columns are what any kind is found by. A number is never
-- given twice, so that a page begins where the one before it ended, whatever was removed.
CREATE TABLE record(
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    key        TEXT,
    owner      TEXT,
    body       BLOB    NOT NULL,
    rev        INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX record_id ON record(kind, id);
CREATE UNIQUE INDEX record_key ON record(kind, tenant, key) WHERE key IS NOT NULL;
CREATE INDEX record_kind ON record(kind, n);
CREATE INDEX record_tenant ON record(kind, tenant, n);
CREATE INDEX record_owner ON record(kind, owner, n) WHERE owner IS NOT NULL;
