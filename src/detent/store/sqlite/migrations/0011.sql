-- The ticket under which a tenant's gate granted the call of an item; empty for most.
ALTER TABLE work_item ADD COLUMN ticket TEXT NOT NULL DEFAULT '';

-- Pins and drained workers are looked for by handler and by worker, whosever they are.
UPDATE record SET owner = key WHERE kind IN ('version_pin', 'worker.hold');
-- Rules are looked for by tenant and handler at once.
UPDATE record SET owner = tenant || char(31) || owner WHERE kind = 'routing_rule';

-- Pushing: how often in a row an item was given back by who pushes its queue, and when it is pushed
-- again. The index is walked by who pushes a tenant's queue; items without a queue are not in it.
ALTER TABLE work_item ADD COLUMN pushes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work_item ADD COLUMN push_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX work_push ON work_item(tenant, queue, max(available_ms, push_ms), n, handler)
    WHERE state = 'pending' AND queue <> '';

-- Polls of all tenants pass over some of them without reading their items.
DROP INDEX work_poll_all;
DROP INDEX work_queue_all;
CREATE INDEX work_poll_all ON work_item(handler, available_ms, n, tenant) WHERE state = 'pending';
CREATE INDEX work_queue_all ON work_item(handler, queue, available_ms, n, tenant)
    WHERE state = 'pending' AND queue <> '';

-- Lists of events and deliveries: what they are asked by stands beside, so that a list costs what it
-- shows. Rows of earlier releases are given theirs as the store is opened.

-- An event of a producer is kept in the snapshot of its correlator.
CREATE TABLE event(
    id         TEXT    PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    correlator TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX event_at ON event(tenant, at_ms DESC, id);
CREATE INDEX event_status ON event(tenant, status, at_ms DESC, id);

-- A delivery of a webhook is an instance, and has its number.
CREATE TABLE delivery(
    n           INTEGER PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    url         TEXT    NOT NULL, -- a digest of it
    event_type  TEXT    NOT NULL,
    delivered   INTEGER NOT NULL,
    error_class TEXT    NOT NULL
) STRICT;

-- One walk for each thing that may be asked, of all tenants and of one; the number follows by itself.
CREATE INDEX delivery_url ON delivery(url);
CREATE INDEX delivery_event_type ON delivery(event_type);
CREATE INDEX delivery_delivered ON delivery(delivered);
CREATE INDEX delivery_error_class ON delivery(error_class);
CREATE INDEX delivery_tenant ON delivery(tenant);
CREATE INDEX delivery_tenant_url ON delivery(tenant, url);
CREATE INDEX delivery_tenant_event_type ON delivery(tenant, event_type);
CREATE INDEX delivery_tenant_delivered ON delivery(tenant, delivered);
CREATE INDEX delivery_tenant_error_class ON delivery(tenant, error_class);

-- The engine's own instances of one tenant and kind are not looked for among those of all.
CREATE INDEX instance_own_tenant ON instance(tenant, definition, state) WHERE ns = 'detent';
