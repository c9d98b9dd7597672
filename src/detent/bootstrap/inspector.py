"""Everything that only reads: the views of `service`, bound to an engine's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts


class Inspector:
    """The views of one engine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
