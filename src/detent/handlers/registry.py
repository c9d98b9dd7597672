"""The registry of one engine: which function performs which handler's orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

from msgspec import Struct

from detent.handlers.declare import Declaration, declaration_of
from detent.handlers.manners import AsHandler, AsPolicy, AsReconcile
from detent.handlers.names import RESERVED
from detent.handlers.parameters import Parameters
from detent.handlers.perform import Performer, performer_of
from detent.handlers.secrets import Opened, Opener, Secrets, open_order
from detent.model.decision import HandlerSpec, Order
from detent.model.errors import DetentError, RequestError


class Entry(Struct, frozen=True, kw_only=True):
    """One registered handler or policy, compiled."""

    function: Callable[..., Any]
    spec: HandlerSpec
    call: Performer
    reconcile: Performer | None = None


class Registry:
    """Handlers by name; adding is all or nothing for each function."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = secrets  # who knows the credentials that params refer to
        self._entries: dict[str, Entry] = {}

    def add(self, function: Callable[..., Any]) -> Entry:
        """Register a decorated function or bound method; the same one twice is one."""
        declared = declaration_of(function)
        if declared is None:
            name = getattr(function, "__name__", repr(function))
            raise RequestError(
                "handler.signature",
                f"a handler must be decorated, got the plain {name!r}; put @handler before it",
            )
        if declared.name in RESERVED:
            raise _duplicate(declared.name, "is built in")
        return self._enter(function, declared)

    def add_builtin(self, function: Callable[..., Any]) -> Entry:
        """Register one of the engine's own handlers under its reserved name."""
        declared = declaration_of(function)
        if declared is None or declared.name not in RESERVED:
            raise RequestError("handler.signature", f"{function!r} is no built-in handler")
        return self._enter(function, declared)

    def collect(self, found: object) -> list[str]:
        """Register a decorated function, all of a module, or all of a list of these; the names."""
        if isinstance(found, ModuleType):
            functions = [each for each in vars(found).values() if declaration_of(each) is not None]
            return [self.add(each).spec.name for each in functions]
        if isinstance(found, Iterable) and not isinstance(found, str | bytes):
            return [name for each in found for name in self.collect(each)]
        if callable(found):
            return [self.add(found).spec.name]
        raise RequestError(
            "handler.signature",
            f"expected a decorated function, a module or a list of these, got {found!r}",
        )

    def specs(self) -> dict[str, HandlerSpec]:
        """What the kernel is told about each handler."""
        return {name: entry.spec for name, entry in self._entries.items()}

    def get(self, name: str) -> Entry | None:
        """The handler of that name."""
        return self._entries.get(name)

    def performer(self, name: str, mode: str) -> Performer | None:
        """What performs an order of that mode; None while nobody does."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        return entry.reconcile if mode == "reconcile" else entry.call

    def _enter(self, function: Callable[..., Any], declared: Declaration) -> Entry:
        present = self._entries.get(declared.name)
        if present is not None:
            if present.function == function:
                return present
            raise _duplicate(declared.name, f"is registered already, by {present.function!r}")
        entry = _compile(function, declared, Opener(self._open, self._renewal))
        self._entries[declared.name] = entry
        return entry

    def _open(self, order: Order) -> Opened:
        return open_order(order, self.secrets)

    def _renewal(self, error: DetentError) -> Future[None] | None:
        late = error.details.get("credential")
        return None if late is None or self.secrets is None else self.secrets.renew(late)


def _compile(function: Callable[..., Any], declared: Declaration, opener: Opener) -> Entry:
    name = declared.name
    policy = declared.kind == "policy"
    takes = Parameters(function, f"{declared.kind} {name!r}", subset=policy)
    manner = AsPolicy(name) if policy else AsHandler(name, previews=declared.previews)
    call = performer_of(function, takes, manner, None if policy or not declared.opens else opener)
    ctx = takes.takes_ctx
    reconcile = None
    if declared.reconcile is not None:
        asked = Parameters(declared.reconcile, f"reconcile of handler {name!r}", subset=True)
        reconcile = performer_of(declared.reconcile, asked, AsReconcile(name), opener)
        ctx = ctx or asked.takes_ctx
    spec = HandlerSpec(
        name=name,
        doubt=declared.doubt,
        timeout_ms=declared.timeout_ms,
        withdrawable=declared.withdrawable,
        ctx=ctx,
        merge=declared.merge,
        schema=None if policy else takes.schema,
    )
    return Entry(function=function, spec=spec, call=call, reconcile=reconcile)


def _duplicate(name: str, problem: str) -> RequestError:
    return RequestError(
        "handler.duplicate", f"the handler name {name!r} {problem}; choose another", handler=name
    )
