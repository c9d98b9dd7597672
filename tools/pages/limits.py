"""The page of settings and limits: names, values and why, from the modules that define them."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import NODEFAULT
from msgspec.structs import fields

from detent.bootstrap.settings import Settings
from detent.model import limits
from detent.model.webhook import Delivery
from detent.runtime.settings import WriterSettings
from pages.markdown import code, document, table

_LIMIT = re.compile(r"^(?P<name>[A-Z_]+) = (?P<value>[^#]+?)(?:  # (?P<why>.*))?$")

_OPENING = """\
What can be chosen when an engine is opened, and what bounds everything else. Limits are constants,
not settings."""

_ENGINE = {
    "path": "The store file; `:memory:` is a store that ends with the engine.",
    "writer": "Where the writer works: in a thread of this process, or in a process of its own.",
    "clock": "`wall`, `stepped` or `virtual`; fixed in the store. Without it: as the store was "
    "made, `wall` for a new one.",
    "resolution_ms": "Milliseconds per tick, 1 to 60,000; fixed in the store. 100 for a new one.",
    "partitions": f"How many chains and leases the store has; fixed in it. {limits.PARTITIONS} "
    "for a new one.",
    "partition": "Which partitions to own, such as `0-7,12`. When not given: all of a file, and a "
    "fair share on a server.",
    "epoch_ms": "The instant of tick 0; fixed in the store. For a new one now, in virtual time "
    "2026-01-01T00:00:00Z.",
    "max_in_flight": "Calls of async handlers at once.",
    "threads": f"Plain-function handlers at once; {limits.POOL_THREADS} when not given.",
    "switch_interval_ms": "Lowers Python's switch interval (5 ms) for the whole process, so that a "
    "handler that computes holds the writer up for less long; none leaves it.",
    "seed": "Virtual time: salts, ids and instance seeds derive from it, so that equal seeds give "
    "equal bytes.",
    "seal_key": "A file with an Ed25519 private key; seals are signed with it.",
    "allow_internal_urls": "Network handlers may call private addresses: for your own machine.",
    "allowed_internal_hosts": "What they may call beyond the public internet: names, `*.name`, "
    "addresses, networks such as `10.0.0.0/8`, each perhaps with `:port`.",
    "api_key_envs": "Patterns of the environment variables that `llm_call` may read keys from.",
    "vault_key": "Seals credentials and the secrets of triggers: 32 bytes as hex or base64, or a "
    "file with them. Without it there are none.",
    "vault_old_keys": "Keys that only open what they sealed before they were replaced.",
    "webhooks": "URLs that are told of ends and breaches, each with `url` and perhaps `events`, "
    "`tenant` and `secrets`.",
    "webhook_delivery": "How they are told, below.",
    "workers": "Handlers that nobody has registered are external workers'; off, they are refused.",
    "breaker_threshold": "Failures in a row that open a handler's circuit breaker; 0: there are "
    "none. `detent serve` has 5.",
    "breaker_cooldown_ms": "How long an open circuit breaker lets nothing pass.",
    "work_stale_ms": "How long a worker's claim lives without a heartbeat.",
    "turns": "The settings of the writer, below.",
}

_WRITER = {
    "partitions": "Set by the engine from `partition`.",
    "sharing": "Set by the engine: on a server, unless it was told which partitions to own.",
    "max_instances_per_turn": "Instances in one turn.",
    "turn_budget_ms": "A turn of the wall clock decides no further instance after that.",
    "tick_interval_ms": "Stepped clock: time between turns. Wall clock: the longest sleep before "
    "the writer looks again.",
    "lease_ttl_ms": "How long a lease is valid without renewal.",
    "lease_retry_ms": "How often a writer that shares a store, or lost partitions, looks around.",
    "lease_margin_ms": "Added to another process's lease before its calls in flight are doubted.",
    "dedupe_window_ms": "How long a caller's id is remembered.",
    "max_clock_jump_ms": "A larger jump of the wall clock holds the engine until it is accepted.",
    "stale_instance_threshold_secs": "How often the writer looks for dispatchers that have gone.",
    "cache_bytes": "Encoded snapshots kept in memory.",
    "seal_every_turns": "Turns, over all partitions, from one seal to the next.",
    "breaker_threshold": "Set by the engine.",
    "breaker_cooldown_ms": "Set by the engine.",
    "errand": "Only what is asked for moves; waits, lines and calls are left to another engine.",
    "webhooks": "Set by the engine: its URLs without their secrets.",
}

_DELIVERY = {
    "secrets": "Keys of every URL that has none of its own; the first also signs in the old form.",
    "timeout_ms": "How long a receiver may take to answer.",
    "retries": "Further attempts after the first; then a delivery is parked.",
    "backoff_ms": "The pause before the first of them; each further one is twice as long.",
}


def page(root: Path) -> str:
    """Make the page."""
    parts = [_OPENING, "## Settings of an engine", "Keyword arguments of `detent.Engine`."]
    parts += [_settings(Settings, _ENGINE), "## Settings of the writer"]
    parts += ["Fields of the `turns` setting.", _settings(WriterSettings, _WRITER)]
    parts += ["## Settings of deliveries", "Fields of the `webhook_delivery` setting."]
    parts += [_settings(Delivery, _DELIVERY), "## Limits"]
    source = (root / "src/detent/model/limits.py").read_text(encoding="utf-8")
    for heading, rows in grouped(source).items():
        parts += [f"### {heading}", table(("Limit", "Value", "Remark"), rows)]
    return document("Settings and limits", *parts)


def _settings(kind: type, meanings: dict[str, str]) -> str:
    rows = []
    for field in fields(kind):
        if field.name not in meanings:
            message = (
                f"{kind.__name__}.{field.name} is new: say in tools/pages/limits.py what it is"
            )
            raise LookupError(message)
        default = ":memory:" if field.default is NODEFAULT else field.default
        rows.append((code(field.name), _value(default), meanings[field.name]))
    return table(("Setting", "Default", "Meaning"), rows)


def grouped(source: str) -> dict[str, list[tuple[str, str, str]]]:
    """Read the limits under their comments, in the order of the module."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    heading = ""
    for line in source.splitlines():
        found = _LIMIT.match(line)
        if line.startswith("# "):
            heading = line[2].upper() + line[3:]
        elif found is not None:
            value = _value(getattr(limits, found["name"]))
            groups.setdefault(heading, []).append((code(found["name"]), value, found["why"] or ""))
    return groups


def _value(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(code, value))
    return code(value) if isinstance(value, str) else "as below"
