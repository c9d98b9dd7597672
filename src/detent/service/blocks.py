"""Walking the blocks of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from detent.model.definition import Definition, Step, SubSequence

B = TypeVar("B")


def every_step(definition: Definition) -> Iterator[Step]:
    """Every step of a definition, clean-up lists included, in order."""
    return _found(Step, _parts(definition))


def every_child(definition: Definition) -> Iterator[SubSequence]:
    """Every sub-sequence of a definition, clean-up lists included, in order."""
    return _found(SubSequence, _parts(definition))


def _parts(definition: Definition) -> tuple[Any, ...]:
    body = definition.body
    return (body.blocks, body.on_failure or (), body.on_cancel or ())


def _found(kind: type[B], value: Any) -> Iterator[B]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _found(kind, each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _found(kind, each)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from _found(kind, getattr(value, name))
