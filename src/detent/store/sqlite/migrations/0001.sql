-- The first schema. Files of this directory are never changed once released: add the next number.
--
-- 3-4 rows per instance-turn: snapshot, journal, a share of partition and turn, and the instance
-- row only when a listed column changes. Every index is paid for in each turn, so each says who
-- needs it.

-- What is fixed when the store is created; exactly one row.
CREATE TABLE store(
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    store_id      TEXT    NOT NULL,
    epoch_ms      INTEGER NOT NULL,
    resolution_ms INTEGER NOT NULL,
    clock         TEXT    NOT NULL,
    partitions    INTEGER NOT NULL
) STRICT;

CREATE TABLE owner(
    id          TEXT    PRIMARY KEY,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    wake        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Fence, lease and head: the row that every commit updates first.
CREATE TABLE partition(
    p           INTEGER PRIMARY KEY,
    owner       TEXT    NOT NULL DEFAULT '',
    fence_epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    turn        INTEGER NOT NULL DEFAULT 0,
    tick        INTEGER NOT NULL DEFAULT 0,
    root        BLOB    NOT NULL
) STRICT;

CREATE TABLE instance(
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    p          INTEGER NOT NULL,
    tenant     TEXT    NOT NULL,
    ns         TEXT    NOT NULL,
    definition TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    prio       INTEGER NOT NULL,
    due        INTEGER,
    busy       INTEGER NOT NULL,
    key        TEXT,
    parent     TEXT,
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    salt       BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX instance_id ON instance(id);
-- Turn order without a sort. The partition comes last: one process owns a SQLite store, so it
-- filters next to nothing, and new deadlines all go to the end of the index.
CREATE INDEX instance_due ON instance(prio, due, p) WHERE due IS NOT NULL;
-- Recovery.
CREATE INDEX instance_busy ON instance(n, p) WHERE busy = 1;
-- Lists and counts.
CREATE INDEX instance_state ON instance(tenant, state);
CREATE INDEX instance_parent ON instance(parent) WHERE parent IS NOT NULL;

CREATE TABLE snapshot(
    n       INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE TABLE journal(
    pos             INTEGER PRIMARY KEY,
    inst            INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    turn            INTEGER NOT NULL,
    tick            INTEGER NOT NULL,
    snapshot_digest BLOB    NOT NULL,
    digest          BLOB    NOT NULL,
    body            BLOB,
    head            BLOB    NOT NULL
) STRICT;

-- Newest head of an instance, and its journal from any seq; pos follows by itself.
CREATE INDEX journal_inst ON journal(inst, seq);

-- Not WITHOUT ROWID: heads make rows too long for index pages.
CREATE TABLE turn(
    p       INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    tick    INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    heads   BLOB    NOT NULL,
    root    BLOB    NOT NULL,
    PRIMARY KEY (p, n)
) STRICT;

-- Waiting while body is set; once taken only (id, verdict) is left, until the dedupe window ends.
CREATE TABLE arrival(
    n       INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL,
    p       INTEGER,
    inst    TEXT,
    body    BLOB,
    verdict BLOB,
    taken   INTEGER
) STRICT;

CREATE UNIQUE INDEX arrival_id ON arrival(id);
CREATE INDEX arrival_waiting ON arrival(n, p) WHERE body IS NOT NULL;
CREATE INDEX arrival_taken ON arrival(taken) WHERE taken IS NOT NULL;

-- Start marks, and tombstones where the dispatcher is empty.
CREATE TABLE flight(
    effect     TEXT    PRIMARY KEY,
    dispatcher TEXT    NOT NULL,
    dispatch   INTEGER NOT NULL,
    since      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Forgetting tombstones.
CREATE INDEX flight_withdrawn ON flight(since) WHERE dispatcher = '';

CREATE TABLE seal(
    n         INTEGER PRIMARY KEY,
    tick      INTEGER NOT NULL,
    roots     BLOB    NOT NULL,
    digest    BLOB    NOT NULL,
    signature BLOB    NOT NULL
) STRICT;

CREATE TABLE doubt(
    effect   TEXT    PRIMARY KEY,
    inst     TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    next_try INTEGER,
    since    INTEGER NOT NULL,
    reason   TEXT    NOT NULL
) STRICT;

CREATE INDEX doubt_inst ON doubt(inst);

-- Not WITHOUT ROWID: bodies are larger than pages.
CREATE TABLE blob(
    inst   TEXT NOT NULL,
    digest TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (inst, digest)
) STRICT;

CREATE TABLE definition(
    hash       TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    ns         TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    deprecated INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, ns, name, version)
) STRICT;

CREATE INDEX definition_hash ON definition(hash);

CREATE TABLE setting(
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
