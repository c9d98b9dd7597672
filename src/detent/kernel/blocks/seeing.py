"""What a step sees: its part of the context, its parameters, and a result it has had before."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from detent.expression import Scope, Template
from detent.kernel.bounds import rendered
from detent.kernel.failure import Failure
from detent.kernel.orders import visible_data
from detent.kernel.program import Node
from detent.kernel.run import Run, encode
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame


def scope_of(run: Run, node: Node) -> Scope:
    """The context as the step's `context_access` lets it be seen."""
    access = node.block.context_access
    scope = run.scope()
    if access is None:
        return scope
    return replace(
        scope,
        data=visible_data(scope.data, access),
        config=scope.config if access.config else None,
        runtime=scope.runtime if access.runtime else None,
    )


def params_of(run: Run, node: Node) -> Any:
    """The parameters with their templates filled in."""
    template = node.params
    if template is None:
        return None
    if isinstance(template, ExpressionError):
        raise template
    return node.block.params if template.constant else rendered(template, scope_of(run, node))


def cached(run: Run, node: Node, frame: Frame) -> tuple[Any] | None:
    """The result under the step's cache key; without one the frame remembers the key."""
    if isinstance(node.cache_key, ExpressionError):
        raise node.cache_key
    template = node.cache_key
    value = rendered(template, scope_of(run, node)) if isinstance(template, Template) else ""
    key = value if isinstance(value, str) else encode(value).decode()
    if key in run.snapshot.cache:
        return (run.snapshot.cache[key],)
    frame.v = {"cache": key}
    return None


def known(run: Run, node: Node, frame: Frame) -> bool:
    """Whether the result is known already; a broken key fails in the stage that acts."""
    try:
        return cached(run, node, frame) is not None
    except ExpressionError:
        return True


def failure_of(error: ExpressionError) -> Failure:
    """An expression that cannot be evaluated, as the failure of its step."""
    return Failure(message=error.message, kind="expression", code=error.code)
