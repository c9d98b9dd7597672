"""The one place where a client takes chance from the system: keys of requests, spread of pauses."""

from __future__ import annotations

import os


def chance(count: int) -> bytes:
    """So many random bytes."""
    return os.urandom(count)
