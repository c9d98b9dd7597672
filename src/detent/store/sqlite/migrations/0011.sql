-- Pins and drained workers are looked for by handler and by worker, whosever they are.
UPDATE record SET owner = key WHERE kind IN ('version_pin', 'worker.hold');
-- Rules are looked for by tenant and handler at once.
UPDATE record SET owner = tenant || char(31) || owner WHERE kind = 'routing_rule';

-- Polls of all tenants pass over some of them without reading their items.
DROP INDEX work_poll_all;
DROP INDEX work_queue_all;
CREATE INDEX work_poll_all ON work_item(handler, available_ms, n, tenant) WHERE state = 'pending';
CREATE INDEX work_queue_all ON work_item(handler, queue, available_ms, n, tenant)
    WHERE state = 'pending' AND queue <> '';
