"""Every route of the API, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.web.api import (
    bulk,
    crons,
    dead_letters,
    docs_page,
    health,
    histories,
    instances,
    limits,
    openapi,
    sequences,
    signals,
    steering,
    templates,
)

if TYPE_CHECKING:
    from detent.web.api.routes import Route

TABLES = (
    health.table,
    sequences.table,
    instances.table,
    dead_letters.table,
    histories.table,
    signals.table,
    steering.table,
    bulk.table,
    templates.table,
    limits.table,
    crons.table,
    openapi.table,
    docs_page.table,
)


def all_routes() -> list[Route]:
    """The routes in the order of their sections."""
    return [route for table in TABLES for route in table.routes]
