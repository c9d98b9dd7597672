"""Protocols between the engine and what it stands on: Store, Clock, Lease."""
