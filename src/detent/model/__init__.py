"""Values that every layer shares: definitions, inputs, snapshots, decisions, errors, limits."""
