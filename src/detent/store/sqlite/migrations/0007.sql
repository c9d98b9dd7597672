-- Lists over many instances: by definition, by namespace, by what their metadata says.

CREATE INDEX instance_definition ON instance(tenant, definition);
CREATE INDEX instance_namespace ON instance(tenant, ns);

-- Top-level texts of an instance's metadata, as they were when it was made.
CREATE TABLE label(
    tenant TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, value, n)
) STRICT, WITHOUT ROWID;
