"""The engine's own definitions, which no author can write: gates, schedules, deliveries, events."""

from __future__ import annotations

from typing import Final

from detent.definition.canonical import seal
from detent.model.definition import Definition

GATE: Final[Definition] = seal(
    {"name": "detent.gate", "version": 1, "blocks": [{"type": "gatekeeper", "id": "gate"}]}
)
"""One instance per tenant keeps its limits and pools."""

CRON: Final[Definition] = seal(
    {"name": "detent.cron", "version": 1, "blocks": [{"type": "schedule", "id": "cron"}]}
)
"""One instance per schedule starts others at its times."""

WEBHOOK: Final[Definition] = seal(
    {
        "name": "detent.webhook",
        "version": 1,
        "blocks": [
            {
                "type": "step",
                "id": "deliver",
                "handler": "webhook_deliver",
                "retry": {"max_attempts": 100, "initial_backoff": 0, "max_backoff": 0},
            }
        ],
    }
)
"""One instance per delivery of an outbound webhook; its handler says when to try again."""

EVENTS: Final[Definition] = seal(
    {"name": "detent.events", "version": 1, "blocks": [{"type": "correlator", "id": "events"}]}
)
"""One instance per tenant and correlation key brings events and waits together."""
