-- The first schema. Files of this directory are never changed once released: add the next number.
--
-- The tables are those of the SQLite store, and so are their names: docs/reference/store-layout.md
-- says what each is for. What differs is said here. Texts are compared byte by byte (COLLATE "C"),
-- so that lists have the same order on every database. An update that moves an indexed column pays
-- for every index of its table, so each index says who needs it.

-- What is fixed when the store is created, and how many migrations it has; exactly one row.
CREATE TABLE store(
    one           integer NOT NULL PRIMARY KEY CHECK (one = 1),
    schema        integer NOT NULL,
    store_id      text    NOT NULL,
    epoch_ms      bigint  NOT NULL,
    resolution_ms bigint  NOT NULL,
    clock         text    NOT NULL,
    partitions    integer NOT NULL
);

CREATE TABLE owner(
    id          text   COLLATE "C" NOT NULL PRIMARY KEY,
    host        text   NOT NULL,
    pid         bigint NOT NULL,
    lease_until bigint NOT NULL,
    wake        text   NOT NULL
);

-- Fence, lease and head: the row that every commit updates first. `cut` is a part of the fence: it
-- rises when an answer to a commit was lost, so that one still on its way to the server is fenced.
CREATE TABLE partition(
    p           integer NOT NULL PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL DEFAULT '',
    fence_epoch bigint  NOT NULL DEFAULT 0,
    lease_until bigint  NOT NULL DEFAULT 0,
    turn        bigint  NOT NULL DEFAULT 0,
    tick        bigint  NOT NULL DEFAULT 0,
    root        bytea   NOT NULL,
    cut         bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

CREATE SEQUENCE instance_n;
CREATE TABLE instance(
    n          bigint  NOT NULL PRIMARY KEY DEFAULT nextval('instance_n'),
    id         text    COLLATE "C" NOT NULL,
    p          integer NOT NULL,
    tenant     text    COLLATE "C" NOT NULL,
    ns         text    COLLATE "C" NOT NULL,
    definition text    COLLATE "C" NOT NULL,
    state      text    COLLATE "C" NOT NULL,
    prio       bigint  NOT NULL,
    due        bigint,
    busy       boolean NOT NULL,
    key        text    COLLATE "C",
    parent     text    COLLATE "C",
    created    bigint  NOT NULL,
    updated    bigint  NOT NULL,
    salt       bytea   NOT NULL
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX instance_id ON instance(id);
-- A stretch of it is the waiting instances of one tenant and priority, in turn order.
CREATE INDEX instance_due ON instance(tenant, prio, due, id) WHERE due IS NOT NULL;
-- Recovery.
CREATE INDEX instance_busy ON instance(n) WHERE busy;
-- Lists and counts.
CREATE INDEX instance_state ON instance(tenant, state, n);
CREATE INDEX instance_definition ON instance(tenant, definition, n);
CREATE INDEX instance_namespace ON instance(tenant, ns, n);
CREATE INDEX instance_parent ON instance(parent, n) WHERE parent IS NOT NULL;
-- The engine's own instances: schedules, gates, correlators, deliveries.
CREATE INDEX instance_own ON instance(n, tenant) WHERE ns = 'detent';
CREATE INDEX instance_own_kind ON instance(definition, state, n) WHERE ns = 'detent';
CREATE INDEX instance_own_tenant ON instance(tenant, definition, state, n) WHERE ns = 'detent';

-- Top-level texts of an instance's metadata, as they were when it was made.
CREATE TABLE label(
    tenant text   COLLATE "C" NOT NULL,
    name   text   COLLATE "C" NOT NULL,
    value  text   COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    PRIMARY KEY (tenant, name, value, n)
);

-- Tables that every turn writes to are split by hash, so that vacuum and retention go through one
-- small part after the other, and never through a whole history at once.

CREATE TABLE snapshot(
    n       bigint NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    body    bytea  NOT NULL
) PARTITION BY HASH (n);

-- Positions are given inside the transaction, behind the fence: within one partition p they rise in
-- the order of commits, over all partitions they need not.
CREATE SEQUENCE journal_pos;
CREATE TABLE journal(
    pos             bigint  NOT NULL DEFAULT nextval('journal_pos'),
    inst            bigint  NOT NULL,
    seq             bigint  NOT NULL,
    p               integer NOT NULL,
    turn            bigint  NOT NULL,
    tick            bigint  NOT NULL,
    snapshot_digest bytea   NOT NULL,
    digest          bytea   NOT NULL,
    body            bytea,
    head            bytea   NOT NULL,
    moved           text    COLLATE "C", -- the tenant, in rows that tell of a change of state
    PRIMARY KEY (inst, seq)
) PARTITION BY HASH (inst);

-- Proofs.
CREATE INDEX journal_pos_index ON journal(pos);
-- The change feed.
CREATE INDEX journal_moved ON journal(moved, p, pos) WHERE moved IS NOT NULL;

-- `pos` is a position that no journal row of this or an earlier turn of p is beyond.
CREATE TABLE turn(
    p       integer NOT NULL,
    n       bigint  NOT NULL,
    tick    bigint  NOT NULL,
    wall_ms bigint  NOT NULL,
    heads   bytea   NOT NULL,
    root    bytea   NOT NULL,
    pos     bigint  NOT NULL,
    PRIMARY KEY (p, n)
) PARTITION BY HASH (p);

-- Waiting while body is set; once taken only (id, verdict) is left, until the dedupe window ends.
CREATE SEQUENCE arrival_n;
CREATE TABLE arrival(
    n       bigint NOT NULL DEFAULT nextval('arrival_n'),
    id      text   COLLATE "C" NOT NULL PRIMARY KEY,
    p       integer,
    inst    text   COLLATE "C",
    body    bytea,
    verdict bytea,
    taken   bigint,
    tenant  text   COLLATE "C" NOT NULL DEFAULT ''
) PARTITION BY HASH (id);

CREATE INDEX arrival_waiting ON arrival(tenant, n) WHERE body IS NOT NULL;
CREATE INDEX arrival_taken ON arrival(taken) WHERE taken IS NOT NULL;

-- Start marks, and tombstones where the dispatcher is empty.
CREATE TABLE flight(
    effect     text   COLLATE "C" NOT NULL PRIMARY KEY,
    dispatcher text   COLLATE "C" NOT NULL,
    dispatch   bigint NOT NULL,
    since      bigint NOT NULL
) PARTITION BY HASH (effect);

-- Forgetting tombstones.
CREATE INDEX flight_withdrawn ON flight(since) WHERE dispatcher = '';

CREATE TABLE blob(
    inst   text  COLLATE "C" NOT NULL,
    digest text  COLLATE "C" NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (inst, digest)
) PARTITION BY HASH (inst);

DO $$
DECLARE
    parts CONSTANT integer := 8;
    split text;
    part integer;
BEGIN
    FOREACH split IN ARRAY ARRAY['snapshot', 'journal', 'turn', 'arrival', 'flight', 'blob'] LOOP
        FOR part IN 0..parts - 1 LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)%s',
                split || '_' || part, split, parts, part,
                -- Room for the next version of a row on its own page: no index is touched then.
                CASE split WHEN 'snapshot' THEN ' WITH (fillfactor = 60)' ELSE '' END);
        END LOOP;
    END LOOP;
END $$;

CREATE TABLE seal(
    n         bigint NOT NULL PRIMARY KEY,
    tick      bigint NOT NULL,
    roots     bytea  NOT NULL,
    digest    bytea  NOT NULL,
    signature bytea  NOT NULL
);

CREATE TABLE doubt(
    effect   text   COLLATE "C" NOT NULL PRIMARY KEY,
    inst     text   COLLATE "C" NOT NULL,
    state    text   COLLATE "C" NOT NULL,
    next_try bigint,
    since    bigint NOT NULL,
    reason   text   NOT NULL
);

CREATE INDEX doubt_inst ON doubt(inst);

-- What each tenant has used of its limits, pools and concurrency keys, and who waits.
CREATE TABLE gate_row(
    tenant text   COLLATE "C" NOT NULL,
    kind   text   COLLATE "C" NOT NULL,
    key    text   COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    body   bytea  NOT NULL,
    PRIMARY KEY (tenant, kind, key, at)
) WITH (fillfactor = 70);

-- Circuit breakers are few among the rows of gates, and are looked for without knowing the tenant.
CREATE INDEX gate_row_breaker ON gate_row(tenant, key) WHERE kind = 'breaker';

-- When somebody who waits at a gate may be called; written by the owner of partition p only.
CREATE TABLE gate(
    tenant text    COLLATE "C" NOT NULL PRIMARY KEY,
    p      integer NOT NULL,
    due    bigint
) WITH (fillfactor = 70);

CREATE TABLE definition(
    hash       text    COLLATE "C" NOT NULL,
    tenant     text    COLLATE "C" NOT NULL,
    ns         text    COLLATE "C" NOT NULL,
    name       text    COLLATE "C" NOT NULL,
    version    bigint  NOT NULL,
    body       bytea   NOT NULL,
    deprecated boolean NOT NULL,
    created_ms bigint  NOT NULL,
    id         text    COLLATE "C" NOT NULL,
    status     text    NOT NULL,
    created_at text    NOT NULL,
    PRIMARY KEY (tenant, ns, name, version)
);

CREATE INDEX definition_hash ON definition(hash);
CREATE UNIQUE INDEX definition_id ON definition(id);

CREATE TABLE setting(
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text NOT NULL
);

-- Triggers, sessions, credentials, API keys, checkpoints and so on: one table for all kinds.
CREATE SEQUENCE record_n;
CREATE TABLE record(
    n          bigint NOT NULL PRIMARY KEY DEFAULT nextval('record_n'),
    kind       text   COLLATE "C" NOT NULL,
    id         text   COLLATE "C" NOT NULL,
    tenant     text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C",
    owner      text   COLLATE "C",
    body       bytea  NOT NULL,
    rev        bigint NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL
);

CREATE UNIQUE INDEX record_id ON record(kind, id);
CREATE UNIQUE INDEX record_key ON record(kind, tenant, key) WHERE key IS NOT NULL;
CREATE INDEX record_kind ON record(kind, n);
CREATE INDEX record_tenant ON record(kind, tenant, n);
CREATE INDEX record_owner ON record(kind, owner, n) WHERE owner IS NOT NULL;

-- Calls for external workers: written with the turn that decides them, moved by guarded updates of
-- whoever serves workers.
CREATE SEQUENCE work_item_n;
CREATE TABLE work_item(
    n              bigint  NOT NULL PRIMARY KEY DEFAULT nextval('work_item_n'),
    id             text    COLLATE "C" NOT NULL,
    effect         text    COLLATE "C" NOT NULL,
    instance       text    COLLATE "C" NOT NULL,
    tenant         text    COLLATE "C" NOT NULL,
    block          text    NOT NULL,
    handler        text    COLLATE "C" NOT NULL,
    queue          text    COLLATE "C" NOT NULL,
    attempt        bigint  NOT NULL,
    timeout_ms     bigint,
    state          text    COLLATE "C" NOT NULL DEFAULT 'pending',
    worker         text    COLLATE "C",
    claim_epoch    bigint  NOT NULL DEFAULT 0,
    created_ms     bigint  NOT NULL,
    available_ms   bigint  NOT NULL,
    claimed_ms     bigint,
    heartbeat_ms   bigint,
    lease_ms       bigint, -- while claimed: when it must be looked at
    deadline_ms    bigint, -- while claimed: when its own time is over
    lost           bigint  NOT NULL DEFAULT 0, -- claims that ended in silence since the last checkpoint
    checkpoint_seq bigint  NOT NULL,
    completed_ms   bigint,
    retryable      boolean,
    error          text,
    params         bytea   NOT NULL,
    context        bytea   NOT NULL,
    checkpoint     bytea,
    output         bytea,
    logs           bytea,
    ticket         text    COLLATE "C" NOT NULL, -- under which the tenant's gate granted the call
    pushes         bigint  NOT NULL DEFAULT 0, -- times in a row that it was given back by who pushes
    push_ms        bigint  NOT NULL DEFAULT 0 -- when it may be pushed again
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX work_item_id ON work_item(id);
-- Polling, oldest first, each form of it by an index of its own: of a tenant or of all, by handler
-- or by queue. They hold what is pending and nothing else. Those of all tenants pass over some.
CREATE INDEX work_poll ON work_item(handler, tenant, available_ms, n) WHERE state = 'pending';
CREATE INDEX work_poll_all ON work_item(handler, available_ms, n, tenant) WHERE state = 'pending';
CREATE INDEX work_queue ON work_item(handler, queue, tenant, available_ms, n)
    WHERE state = 'pending' AND queue <> '';
CREATE INDEX work_queue_all ON work_item(handler, queue, available_ms, n, tenant)
    WHERE state = 'pending' AND queue <> '';
-- Who pushes a tenant's queue.
CREATE INDEX work_push ON work_item(tenant, queue, greatest(available_ms, push_ms), n, handler)
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
CREATE SEQUENCE work_event_n;
CREATE TABLE work_event(
    n           bigint NOT NULL PRIMARY KEY DEFAULT nextval('work_event_n'),
    item        text   COLLATE "C" NOT NULL,
    claim_epoch bigint NOT NULL,
    worker      text   COLLATE "C",
    event       text   NOT NULL,
    reason      text   NOT NULL,
    at_ms       bigint NOT NULL
);

CREATE INDEX work_event_item ON work_event(item, n);

-- Who polled for what, and when last; tenant '' is a worker of all tenants.
CREATE TABLE worker(
    tenant  text   COLLATE "C" NOT NULL,
    id      text   COLLATE "C" NOT NULL,
    handler text   COLLATE "C" NOT NULL,
    queue   text   COLLATE "C" NOT NULL,
    version text,
    seen_ms bigint NOT NULL,
    PRIMARY KEY (tenant, id, handler, queue)
);

CREATE INDEX worker_seen ON worker(seen_ms);

-- What lists of events and deliveries are asked by stands beside, so that a list costs what it shows.

-- An event of a producer is kept in the snapshot of its correlator.
CREATE TABLE event(
    id         text   COLLATE "C" NOT NULL PRIMARY KEY,
    tenant     text   COLLATE "C" NOT NULL,
    status     text   COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL,
    correlator text   COLLATE "C" NOT NULL
) WITH (fillfactor = 85);

CREATE INDEX event_at ON event(tenant, at_ms DESC, id);
CREATE INDEX event_status ON event(tenant, status, at_ms DESC, id);

-- A delivery of a webhook is an instance, and has its number.
CREATE TABLE delivery(
    n           bigint  NOT NULL PRIMARY KEY,
    tenant      text    COLLATE "C" NOT NULL,
    url         text    COLLATE "C" NOT NULL, -- a digest of it
    event_type  text    COLLATE "C" NOT NULL,
    delivered   boolean NOT NULL,
    error_class text    COLLATE "C" NOT NULL
);

-- One walk for each thing that may be asked, of all tenants and of one.
CREATE INDEX delivery_url ON delivery(url, n);
CREATE INDEX delivery_event_type ON delivery(event_type, n);
CREATE INDEX delivery_delivered ON delivery(delivered, n);
CREATE INDEX delivery_error_class ON delivery(error_class, n);
CREATE INDEX delivery_tenant ON delivery(tenant, n);
CREATE INDEX delivery_tenant_url ON delivery(tenant, url, n);
CREATE INDEX delivery_tenant_event_type ON delivery(tenant, event_type, n);
CREATE INDEX delivery_tenant_delivered ON delivery(tenant, delivered, n);
CREATE INDEX delivery_tenant_error_class ON delivery(tenant, error_class, n);
