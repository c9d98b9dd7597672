"""`Desk`: what a server needs of the engine behind it; whoever assembles an engine offers it.

Reading and catalogue writes are functions over a store, run beside the event loop on a connection
of their own. Whatever changes execution state is a submission, answered by the writer's turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from detent.model.figures import Times

if TYPE_CHECKING:
    from detent.model.decision import HandlerSpec, Verdict
    from detent.model.link import Submission
    from detent.ports.store import NewArrival, Store
    from detent.service.starting import Moment
    from detent.service.vault import Safe
    from detent.service.work import Holder, Polled, PollRequest

T = TypeVar("T")


class Statistics(Struct, frozen=True, kw_only=True):
    """What is counted since the engine was opened, and how full it is now."""

    counts: Mapping[str, int]  # by the action of a journal entry, and times by bucket
    calls: Times  # of handlers
    under_way: int = 0
    waiting: int = 0
    stuck: int = 0
    parked: int = 0  # calls whose handler nobody has registered
    queued: int | None = None  # instances and inputs for the next turn; None when nobody answers


class Verbs(Protocol):
    """The blocking verbs of an engine for what is configured now and then."""

    @property
    def limits(self) -> Any:
        """Rate limits."""

    @property
    def pools(self) -> Any:
        """Pools of resources."""

    @property
    def breakers(self) -> Any:
        """Circuit breakers."""

    @property
    def crons(self) -> Any:
        """Schedules."""

    @property
    def webhooks(self) -> Any:
        """Deliveries, and URLs that want no more."""


class WorkDoor(Protocol):
    """What the holder of a task may do; it blocks for as long as a write takes."""

    def heartbeat(self, holder: Holder, checkpoint: Any, seq: int | None) -> int:
        """Keep a claim; the number of its checkpoint."""

    def complete(self, holder: Holder, output: Any, logs: Sequence[Any]) -> None:
        """Report a task as done."""

    def fail(
        self, holder: Holder, message: str, *, retryable: bool, logs: Sequence[Any] = ()
    ) -> None:
        """Report a task as failed."""


class Desk(Protocol):
    """The engine as the event loop of a server sees it; nothing here blocks."""

    def moment(self) -> Moment:
        """Now, with a fresh id and a seed."""

    def fresh_id(self) -> str:
        """A new id, ordered by time."""

    def now_ms(self) -> int:
        """Logical now as Unix milliseconds."""

    def wall_ms(self) -> int:
        """Now by the wall as Unix milliseconds: what expires or was signed goes by it."""

    def safe(self) -> Safe:
        """What secrets are kept with."""

    def handlers(self) -> Mapping[str, HandlerSpec]:
        """The handlers of this process."""

    def workers(self) -> bool:
        """Whether steps of unknown handlers wait for external workers."""

    def here(self) -> tuple[str, int]:
        """The host and the process id of this node."""

    def held(self) -> str:
        """Why the writer holds, as an error code; empty while it works."""

    def look(self, use: Callable[[Store], T]) -> Awaitable[T]:
        """Read, on a connection of a reader's thread."""

    def write(self, use: Callable[[Store], T]) -> Awaitable[T]:
        """Write rows of the catalogue, one caller at a time."""

    def ask(self, make: Callable[[int], Submission]) -> Awaitable[Verdict]:
        """Submit, and wait for the verdict; a refusal is raised."""

    def ask_all(self, makes: Sequence[Callable[[int], Submission]]) -> Awaitable[list[Verdict]]:
        """Submit many at once, and wait for all the verdicts; a refusal is one of them."""

    def leave(self, arrivals: Sequence[NewArrival]) -> Awaitable[None]:
        """Leave arrivals, all or none, and wake the writer."""

    def verb(self, use: Callable[[Verbs], T]) -> Awaitable[T]:
        """Use a blocking verb, on a thread of its own; for configuration only."""

    def poll_work(self, request: PollRequest, seconds: float) -> Awaitable[Polled]:
        """Claim tasks of external workers; wait for one, but no longer than so many seconds."""

    def rouse(self) -> None:
        """Who may have which task has changed: let everybody who waits for one look again."""

    def work(self, use: Callable[[WorkDoor], T]) -> Awaitable[T]:
        """Keep or report a task of an external worker."""

    def under_way(self) -> dict[Any, list[str]]:
        """What the servers of this engine are answering now under a caller's key."""

    def partition(self, instance: str) -> int:
        """The partition an instance belongs to."""

    def salt(self) -> bytes:
        """Sixteen random bytes for a new instance."""

    def watch(self, instance: str, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told on the loop whenever an instance moved; call what comes back to stop.

        An empty name is any instance. The state is empty when it stayed as it was; moves that come
        at once are told once, so whoever must know how things stand looks.
        """

    def listen(self, instance: str, told: Callable[[str, str], None]) -> Callable[[], None]:
        """Be told on the loop what language models write for an instance: block and text."""

    def statistics(self) -> Awaitable[Statistics]:
        """Counters and levels of the running engine, for metrics."""
