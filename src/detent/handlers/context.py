"""What a handler is told beside its parameters, when it has a parameter named `ctx`."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from detent.model.decision import Order


class Keeper(Protocol):
    """Who keeps the checkpoints of a call: the claim of an external worker."""

    resumed: Any

    def save(self, value: Any) -> Awaitable[None]:
        """Keep a checkpoint; on the loop when awaited, on a thread at once."""


# Set around a call by whoever can keep checkpoints; nobody can inside an engine.
KEEPER: ContextVar[Keeper | None] = ContextVar("detent_keeper", default=None)


class Done:
    """Something to await that has happened already."""

    __slots__ = ()

    def __await__(self) -> Generator[None]:
        """Go on at once."""
        yield from ()


class HandlerContext(Struct, frozen=True, kw_only=True):
    """One call as its handler sees it.

    `key` is the same each time this effect is tried again after doubt: hand it to a provider that
    de-duplicates. `node` is the place in the tree, `block` the id in the definition. `resource` is
    the `resource_key` that the step's pool assigned, or empty. `data` and `config` are copies of
    this call's own: writing to them has no effect. `plan` is what a step of a plan sees, an object
    of `run`, `contact`, `events` and `clock`; None elsewhere.
    """

    key: str
    attempt: int
    data: Any
    config: Any
    instance_id: str
    tenant: str
    node: str
    block: str = ""
    dry_run: bool = False
    resource: str = ""
    plan: Any = None
    keeper: Keeper | None = None

    @property
    def resume_checkpoint(self) -> Any:
        """The last checkpoint of an earlier call of this task by an external worker, or None."""
        return None if self.keeper is None else self.keeper.resumed

    def checkpoint(self, value: Any) -> Awaitable[None]:
        """Keep a value that a later call of this task is given, should this worker die.

        `await` it in an async handler; in a plain one it is kept when this returns. Inside an
        engine nothing is kept: there a call that was cut short is made again from its beginning.
        """
        return Done() if self.keeper is None else self.keeper.save(value)


_decode = msgspec.json.Decoder().decode


def context_of(order: Order) -> HandlerContext:
    """The context of one order, with private copies of what the step may see."""
    return HandlerContext(
        key=order.key,
        attempt=order.attempt,
        data=_decode(order.data),
        config=_decode(order.config),
        instance_id=order.instance,
        tenant=order.tenant,
        node=order.node,
        block=order.block,
        dry_run=order.dry_run,
        resource=order.resource,
        plan=order.seen,
        keeper=KEEPER.get(),
    )
