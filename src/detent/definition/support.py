"""What the contract knows and this release does not perform; a later release deletes rows.

Such an option is checked like any other and then refused, so that no definition is stored whose
author believes in a limit or a window that nobody keeps.
"""

from __future__ import annotations

from typing import Final

# shape -> option -> what performs it
UNSUPPORTED: Final[dict[str, dict[str, str]]] = {
    "step": {
        "compensation": "continuity of a step",
    },
}

UNSUPPORTED_HANDLERS: Final[dict[str, str]] = {
    "mcp_call": "tool servers",
    "agent": "language models",
    "embed": "language models",
    "memory_store": "memory",
    "memory_search": "memory",
    "memory_delete": "memory",
    "blob_put": "blobs",
    "blob_get": "blobs",
}

OWN_HANDLERS: Final = ("webhook_deliver",)
"""Of the engine's own definitions alone: an author could speak in the engine's name with them."""
