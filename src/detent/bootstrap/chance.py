"""The system's chance, fetched many bytes at a time.

Every look into the system lets go of the interpreter and must get it back: beside a busy writer
that takes longer than all the rest of a start. Each thread has a supply of its own, of which no
byte is given out twice; a forked process begins with none of its parent's.
"""

from __future__ import annotations

import os
import threading

_FETCHED = 4_096


class _Supply(threading.local):
    raw = b""
    used = 0


_supply = _Supply()


def system_chance(size: int) -> bytes:
    """So many bytes, as good as the system's own."""
    used = _supply.used
    if used + size > len(_supply.raw):
        _supply.raw = os.urandom(max(size, _FETCHED))
        used = 0
    _supply.used = used + size
    return _supply.raw[used : used + size]


def _forget() -> None:
    _supply.raw = b""
    _supply.used = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
