-- The engine's own instances are no longer few: deliveries of webhooks and correlators of events
-- are listed by kind and state, in the order of their numbers.
CREATE INDEX instance_own_kind ON instance(definition, state) WHERE ns = 'detent';
