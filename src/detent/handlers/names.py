"""Names of built-in handlers; users' handlers cannot take them."""

from __future__ import annotations

from typing import Final

# Performed by the kernel itself, by `handlers.inside`, or promised by the wire contract.
RESERVED: Final = (
    "agent",
    "assert",
    "blob_get",
    "blob_put",
    "delete_state",
    "embed",
    "emit_event",
    "fail",
    "get_state",
    "http_request",
    "human_review",
    "llm_call",
    "log",
    "mcp_call",
    "memory_delete",
    "memory_search",
    "memory_store",
    "merge_state",
    "noop",
    "query_instance",
    "self_modify",
    "send_signal",
    "set_state",
    "sleep",
    "tool_call",
    "transform",
    "wait_for_event",
    "webhook_deliver",
)
