-- Circuit breakers are few among the rows of gates, and are looked for without knowing the tenant.
CREATE INDEX gate_row_breaker ON gate_row(tenant, key) WHERE kind = 'breaker';
