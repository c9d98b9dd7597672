"""Network handlers: http_request, tool_call, llm_call and notices, through one guarded client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from detent.handlers.declare import Declaration
from detent.handlers.network.http_request import http_request
from detent.handlers.network.human_review import human_review
from detent.handlers.network.llm_call import llm_call
from detent.handlers.network.outside import Deltas, Outside
from detent.handlers.network.posting import NotSentError, Posting
from detent.handlers.network.settings import NetworkSettings
from detent.handlers.network.tool_call import tool_call

if TYPE_CHECKING:
    from detent.handlers.context import HandlerContext
    from detent.handlers.registry import Registry

__all__ = [
    "Deltas",
    "NetworkSettings",
    "NotSentError",
    "Outside",
    "Posting",
    "register_network",
]

_Perform = Callable[[Outside, "HandlerContext", dict[str, Any]], Coroutine[Any, Any, Any]]


def register_network(registry: Registry, outside: Outside) -> None:
    """Add the handlers to an engine's registry."""
    for perform in (http_request, tool_call, llm_call, human_review):
        registry.add_builtin(_builtin(perform, outside))


def _builtin(perform: _Perform, outside: Outside) -> Callable[..., Any]:
    """A handler that takes any params and checks them itself: a wrong one fails the step."""

    async def handler(ctx: HandlerContext, **params: Any) -> Any:
        return await perform(outside, ctx, params)

    handler.detent_handler = Declaration(  # type: ignore[attr-defined]
        name=perform.__name__, doubt="repeatable", merge=False, previews=True
    )
    return handler
