"""What the contract knows and this release does not perform; a later release deletes rows.

Such an option is checked like any other and then refused, so that no definition is stored whose
author believes in a limit or a window that nobody keeps.
"""

from __future__ import annotations

from typing import Final

_OF_YOUR_OWN = "name a handler of yours, or let a worker perform it, under another name"

# shape -> option -> why it is refused, and what to do instead
UNSUPPORTED: Final[dict[str, dict[str, str]]] = {
    "step": {
        "compensation": "runs are not moved between devices here; undo what was done with a saga",
    },
}

UNSUPPORTED_HANDLERS: Final[dict[str, str]] = {
    "mcp_call": f"tool servers are not spoken to; use tool_call, or {_OF_YOUR_OWN}",
    "agent": f"agents are not run; use llm_call in a loop, or {_OF_YOUR_OWN}",
    "embed": f"embeddings are not made; use http_request, or {_OF_YOUR_OWN}",
    "memory_store": f"there is no memory beside the context; use set_state, or {_OF_YOUR_OWN}",
    "memory_search": f"there is no memory beside the context; use get_state, or {_OF_YOUR_OWN}",
    "memory_delete": f"there is no memory beside the context; use delete_state, or {_OF_YOUR_OWN}",
    "blob_put": f"there is no store of blobs for steps; use http_request, or {_OF_YOUR_OWN}",
    "blob_get": f"there is no store of blobs for steps; use http_request, or {_OF_YOUR_OWN}",
}

OWN_HANDLERS: Final = ("webhook_deliver",)
"""Of the engine's own definitions alone: an author could speak in the engine's name with them."""
