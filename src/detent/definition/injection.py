"""Blocks for one instance: checked as those of its definition, in its mode, by its calendars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.definition.faults import Faults
from detent.definition.normalize import normalize
from detent.definition.plain import plain

if TYPE_CHECKING:
    from detent.model.definition import Definition


def check_blocks(blocks: Any, definition: Definition) -> Definition:
    """A definition of these blocks alone; raises `DefinitionError` with all faults.

    Ids are compared with each other here, and with those of the instance where they are put in.
    """
    body = definition.body
    raw = {
        "name": body.name,
        "version": body.version,
        "mode": body.mode,
        "calendars": {country: list(dates) for country, dates in body.calendars.items()},
        "blocks": blocks,
    }
    return normalize(raw)


def plain_blocks(blocks: list[Any]) -> list[Any]:
    """Blocks as they can be sent to who checks them; `DefinitionError` for what has no JSON."""
    faults = Faults()
    made: dict[str, list[Any]] = plain({"blocks": blocks}, faults)
    faults.raise_if_any()
    return made["blocks"]
