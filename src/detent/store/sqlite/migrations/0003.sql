-- Gates: what each tenant has used of its limits, pools and concurrency keys, and who waits.

CREATE TABLE gate_row(
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    body   BLOB    NOT NULL,
    PRIMARY KEY (tenant, kind, key, at)
) STRICT, WITHOUT ROWID;

-- When somebody who waits at a gate may be called; written by the owner of partition p only.
CREATE TABLE gate(
    tenant TEXT    PRIMARY KEY,
    p      INTEGER NOT NULL,
    due    INTEGER
) STRICT, WITHOUT ROWID;
