"""What is on its way to the writer, and who waits for its answer; one desk per link.

When a writer is lost, every caller who waits is told that the store is unavailable, once, through
the same door as an answer would come. What nobody can send again goes to the writer's successor:
outcomes until their receipt is back, whether or not the lost writer had got them, start marks that
were not answered, and what was said about handlers. When there is no successor, the marks are lost.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from detent.model.decision import Verdict
from detent.model.errors import RequestError, StoreError
from detent.model.link import Control, Decided, MarkRequest, Submission, Submit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = Submission | MarkRequest | Control


class Inbox:
    """A queue of items from many threads that is emptied at one go by one."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Sequence[Item] | Submit] = queue.SimpleQueue()

    def put(self, items: Sequence[Item] | Submit) -> None:
        """Leave items, or a batch as it came from another process."""
        self._queue.put(items)

    def get_batch(self, timeout: float) -> list[Submit]:
        """Everything there is; waits up to `timeout` seconds when there is nothing."""
        try:
            first = self._queue.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return []
        waiting = self._queue.qsize()  # one reader: so many are certainly there
        return _sorted([first, *(self._queue.get_nowait() for _ in range(waiting))])


class Desk:
    """The near end of a link: takes items in, hands answers out, remembers who waits."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self._swap = threading.Lock()  # nobody may be between noting and queueing when it is lost
        self._decided: Callable[[Decided], None] | None = None
        self._acks: dict[int, None] = {}
        self._outcomes: dict[int, Submission] = {}  # by receipt
        self._marks: dict[str, str] = {}  # effect key -> instance, if it was told
        self._handlers: Control | None = None
        self._shut: RequestError | StoreError | None = None

    def open(self, decided: Callable[[Decided], None]) -> None:
        """From now on this is told what every turn decided."""
        self._decided = decided

    def submit(self, items: Sequence[Item]) -> None:
        """Queue items; raises when the writer is closed or gone for good."""
        if self._shut is not None:
            raise self._shut
        with self._swap:
            for item in items:
                if isinstance(item, MarkRequest):
                    self._marks.update(dict.fromkeys(item.keys, ""))
                    self._marks.update(zip(item.keys, item.instances, strict=False))
                    continue
                if item.ack > 0:
                    self._acks[item.ack] = None
                if isinstance(item, Submission):
                    if item.ack < 0:
                        self._outcomes[item.ack] = item
                elif item.verb == "register":
                    self._handlers = Control("register", args=item.args)
            self.inbox.put(items)

    def deliver(self, decided: Decided) -> None:
        """Hand out what a turn decided."""
        for ack, _verdict in decided.acks:
            self._acks.pop(ack, None)
        for receipt in decided.taken:
            self._outcomes.pop(receipt, None)
        for key, _dispatch in decided.marked:
            self._marks.pop(key, None)
        for key in decided.lost:
            self._marks.pop(key, None)
        if self._decided is not None:
            self._decided(decided)

    def lose(self, reason: str, *, succeeded: bool) -> None:
        """The writer is gone: answer everybody who waits, leave the rest to its successor."""
        lost: list[str] = []
        with self._swap:
            before, self.inbox = self.inbox, Inbox()
            acks, self._acks = self._acks, {}
            if succeeded:
                self.inbox.put(self._legacy(before))
            else:
                lost, self._marks = list(self._marks), {}
        gone = Verdict(id="", ok=False, code="store.unavailable", message=reason)
        if self._decided is not None:
            answers = [(ack, gone) for ack in acks]
            self._decided(Decided(lost=lost, acks=answers, held="store.unavailable"))

    def _legacy(self, before: Inbox) -> list[Item]:
        """What a new writer is told first."""
        items: list[Item] = [] if self._handlers is None else [self._handlers]
        if self._marks:
            told = list(self._marks.values())
            items.append(MarkRequest(list(self._marks), told if all(told) else []))
        items += self._outcomes.values()
        for batch in before.get_batch(0):
            items += [told for told in batch.inputs if not told.ack]
        return items

    def shut(self, error: RequestError | StoreError) -> None:
        """Nothing more is taken in; this is what callers are told."""
        if self._shut is None:
            self._shut = error


def _sorted(found: list[Sequence[Item] | Submit]) -> list[Submit]:
    """The items by kind, in order; batches of another process stay as they are."""
    batches: list[Submit] = []
    own: Submit | None = None
    for items in found:
        if isinstance(items, Submit):
            batches.append(items)
            own = None
            continue
        if own is None:
            own = Submit()
            batches.append(own)
        for item in items:
            if isinstance(item, Submission):
                own.inputs.append(item)
            elif isinstance(item, MarkRequest):
                own.marks.append(item)
            else:
                own.control.append(item)
    return batches
