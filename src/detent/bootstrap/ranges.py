"""Ranges of partitions: what `partition="0-7,12"` means, and who shares instead."""

from __future__ import annotations

import re

from detent.model import limits
from detent.model.address import is_file
from detent.model.errors import RequestError
from detent.runtime.settings import WriterSettings

_PART = re.compile(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*")


def read_range(text: str) -> tuple[int, ...]:
    """The partitions that a text names, in their order."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if not first <= last < limits.PARTITIONS_MOST:
            raise RequestError(
                "request.invalid",
                "partition must be numbers and ranges like '0-7,12', each below "
                f"{limits.PARTITIONS_MOST}; got {text!r}",
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def is_sharing(path: str, turns: WriterSettings) -> bool:
    """Whether the processes of a store share its partitions: on a server, unless told which."""
    return not is_file(path) and turns.partitions is None and not turns.errand
