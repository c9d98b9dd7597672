"""The failure of a node, as data: what, of which class, where, and whether a retry makes sense."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a node failed; `kind` is the class that decides what follows."""

    message: str
    kind: str  # definition expression transport timeout authorization consistency …
    code: str = ""
    block: str = ""
    node: str = ""
    retryable: bool = False
    attempt: int = 0
    details: Any = None

    def at(self, node: str, block: str) -> Failure:
        """The same failure, final, of a node."""
        return replace(self, node=node, block=block, retryable=False)

    def plain(self) -> dict[str, Any]:
        """As JSON-like data, for snapshots and entries."""
        plain: dict[str, Any] = to_builtins(self)
        return plain


def failure_from(plain: Any) -> Failure:
    """Read one back from a snapshot."""
    return Failure(**plain)
