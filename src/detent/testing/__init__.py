"""The public test kit: engines in virtual time, recorded calls, assertions, and the simulator.

Names are imported when they are first used: pytest loads this package in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.testing.assertions import (
        assert_chain_valid,
        assert_identical_replay,
        assert_stands_explained,
    )
    from detent.testing.calls import Call, Calls
    from detent.testing.engines import engine_over, virtual_engine
    from detent.testing.faulty import Crash, Fault, FaultyStore

_HOMES = {
    "detent.testing.assertions": (
        "assert_chain_valid assert_identical_replay assert_stands_explained"
    ),
    "detent.testing.calls": "Call Calls",
    "detent.testing.engines": "engine_over virtual_engine",
    "detent.testing.faulty": "Crash Fault FaultyStore",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'detent.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
