"""The parts of one writer, handed to the functions that make up a turn."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from detent.kernel.gate.breakers import BreakerRules
from detent.kernel.run import Facts
from detent.runtime.cache import Cache
from detent.runtime.dues import Dues
from detent.runtime.gates import Gates
from detent.runtime.hold import Hold
from detent.runtime.lease import Lease
from detent.runtime.marks import Marks
from detent.runtime.outbox import Outbox
from detent.runtime.programs import Programs
from detent.runtime.ready import ReadyQueue
from detent.runtime.recovering import Recovery
from detent.runtime.seals import Seals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detent.model.decision import HandlerSpec, Verdict
    from detent.model.link import Submission, Submit
    from detent.ports.store import Arrival, Flight, NewArrival, Owner, Store
    from detent.runtime.clock import TurnClock
    from detent.runtime.foreign import Asked
    from detent.runtime.settings import WriterSettings


class Inbox:
    """Inputs on their way: submitted, left by ourselves, or known by their id."""

    __slots__ = (
        "after",
        "arrivals",
        "ask_at",
        "asked",
        "batches",
        "begun",
        "followers",
        "foreign",
        "held_ids",
        "inputs",
        "look_now",
        "own",
        "poll_at",
        "polled_full",
        "refused",
        "twins",
    )

    def __init__(self) -> None:
        self.batches: deque[Submit] = deque()
        self.inputs: deque[Submission] = deque()
        self.begun: list[tuple[str, str]] = []  # tenant and ticket of limited calls
        self.own: list[Arrival] = []  # messages this writer committed and takes next turn
        self.held_ids: set[str] = set()  # ids of queued inputs
        self.arrivals: set[str] = set()  # those of them that are rows of the arrival table
        self.followers: dict[str, list[int]] = {}  # id -> callers who sent it again
        self.twins: dict[str, list[Submission]] = {}  # instance -> further starts by the same key
        self.refused: list[tuple[str, Verdict]] = []  # arrivals to be taken without a step
        self.foreign: list[tuple[NewArrival, int]] = []  # for partitions of other writers
        self.asked: dict[str, Asked] = {}  # id -> who waits for another writer's verdict
        self.ask_at = 0
        self.look_now = True  # somebody said that there are arrivals
        self.poll_at = 0
        self.polled_full = False
        self.after = ""  # the tenant with which the last look ended


class Parts:
    """Everything a turn works with; used by one thread."""

    __slots__ = (
        "accepted_tick",
        "barred",
        "cache",
        "chance",
        "clock",
        "closing",
        "condemned",
        "contradicted",
        "dues",
        "facts",
        "forgetting",
        "gates",
        "groups",
        "hold",
        "inbox",
        "lease",
        "lost",
        "marks",
        "meta",
        "orphaned",
        "out",
        "programs",
        "queue",
        "recovery",
        "seals",
        "settings",
        "store",
        "turns",
        "unsure",
        "watchers",
    )

    def __init__(
        self,
        store: Store,
        clock: TurnClock,
        settings: WriterSettings,
        owner: Owner,
        chance: Callable[[int], bytes],
    ) -> None:
        meta = store.meta()
        self.store = store
        self.clock = clock
        self.settings = settings
        self.chance = chance
        self.meta = meta
        self.cache = Cache(settings.cache_bytes)
        self.queue = ReadyQueue()
        self.inbox = Inbox()
        self.marks = Marks()
        self.dues = Dues()
        self.out = Outbox()
        self.hold = Hold()
        self.programs = Programs(store)
        self.seals = Seals(store, meta.partitions, settings.seal_every_turns)
        self.lease = Lease(store, clock, settings, owner, meta)
        rules = BreakerRules(settings.breaker_threshold, settings.breaker_cooldown_ms)
        self.gates = Gates(store, meta, self.lease, clock, chance, rules)
        self.gates.serving = not settings.errand
        self.facts = Facts(
            handlers={},
            given={},
            epoch_ms=meta.epoch_ms,
            resolution_ms=meta.resolution_ms,
            gate=self.gates,
        )
        self.groups: list[list[str]] = []  # halves of a turn whose commit failed, to be tried alone
        self.condemned: dict[str, str] = {}  # instances to quarantine, with the reason
        self.barred: dict[str, str] = {}  # instances that could not even be quarantined
        self.recovery = Recovery()
        self.unsure: Any = None  # the batch of a commit that may or may not have happened
        self.contradicted = False  # the last commit did not fit what is stored
        self.lost = False  # the lease is somebody else's, or may be
        self.accepted_tick = -1  # up to here a jump of the clock was accepted
        self.watchers: list[int] = []  # callers who asked for the status after the turn
        self.turns = 0
        self.closing = False
        self.orphaned = False  # closing because whoever made the calls is gone
        self.forgetting = False  # old ids are left to drop

    def our_mark(self, flight: Flight) -> bool:
        """Whether a start mark is of this engine's life: its call may be running here."""
        lease = self.lease
        mine = flight.dispatcher == lease.owner.id
        return mine and (lease.successor or flight.dispatch >= self.marks.first)

    def register(self, handlers: Mapping[str, HandlerSpec]) -> None:
        """Tell the kernel what is known of handlers from now on."""
        self.facts = Facts(
            handlers={**self.facts.handlers, **handlers},
            given={},
            epoch_ms=self.meta.epoch_ms,
            resolution_ms=self.meta.resolution_ms,
            gate=self.gates,
        )
