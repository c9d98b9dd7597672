"""The audit chain: stored bytes are hashed per instance, turns per partition, seals over all.

digest = SHA-256(salt | body); head = SHA-256(previous head | seq | tick | snapshot digest |
digest); root = SHA-256(previous root | p | n | tick | heads in turn order). Integers are 8 bytes,
big-endian. The turn number is in the root and not in the head, so that a replay elsewhere gives the
same heads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from struct import Struct

GENESIS = bytes(32)
_two = Struct(">QQ").pack
_three = Struct(">QQQ").pack
_sha = hashlib.sha256


def digest_of(salt: bytes, body: bytes) -> bytes:
    """What the chain keeps of a body after it is erased."""
    return _sha(salt + body).digest()


def snapshot_digest_of(snapshot: bytes) -> bytes:
    """The digest of the snapshot a turn leaves."""
    return _sha(snapshot).digest()


def head_of(previous: bytes, seq: int, tick: int, snapshot_digest: bytes, digest: bytes) -> bytes:
    """The next head of an instance's chain."""
    return _sha(previous + _two(seq, tick) + snapshot_digest + digest).digest()


def root_of(previous: bytes, p: int, n: int, tick: int, heads: bytes) -> bytes:
    """The next root of a partition's chain of turns; heads concatenated in turn order."""
    return _sha(previous + _three(p, n, tick) + heads).digest()


def seal_of(previous: bytes, n: int, tick: int, roots: Iterable[bytes]) -> bytes:
    """The digest of a seal over the roots of all partitions, in partition order."""
    return _sha(previous + _two(n, tick) + b"".join(roots)).digest()
