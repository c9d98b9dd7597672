"""Every route of the API, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.web.api import (
    api_keys,
    artifacts,
    breakers,
    bulk,
    changes,
    checkpoints,
    cluster,
    commands,
    credentials,
    crons,
    dead_letters,
    deliveries,
    docs_page,
    events,
    fleet,
    following,
    health,
    histories,
    inbound,
    inspect,
    inspect_outside,
    instances,
    limits,
    metrics,
    openapi,
    sequence_moves,
    sequences,
    sessions,
    signals,
    steering,
    templates,
    triggers,
    workers,
)

if TYPE_CHECKING:
    from detent.web.api.routes import Route

TABLES = (
    health.table,
    metrics.table,
    sequences.table,
    sequence_moves.table,
    instances.table,
    dead_letters.table,
    commands.table,
    histories.table,
    artifacts.table,
    following.table,
    changes.table,
    signals.table,
    steering.table,
    bulk.table,
    templates.table,
    limits.table,
    breakers.table,
    crons.table,
    inspect.table,
    inspect_outside.table,
    events.table,
    deliveries.table,
    fleet.table,
    cluster.table,
    checkpoints.table,
    sessions.table,
    triggers.table,
    inbound.table,
    credentials.table,
    api_keys.table,
    workers.table,
    openapi.table,
    docs_page.table,
)


def all_routes() -> list[Route]:
    """The routes in the order of their sections."""
    return [route for table in TABLES for route in table.routes]
