"""The writer's settings, with the defaults of CORE-SCH-6."""

from __future__ import annotations

from msgspec import Struct

from detent.model import limits
from detent.model.webhook import Webhook


class WriterSettings(Struct, frozen=True, kw_only=True):
    """How one writer works; `partitions` is which it wants, None for all of the store.

    With `sharing` all writers that want everything share it, and one may be without any.
    """

    partitions: tuple[int, ...] | None = None
    sharing: bool = False
    max_instances_per_turn: int = limits.INSTANCES_PER_TURN
    turn_budget_ms: int = limits.TURN_BUDGET_MS
    tick_interval_ms: int = 1_000
    lease_ttl_ms: int = limits.LEASE_TTL_MS
    lease_retry_ms: int = limits.LEASE_RETRY_MS
    lease_margin_ms: int = limits.LEASE_MARGIN_MS
    dedupe_window_ms: int = limits.DEDUPE_WINDOW_MS
    max_clock_jump_ms: int = limits.MAX_CLOCK_JUMP_MS
    stale_instance_threshold_secs: int = 300
    cache_bytes: int = 64 * 1024 * 1024
    seal_every_turns: int = limits.SEAL_EVERY_TURNS
    breaker_threshold: int = 0  # failures in a row; 0: no breakers
    breaker_cooldown_ms: int = limits.BREAKER_COOLDOWN_MS
    errand: bool = False  # only what is asked for moves; waits, lines and calls are left to others
    webhooks: tuple[Webhook, ...] = ()  # whom to tell; without their secrets
