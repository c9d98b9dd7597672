"""`Steering`: what an engine and a visitor offer to steer instances, for whoever can ask."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from detent.model import limits
from detent.model.decision import HandlerSpec, Verdict
from detent.model.link import Submission
from detent.ports.store import Store
from detent.service import steering
from detent.service.bulk import (
    BulkOptions,
    BulkResult,
    Where,
    bulk_action,
    bulk_filter,
    bulk_result,
    bulk_submission,
    bulk_targets,
)
from detent.service.sending import Verb
from detent.service.starting import Moment

T = TypeVar("T")


class Look(Protocol):
    """Reads the store."""

    def __call__(self, use: Callable[[Store], T], /) -> T: ...


class Steering:
    """The verbs, over four ways to speak to the engine: command, ask many, look, and now."""

    def __init__(
        self,
        command: Callable[[str, Verb, Any], Verdict],
        ask_all: Callable[[Sequence[Callable[[int], Submission]]], list[Verdict]],
        look: Look,
        moment: Callable[[], Moment],
    ) -> None:
        self._command = command
        self._ask_all = ask_all
        self._look = look
        self._moment = moment

    def set_data(self, instance: str, data: Any) -> None:
        """Replace the data."""
        self._command(instance, "set_data", steering.set_data(data))

    def set_state(self, instance: str, state: str, at: dt.datetime | dt.timedelta | None) -> str:
        """Set the state, and say which it is now."""
        args = steering.set_state(state, at, self._moment())
        return str(self._command(instance, "set_state", args).result["state"])

    def reschedule(self, instance: str, offset: dt.timedelta | int) -> None:
        """Move the due time."""
        self._command(instance, "reschedule", steering.reschedule(offset))

    def resume_from(self, instance: str, block: str, data: Any, signals: Any) -> dict[str, Any]:
        """Repeat from a block."""
        args = steering.resume_from(block, data, signals)
        return dict(self._command(instance, "resume_from", args).result)

    def inject(
        self,
        instance: str,
        blocks: Sequence[Any],
        position: int | None,
        handlers: Mapping[str, HandlerSpec],
    ) -> dict[str, Any]:
        """Put blocks in."""
        args = self._look(
            lambda store: steering.inject(store, instance, None, blocks, position, handlers)
        )
        return dict(self._command(instance, "inject", args).result)

    def bulk(self, action: str, where: Where, args: Any, options: BulkOptions) -> BulkResult:
        """Ask every instance that a filter finds, and count the verdicts."""
        limit = options.get("limit", limits.BULK_DEFAULT)
        now = self._moment()
        asked, wanted = bulk_action(action, now.fresh_id, args, now), bulk_filter(where)
        found = self._look(lambda store: bulk_targets(store, wanted, limit))
        if options.get("dry_run"):
            return BulkResult(matched=len(found), dry_run=True)
        verdicts: list[Verdict] = []
        for ids in _portions(found):
            verdicts += self._ask_all([partial(bulk_submission, asked, each) for each in ids])
        return bulk_result(verdicts)


def _portions(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """So many at once as one turn can take."""
    for start in range(0, len(items), limits.BULK_AT_ONCE):
        yield items[start : start + limits.BULK_AT_ONCE]
