"""Bounds on values that a definition makes itself; those from outside are checked at the doors."""

from __future__ import annotations

from typing import Any

from detent.expression import Scope, Template
from detent.kernel.failure import Failure
from detent.model import limits
from detent.model.errors import ExpressionError


def too_large(where: str, size: int, limit: int) -> Failure:
    """The permanent failure of a node whose value is over a limit."""
    return Failure(
        message=f"{where} is {size} bytes; the limit is {limit}; "
        "store large values elsewhere and pass a reference",
        kind="logic",
        code="payload.too_large",
        details={"size": size, "limit": limit, "path": where},
    )


def rendered(template: Template, scope: Scope) -> Any:
    """Fill a template; what it puts together must not be nested deeper than a payload may be."""
    value = template.render(scope)
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limits.PAYLOAD_DEPTH):
        if not level:
            return value
        level = _containers(level)
    if level:
        most = limits.PAYLOAD_DEPTH
        raise ExpressionError(
            "expression.limit",
            f"The result has more than {most} lists and objects within one another; flatten it.",
            limit=most,
        )
    return value


def _containers(level: list[Any]) -> list[Any]:
    """The lists and objects one level deeper, each once however often it is named."""
    found: dict[int, Any] = {}
    for each in level:
        for child in each.values() if isinstance(each, dict) else each:
            if isinstance(child, dict | list):
                found[id(child)] = child
    return list(found.values())
