-- The ticket under which a tenant's gate granted the call of an item; empty for most.
ALTER TABLE work_item ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
