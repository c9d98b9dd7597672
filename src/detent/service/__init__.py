"""Use cases, one function each, over a store and values; the engine, CLI and server call these."""
