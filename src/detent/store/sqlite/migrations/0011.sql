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
