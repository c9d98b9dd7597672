"""The snapshot: an instance's frontier, and nothing that has already ended.

`step` decodes it into a private working copy, changes that copy, and returns new bytes; nobody else
ever holds a decoded one across a turn. Fields are mutable for that reason only. Names are short
because every instance writes them every turn; the glossary tells what each is.

A snapshot is a tree and no value of it refers back, so the garbage collector need not know of it
(`gc=False`); the same holds for inputs, decisions and all that they are made of.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field


class Wait(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Why a frame stands still, since when, and what releases it."""

    kind: str  # one of kernel.survey.SHOWN
    token: int
    since: int
    due: int | None = None
    name: str = ""  # signal name, effect key, or child id
    note: str = ""


class Frame(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One open node of the execution tree."""

    b: str  # block id
    since: int = 0
    phase: str = ""
    n: int = 0  # iteration or visit, 0 for the first
    v: Any = None  # what the block kind needs to remember
    lanes: list[Lane] = field(default_factory=list)
    wait: Wait | None = None
    attempt: int = 0
    stop: bool = False  # being cancelled: open parts drain, nothing new starts
    deadline: int | None = None
    alert: int | None = None  # the tick at which a service level is breached
    wanted: int | None = None  # the tick at which it first wanted to act, for its windows
    granted: Any = None  # what the gate gave: {"keys": [limit keys], "resource": id, "key": …}
    back: bool = False  # it had a place at the gate and gave it up


class Lane(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A cursor over one list of blocks of a frame."""

    i: int = 0  # which list: branch, route, phase
    at: int = 0
    open: Frame | None = None
    end: str = ""  # "" while open, else completed | failed | cancelled


class OpenEffect(Struct, kw_only=True, omit_defaults=True, gc=False):
    """An effect that is not settled yet."""

    key: str
    node: str
    block: str
    handler: str
    token: int
    request: Raw = Raw(b"null")
    kind: str = "call"  # call | policy | escalation | breach
    doubt: str = "repeatable"  # repeatable | keyed | queryable | once
    state: str = "planned"  # planned | needs_reconcile | indeterminate; in_flight is the flight row
    marked: bool = False
    attempt: int = 1
    since: int = 0
    deadline: int | None = None
    timeout_ms: int | None = None
    tries: int = 0  # reconcile attempts so far
    crashes: int = 0
    next_try: int | None = None
    unwanted: bool = False
    ctx: bool = False
    reason: str = ""
    resource: str = ""  # resource_key of the pool's resource it is pinned to
    worker: bool = False  # it is with external workers: a work item stands for its call
    queue: str = ""  # the workers' queue it is in
    clock: Any = None  # of a plan's step whose handler takes ctx: the time it was planned at
    available: int | None = None  # the tick before which no worker gets it
    granted: Any = None  # what its call may use, as in its frame
    ticket: int = 0  # under which it was granted, until the call has begun
    asked: int = 0  # the ticket with which its next call stands in line


class KeptSignal(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A custom signal that nobody has taken yet."""

    name: str
    payload: Any = None
    tick: int = 0


class Snapshot(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Everything an instance needs to go on."""

    version: int = 0
    id: str
    tenant: str = "default"
    namespace: str = "default"
    definition: str = ""
    state: str = "scheduled"
    priority: int = 1
    timezone: str = "UTC"
    session: str | None = None
    seed: str = ""
    created: int = 0
    started: int | None = None
    ended: int | None = None
    generation: int = 0
    tokens: int = 0
    draws: int = 0
    steps: int = 0
    effects_made: int = 0
    dry_run: bool = False
    auto_approve: bool = False
    policies: list[Any] = field(default_factory=list)
    metadata: Any = None
    data: Any = None
    config: Any = None
    kv: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)  # of a plan's steps, by id
    outcome: str = ""  # of a plan's run, from when it is decided
    reason: str = ""  # why it was cancelled, as a person said
    signals: list[KeptSignal] = field(default_factory=list)
    runtime: dict[str, Any] = field(default_factory=dict)
    root: Frame | None = None
    effects: list[OpenEffect] = field(default_factory=list)
    parent: Any = None
    concurrency: Any = None  # {"key": …, "max": …}
    slot: bool = False  # it holds its concurrency key
    tickets: list[int] = field(default_factory=list)  # tokens that stand in line at the gate
    resources: dict[str, str] = field(default_factory=dict)  # pool -> the resource it had last
    pause_requested: bool = False
    cancel_requested: bool = False
    end_requested: str = ""  # failed | completed, as a person asked; what is protected drains
    paused_reason: str = ""
    error: Any = None
    budget: dict[str, int] | None = None
    spent: dict[str, int] = field(default_factory=dict)  # tokens so far: input, output, total
    budget_breach: Any = None  # while a budget keeps it paused
    alerted: list[str] = field(default_factory=list)  # service levels whose breach was told
    injected: str = ""  # digest of the blocks put in after those of the definition
    migrated_from: str = ""
    more: bool = False  # out of moves: goes on next turn without any input
    blobs: list[str] = field(default_factory=list)


_decoder = msgspec.json.Decoder(Snapshot)
_encoder = msgspec.json.Encoder()


def decode_snapshot(body: bytes | Raw) -> Snapshot:
    """A private working copy of stored bytes."""
    return _decoder.decode(body)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The bytes to store and hash."""
    return _encoder.encode(snapshot)
