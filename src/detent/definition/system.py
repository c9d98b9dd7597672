"""The engine's own definitions: a tenant's gate and a schedule, which no author can write."""

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
