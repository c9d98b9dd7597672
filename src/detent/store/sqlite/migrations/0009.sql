-- The change feed: rows in which an instance changed its state are found by tenant, in the order in
-- which they were committed (an index holds the position by itself). The tenant stands in no other
-- row, so rows without a change cost nothing more.
ALTER TABLE journal ADD COLUMN moved TEXT;
UPDATE journal SET moved = (SELECT tenant FROM instance WHERE n = journal.inst)
WHERE instr(body, CAST('["run.' AS BLOB));
CREATE INDEX journal_moved ON journal(moved) WHERE moved IS NOT NULL;
