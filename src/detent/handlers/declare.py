"""The decorators: a function says that it is a handler or a policy, and what may be done on doubt.

Nothing is registered here. The function carries its `Declaration` as `detent_handler` until an
engine's `Registry` takes it, so that importing a module has no effect of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from msgspec import Struct

from detent.model.errors import RequestError
from detent.model.limits import DURATION_MS, KEY_CHARS, POLICY_TIMEOUT_MS

Doubt = Literal["repeatable", "keyed", "queryable", "once"]
Function = TypeVar("Function", bound=Callable[..., Any])

DOUBTS = ("repeatable", "keyed", "queryable", "once")


class Declaration(Struct, frozen=True, kw_only=True):
    """What a decorated function says about itself."""

    name: str
    kind: Literal["handler", "policy"] = "handler"
    doubt: Doubt = "repeatable"
    reconcile: Callable[..., Any] | None = None
    timeout_ms: int | None = None
    withdrawable: bool = True
    merge: bool = True
    previews: bool = False  # it is called in dry runs and tells by itself what it would do
    opens: bool = True  # whether it is handed secrets, or the references to them


@overload
def handler(name: Function, /) -> Function: ...
@overload
def handler(
    name: str | None = None,
    *,
    on_doubt: Doubt = "repeatable",
    reconcile: Callable[..., Any] | None = None,
    timeout_ms: int | None = None,
    withdrawable: bool = True,
) -> Callable[[Function], Function]: ...
def handler(
    name: Any = None,
    *,
    on_doubt: Doubt = "repeatable",
    reconcile: Callable[..., Any] | None = None,
    timeout_ms: int | None = None,
    withdrawable: bool = True,
) -> Any:
    """Declare a plain or async function as a handler, bare or with options.

    `on_doubt` says what the engine may do when nobody knows whether a call happened: `repeatable`
    call it again; `keyed` call it again with the same `ctx.key`; `queryable` ask `reconcile`;
    `once` ask a person. `withdrawable=False` lets a `keyed` handler skip the start mark.
    """

    def declare(function: Function) -> Function:
        given = name if isinstance(name, str) else None
        declaration = Declaration(
            name=_name_of(function, given),
            doubt=on_doubt,
            reconcile=reconcile,
            timeout_ms=timeout_ms,
            withdrawable=withdrawable,
        )
        _check(declaration)
        return _carry(function, declaration)

    return declare(name) if callable(name) else declare


@overload
def policy(name: Function, /) -> Function: ...
@overload
def policy(
    name: str | None = None, *, timeout_ms: int = POLICY_TIMEOUT_MS
) -> Callable[[Function], Function]: ...
def policy(name: Any = None, *, timeout_ms: int = POLICY_TIMEOUT_MS) -> Any:
    """Declare a function as a policy, asked before each acting step of the instances that name it.

    It may take any of step, handler, params, data, config and attempt, and answers `allow()`,
    `pause(…)`, `fail(…)`, `skip(…)` or `defer(…)`; anything else fails closed.
    """

    def declare(function: Function) -> Function:
        given = name if isinstance(name, str) else None
        declaration = Declaration(
            name=_name_of(function, given), kind="policy", timeout_ms=timeout_ms, merge=False
        )
        _check(declaration)
        return _carry(function, declaration)

    return declare(name) if callable(name) else declare


def declaration_of(function: object) -> Declaration | None:
    """What a function declared, or None when it is not decorated."""
    found = getattr(function, "detent_handler", None)
    return found if isinstance(found, Declaration) else None


def _carry(function: Function, declaration: Declaration) -> Function:
    function.detent_handler = declaration  # type: ignore[attr-defined]
    function.detent_name = declaration.name  # type: ignore[attr-defined]
    return function


def _name_of(function: Callable[..., Any], given: str | None) -> str:
    name = given if given is not None else getattr(function, "__name__", "")
    if not name.strip() or name == "<lambda>" or len(name) > KEY_CHARS or not name.isprintable():
        raise RequestError(
            "handler.signature",
            f"a handler's name must be printable text of 1 to {KEY_CHARS} characters, "
            f"got {name[:80]!r}; give one with @handler(name=…)",
        )
    return name


def _check(declared: Declaration) -> None:
    name = declared.name
    if declared.doubt not in DOUBTS:
        known = ", ".join(DOUBTS)
        raise _refusal(name, f"on_doubt must be one of {known}, got {declared.doubt!r}")
    if declared.doubt == "queryable" and declared.reconcile is None:
        raise _refusal(name, 'on_doubt="queryable" needs reconcile=…, got none; give the function')
    if declared.doubt != "queryable" and declared.reconcile is not None:
        problem = f'reconcile is only used with on_doubt="queryable", got {declared.doubt!r}'
        raise _refusal(name, problem)
    limit = declared.timeout_ms
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (whole and 0 < limit <= DURATION_MS):
        problem = f"timeout_ms must be a whole number from 1 to {DURATION_MS}, got {limit!r}"
        raise _refusal(name, problem)


def _refusal(name: str, problem: str) -> RequestError:
    return RequestError("handler.signature", f"handler {name!r}: {problem}", handler=name)
