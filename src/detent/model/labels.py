"""Labels: the top-level texts of an instance's metadata, by which lists can be filtered."""

from __future__ import annotations

from typing import Any

from detent.model.limits import LABELS, NAME_CHARS


def labels_of(metadata: Any) -> tuple[tuple[str, str], ...]:
    """The texts of metadata that are short enough; of too many the first."""
    if not isinstance(metadata, dict):
        return ()
    texts = [
        (name, value)
        for name, value in metadata.items()
        if isinstance(value, str) and len(name) <= NAME_CHARS and len(value) <= NAME_CHARS
    ]
    return tuple(texts[:LABELS])
