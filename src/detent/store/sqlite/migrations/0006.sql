-- Work items: calls for external workers. Written with the turn that decides them, moved by guarded
-- updates of whoever serves workers. Small columns come first, so that lists and counts need not
-- read the rest.

CREATE TABLE work_item(
    n              INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL,
    effect         TEXT    NOT NULL,
    instance       TEXT    NOT NULL,
    tenant         TEXT    NOT NULL,
    block          TEXT    NOT NULL,
    handler        TEXT    NOT NULL,
    queue          TEXT    NOT NULL,
    attempt        INTEGER NOT NULL,
    timeout_ms     INTEGER,
    state          TEXT    NOT NULL DEFAULT 'pending',
    worker         TEXT,
    claim_epoch    INTEGER NOT NULL DEFAULT 0,
    created_ms     INTEGER NOT NULL,
    available_ms   INTEGER NOT NULL,
    claimed_ms     INTEGER,
    heartbeat_ms   INTEGER,
    lease_ms       INTEGER, -- while claimed: when it must be looked at
    deadline_ms    INTEGER, -- while claimed: when its own time is over
    lost           INTEGER NOT NULL DEFAULT 0, -- claims that ended in silence since the last checkpoint
    checkpoint_seq INTEGER NOT NULL,
    completed_ms   INTEGER,
    retryable      INTEGER,
    error          TEXT,
    params         BLOB    NOT NULL,
    context        BLOB    NOT NULL,
    checkpoint     BLOB,
    output         BLOB,
    logs           BLOB
) STRICT;

CREATE UNIQUE INDEX work_item_id ON work_item(id);
-- Polling, oldest first, each form of it by an index of its own: of a tenant or of all, by handler
-- or by queue. They hold what is pending and nothing else.
CREATE INDEX work_poll ON work_item(handler, tenant, available_ms, n) WHERE state = 'pending';
CREATE INDEX work_poll_all ON work_item(handler, available_ms, n) WHERE state = 'pending';
CREATE INDEX work_queue ON work_item(handler, queue, tenant, available_ms, n)
    WHERE state = 'pending' AND queue <> '';
CREATE INDEX work_queue_all ON work_item(handler, queue, available_ms, n)
    WHERE state = 'pending' AND queue <> '';
-- The reaper.
CREATE INDEX work_lease ON work_item(lease_ms) WHERE state = 'claimed';
-- Counts; who holds how many.
CREATE INDEX work_counts ON work_item(tenant, handler, state);
CREATE INDEX work_held ON work_item(worker, tenant) WHERE state = 'claimed';
-- Forgetting.
CREATE INDEX work_over ON work_item(completed_ms) WHERE completed_ms IS NOT NULL;
-- What workers wrote down, by instance.
CREATE INDEX work_logs ON work_item(instance, n) WHERE logs IS NOT NULL;

-- What became of an item, in order.
CREATE TABLE work_event(
    n           INTEGER PRIMARY KEY,
    item        TEXT    NOT NULL,
    claim_epoch INTEGER NOT NULL,
    worker      TEXT,
    event       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;

CREATE INDEX work_event_item ON work_event(item, n);

-- Who polled for what, and when last; tenant '' is a worker of all tenants.
CREATE TABLE worker(
    tenant  TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    handler TEXT    NOT NULL,
    queue   TEXT    NOT NULL,
    version TEXT,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, id, handler, queue)
) STRICT, WITHOUT ROWID;

CREATE INDEX worker_seen ON worker(seen_ms);
