"""Detent: a durable, deterministic execution engine. Decide purely, commit once, act afterwards.

Names are imported when they are first used, so that `import detent` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.bootstrap.engine import Engine
    from detent.client.client import AsyncClient, Client
    from detent.definition import (
        a_b_split,
        branch,
        end,
        exit_when,
        explicit,
        for_each,
        goto,
        graph,
        linear,
        loop,
        normalize,
        parallel,
        parse,
        plan,
        race,
        retry,
        route,
        router,
        saga,
        saga_step,
        scope,
        send_email,
        send_voice,
        sequence,
        step,
        sub_sequence,
        try_catch,
        variant,
        wait,
    )
    from detent.handlers import (
        Applied,
        Failed,
        HandlerContext,
        NotApplied,
        Retry,
        allow,
        defer,
        fail,
        handler,
        pause,
        policy,
        skip,
    )
    from detent.kernel.rerun import Changes, InputChange
    from detent.model.definition import Definition
    from detent.model.errors import (
        DefinitionError,
        DetentError,
        ExpressionError,
        InvariantViolation,
        RequestError,
        StoreError,
    )

__version__ = "0.1.0"

_HOMES = {
    "detent.bootstrap.engine": "Engine",
    "detent.client.client": "AsyncClient Client",
    "detent.definition": (
        "a_b_split branch end exit_when explicit for_each goto graph linear loop normalize "
        "parallel parse plan race retry route router saga saga_step scope send_email send_voice "
        "sequence step sub_sequence try_catch variant wait"
    ),
    "detent.handlers": (
        "Applied Failed HandlerContext NotApplied Retry allow defer fail handler pause policy skip"
    ),
    "detent.kernel.rerun": "Changes InputChange",
    "detent.model.definition": "Definition",
    "detent.model.errors": (
        "DefinitionError DetentError ExpressionError InvariantViolation RequestError StoreError"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Applied",
    "AsyncClient",
    "Changes",
    "Client",
    "Definition",
    "DefinitionError",
    "DetentError",
    "Engine",
    "ExpressionError",
    "Failed",
    "HandlerContext",
    "InputChange",
    "InvariantViolation",
    "NotApplied",
    "RequestError",
    "Retry",
    "StoreError",
    "__version__",
    "a_b_split",
    "allow",
    "branch",
    "defer",
    "end",
    "exit_when",
    "explicit",
    "fail",
    "for_each",
    "goto",
    "graph",
    "handler",
    "linear",
    "loop",
    "normalize",
    "parallel",
    "parse",
    "pause",
    "plan",
    "policy",
    "race",
    "retry",
    "route",
    "router",
    "saga",
    "saga_step",
    "scope",
    "send_email",
    "send_voice",
    "sequence",
    "skip",
    "step",
    "sub_sequence",
    "try_catch",
    "variant",
    "wait",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'detent' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
