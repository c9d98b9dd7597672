"""Walking the blocks of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from detent.model.definition import Definition, Step


def every_step(definition: Definition) -> Iterator[Step]:
    """Every step of a definition, clean-up lists included, in order."""
    body = definition.body
    yield from _steps((body.blocks, body.on_failure or (), body.on_cancel or ()))


def _steps(value: Any) -> Iterator[Step]:
    if isinstance(value, Step):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _steps(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _steps(each)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from _steps(getattr(value, name))
