"""The canonical definition: blocks as frozen values, names exactly as in the wire contract.

`detent.definition` builds these from JSON, YAML or Python and is the only maker of `Definition`;
the kernel compiles them. Durations are integer milliseconds. Defaults are omitted from the
canonical form, so adding an option with a default never changes an old hash.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from detent.model.plan import End, Exit, Until

Gap = Literal["next", "shift", "before"]
"""A local time that a zone skips: the gap's end, moved on by its length, or just before it."""

Fold = Literal["first", "second"]
"""A local time that a zone has twice: which of the two is meant."""


class Delay(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long, or until when, a step waits before it is attempted."""

    duration: int
    business_days_only: bool = False
    jitter: int | None = None
    holidays: tuple[str, ...] = ()
    fire_at_local: str | None = None
    timezone: str | None = None
    country: str | None = None
    gap: Gap = "next"
    fold: Fold = "first"


class Retry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When and how often a failed attempt is repeated; `max_attempts` counts executions."""

    max_attempts: int
    initial_backoff: int
    max_backoff: int
    backoff_multiplier: float = 2.0
    jitter: int | None = None
    retry_if: str | None = None
    non_retryable_codes: tuple[str, ...] = ()


class Choice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer a person may give."""

    label: str
    value: str


class HumanInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person must answer before the step's handler runs."""

    prompt: str = ""
    timeout: int | None = None
    escalation_handler: str | None = None
    choices: tuple[Choice, ...] | None = None
    store_as: str | None = None
    allow_comment: bool = False


class Fields(Struct, frozen=True, kw_only=True):
    """Only these keys of `data` are visible."""

    fields: tuple[str, ...]


class ContextAccess(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the step's templates and handler may see."""

    data: bool | Fields = True
    config: bool = True
    audit: bool = False
    runtime: bool = False


class SendWindow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Local hours in which the step may act, in one of three styles.

    `hours` (spans per weekday) goes before `start` and `end`, these before the whole hours; the
    zone is the window's own, else the instance's.
    """

    start_hour: int = 9
    end_hour: int = 17
    days: tuple[int, ...] = ()
    start: str | None = None
    end: str | None = None
    hours: dict[str, tuple[str, ...]] = {}
    timezone: str | None = None
    holidays: tuple[str, ...] = ()
    country: str | None = None
    gap: Gap = "next"
    fold: Fold = "first"
    send_late_within: int = 0


class DeadlineBreach(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is called once when a step's deadline passes."""

    handler: str
    params: Any = None


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="step"):
    """Run one handler."""

    id: str
    handler: str
    params: Any = None
    delay: Delay | None = None
    retry: Retry | None = None
    timeout: int | None = None
    rate_limit_key: str | tuple[str, ...] | None = None
    send_window: SendWindow | tuple[SendWindow, ...] | None = None
    context_access: ContextAccess | None = None
    cancellable: bool = True
    wait_for_input: HumanInput | None = None
    queue_name: str | None = None
    deadline: int | None = None
    on_deadline_breach: DeadlineBreach | None = None
    fallback_handler: str | None = None
    cache_key: str | None = None
    output_schema: Any = None
    when: str | None = None
    compensation: Any = None
    pool: str | None = None
    sticky: bool = True


class Parallel(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="parallel"
):
    """Run all branches; each must complete."""

    id: str
    branches: tuple[tuple[Block, ...], ...]


class Race(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="race"):
    """Run all branches; the first decides."""

    id: str
    branches: tuple[tuple[Block, ...], ...]
    semantics: Literal["first_to_resolve", "first_to_succeed"] = "first_to_resolve"


class Loop(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="loop"):
    """Repeat the body while the condition holds."""

    id: str
    condition: str
    body: tuple[Block, ...]
    max_iterations: int = 1000
    break_on: str | None = None
    continue_on_error: bool = False
    poll_interval: int | None = None  # whole seconds, as on the wire
    retain_iterations: int | None = None


class ForEach(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="for_each"
):
    """Run the body once per element of a collection."""

    id: str
    collection: str
    body: tuple[Block, ...]
    item_var: str = "item"
    max_iterations: int = 1000
    retain_iterations: int | None = None


class Route(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition and what it leads to."""

    condition: str
    blocks: tuple[Block, ...]


class Router(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="router"):
    """Take the first route whose condition holds."""

    id: str
    routes: tuple[Route, ...] = ()
    default: tuple[Block, ...] | None = None


class TryCatch(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="try_catch"
):
    """Try; on failure catch; always finally."""

    id: str
    try_block: tuple[Block, ...]
    catch_block: tuple[Block, ...]
    finally_block: tuple[Block, ...] | None = None


class SubSequence(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="sub_sequence"
):
    """Start a child instance and wait for it."""

    id: str
    sequence_name: str
    version: int | None = None
    input: Any = None


class Variant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One arm of a split."""

    name: str
    weight: int
    blocks: tuple[Block, ...]


class ABSplit(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="a_b_split"
):
    """Take one variant, the same for the instance each time."""

    id: str
    variants: tuple[Variant, ...]


class CancellationScope(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="type",
    tag="cancellation_scope",
):
    """A body that a cancel waits for."""

    id: str
    blocks: tuple[Block, ...]


class SagaStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action and what undoes it."""

    id: str
    action: Block
    compensation: Block | None = None


class Saga(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="saga"):
    """Actions in order; on failure, compensations in reverse."""

    id: str
    steps: tuple[SagaStep, ...] = ()


class Wait(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="wait"):
    """Wait for a duration, a signal, or the first of both; `until` moves the end of a duration."""

    id: str
    duration: int | None = None
    signal: str | None = None
    store_as: str | None = None
    until: Until | None = None


class Transition(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"origin": "from"}):
    """An edge of a graph; the first whose `when` holds is taken."""

    origin: str
    to: str
    when: str | None = None


class Graph(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="graph"):
    """Named nodes with explicit transitions; a node with no matching transition ends the graph."""

    id: str
    start: str
    nodes: dict[str, tuple[Block, ...]]
    transitions: tuple[Transition, ...] = ()


class Goto(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="goto"):
    """Leave the current node of the enclosing graph for another."""

    id: str
    to: str


class Gatekeeper(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="gatekeeper"
):
    """Keep the limits and pools of a tenant; only the engine's own definitions have it."""

    id: str


class Schedule(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="schedule"
):
    """Start instances at the times of a schedule; only the engine's own definitions have it."""

    id: str


class Correlator(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="correlator"
):
    """Bring events and waits of a correlation key together; only the engine's own have it."""

    id: str


Block = (
    Step
    | Parallel
    | Race
    | Loop
    | ForEach
    | Router
    | TryCatch
    | SubSequence
    | ABSplit
    | CancellationScope
    | Saga
    | Wait
    | Graph
    | Goto
    | End
    | Gatekeeper
    | Schedule
    | Correlator
)


class Sla(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits whose breach is reported, never enforced."""

    max_runtime: int | None = None
    max_step_runtime: int | None = None


class PolicyRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy checked before steps: a built-in by `kind`, or a user's own by `handler`."""

    kind: str | None = None
    handler: str | None = None
    params: Any = None


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the hash covers."""

    name: str
    version: int
    blocks: tuple[Block, ...]
    input_schema: Any = None
    sla: Sla | None = None
    interceptors: Any = None
    on_failure: tuple[Block, ...] | None = None
    on_cancel: tuple[Block, ...] | None = None
    policies: tuple[PolicyRef, ...] = ()
    mode: Literal["lenient", "strict"] = "lenient"
    pool: str | None = None
    sticky: bool = True
    calendars: dict[str, tuple[str, ...]] = {}  # country -> its holidays, pinned by the version
    face: Literal["sequence", "plan"] = "sequence"
    exits: tuple[Exit, ...] = ()
    metadata: dict[str, Any] = {}


class Definition(Struct, frozen=True, kw_only=True):
    """A validated body, its canonical bytes and their SHA-256; made by `detent.definition`."""

    body: Body
    canonical: bytes
    hash: str

    @property
    def name(self) -> str:
        """The name under which versions are looked up."""
        return self.body.name

    @property
    def version(self) -> int:
        """The version within the name."""
        return self.body.version

    @property
    def flat(self) -> bool:
        """Whether every top-level block is a plain step."""
        return all(isinstance(block, Step) for block in self.body.blocks)
