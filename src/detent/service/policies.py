"""Policies of an engine: what holds for every instance started there, in plain form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from detent.definition import sequence, step
from detent.model.decision import HandlerSpec
from detent.model.errors import DefinitionError, RequestError
from detent.service.arguments import invalid, listed


def read_policies(given: Any) -> tuple[Any, ...]:
    """Policies as inputs carry them, out of decorated functions and objects of a definition."""
    named = [_named(each) for each in listed("policies", given)]
    try:
        body = sequence("policies", step("any", "noop"), policies=named).body
    except DefinitionError as error:
        raise RequestError("request.invalid", f"policies: {error.message}") from None
    return tuple(to_builtins(policy) for policy in body.policies)


def check_policies(policies: tuple[Any, ...], handlers: Mapping[str, HandlerSpec]) -> None:
    """Refuse to start anything under a policy that nobody here can answer."""
    for policy in policies:
        name = policy.get("handler")
        if name is not None and name not in handlers:
            raise RequestError(
                "handler.unknown",
                f"no handler is registered for the policy {name!r}; "
                "register it with Engine(handlers=[...]) first",
                handlers=[name],
            )


def _named(policy: Any) -> dict[str, Any]:
    if isinstance(policy, Mapping):
        return dict(policy)
    if getattr(policy, "detent_name", None) is None:
        raise invalid("policies", "a list of decorated policies or of objects", policy)
    return {"handler": policy}
