"""What the pusher does in the store: tasks are claimed for their targets, and answers are settled.

Everything here blocks for as long as a write takes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from detent.model.errors import RequestError
from detent.model.figures import add_counts
from detent.service import pushing
from detent.service.push_targets import disable
from detent.service.pushing import (
    Again,
    Broken,
    Done,
    Look,
    Meaning,
    Push,
    Pushing,
    Taken,
    Unsure,
)
from detent.service.work import held_back

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.ports.store import Store

_log = logging.getLogger("detent.pushing")


class PushRoom:
    """Pushes over the parts of an open engine; used by one thread at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._work = parts.work

    def claim(self, busy: Mapping[str, int]) -> Look:
        """Claim what is to be pushed now, with its secrets; what cannot have them fails here.

        `busy` says how many are on their way to each target.
        """
        parts, work = self._parts, self._work
        made_with = Pushing(
            safe=parts.safe,
            keys=parts.settings.webhook_delivery.secrets,
            now_ms=work.now_ms(),
            wall_ms=parts.now_ms(),
            stale_ms=work.stale_ms,
        )

        def claim(store: Store) -> tuple[Look, int]:
            look = pushing.claim_pushes(store, made_with, busy)
            opened = [
                (push, work.secrets.opened(store, push.task, made_with.now_ms))
                for push in look.pushes
            ]
            usable = tuple(replace(push, task=task) for push, task in opened if task is not None)
            return look._replace(pushes=usable), len(opened) - len(usable)

        look, failed = parts.write(claim)
        if look.pushes:
            work.claimed()
        if failed or look.pushes:
            work.told()
        return look

    def settle(self, push: Push, said: Meaning) -> None:
        """Do what a receiver's answer means; a claim that is no longer held changes nothing."""
        try:
            self._settle(push, said)
        except RequestError as error:
            if error.code not in ("work.lost", "work.not_found"):
                raise
        add_counts(self._parts.figures, {f"push.{type(said).__name__.lower()}": 1})

    def _settle(self, push: Push, said: Meaning) -> None:
        work, holder = self._work, push.holder
        match said:
            case Done():
                self._complete(push, said)
            case Broken():
                work.fail(holder, said.message, retryable=said.retryable, logs=said.logs)
            case Taken():
                work.heartbeat(holder, None, None)
            case Again():
                self._give_back(push, said)
            case Unsure():
                _log.info("task %s may have been pushed: %s", push.task.id, said.reason)
            case _:
                assert_never(said)

    def _complete(self, push: Push, said: Done) -> None:
        """Take the output; one that cannot be taken fails the task, for no push brings another."""
        try:
            self._work.complete(push.holder, said.output, said.logs)
        except RequestError as error:
            if error.code.startswith("work."):
                raise
            text = f"the receiver's answer cannot be taken: {error.message}"
            self._work.fail(push.holder, text, retryable=False)

    def _give_back(self, push: Push, said: Again) -> None:
        given = pushing.given_back(push, said, self._work.now_ms())
        now_ms = self._parts.now_ms()

        def back(store: Store) -> None:
            if said.gone:
                disable(store, push.target, said.reason, now_ms)
            row = store.work.item(given.id)
            told = {} if row is None else held_back(store, [row])
            store.work.give_back(given._replace(told=told.get(given.id)))

        self._parts.write(back)
        self._work.told()
        task = push.task
        self._work.secrets.forget(task.id)
        self._work.bell.ring([(task.handler, task.queue or "", task.tenant)])
