"""Every route of the API, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.web.api import (
    commands,
    crons,
    docs_page,
    health,
    histories,
    inspect,
    instances,
    limits,
    openapi,
    sequence_moves,
    sequences,
    signals,
    templates,
)

if TYPE_CHECKING:
    from detent.web.api.routes import Route

TABLES = (
    health.table,
    sequences.table,
    sequence_moves.table,
    instances.table,
    commands.table,
    histories.table,
    signals.table,
    templates.table,
    limits.table,
    crons.table,
    inspect.table,
    openapi.table,
    docs_page.table,
)


def all_routes() -> list[Route]:
    """The routes in the order of their sections."""
    return [route for table in TABLES for route in table.routes]
