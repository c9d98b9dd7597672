-- The engine's own instances (schedules, gates) among all others: few, and read as lists.
CREATE INDEX instance_own ON instance(tenant) WHERE ns = 'detent';
