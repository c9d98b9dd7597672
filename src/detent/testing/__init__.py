"""The public test kit: engines in virtual time, recorded calls, assertions, and the simulator."""

from __future__ import annotations

from detent.testing.assertions import (
    assert_chain_valid,
    assert_identical_replay,
    assert_stands_explained,
)
from detent.testing.calls import Call, Calls
from detent.testing.engines import engine_over, virtual_engine
from detent.testing.faulty import Crash, Fault, FaultyStore

__all__ = [
    "Call",
    "Calls",
    "Crash",
    "Fault",
    "FaultyStore",
    "assert_chain_valid",
    "assert_identical_replay",
    "assert_stands_explained",
    "engine_over",
    "virtual_engine",
]
