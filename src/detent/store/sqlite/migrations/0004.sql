-- Fairness between tenants: the backlog of one must not be in the way of another's due instances.

-- A stretch of it is the waiting instances of one tenant and priority, in turn order. The id is in
-- it so that many that are due at the same tick are read in their order without a sort; the
-- partition comes last, since one process owns a SQLite store and it filters next to nothing.
DROP INDEX instance_due;
CREATE INDEX instance_due ON instance(tenant, prio, due, id, p) WHERE due IS NOT NULL;

-- Whose an arrival is, so that a look is shared between the tenants; empty where nobody knows.
ALTER TABLE arrival ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
UPDATE arrival SET tenant = coalesce((SELECT tenant FROM instance WHERE id = arrival.inst), '')
WHERE body IS NOT NULL;
DROP INDEX arrival_waiting;
CREATE INDEX arrival_waiting ON arrival(tenant, n, p) WHERE body IS NOT NULL;
