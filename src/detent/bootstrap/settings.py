"""Settings of an engine: what is fixed in the store, and what one process chooses."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from detent.bootstrap.ranges import is_sharing, read_range
from detent.bootstrap.signing import signer_of
from detent.bootstrap.vaults import vault_of
from detent.handlers.network.settings import Allowed
from detent.model import limits
from detent.model.address import shown_address
from detent.model.errors import RequestError
from detent.model.webhook import Delivery, Webhook, check_webhooks
from detent.runtime.settings import WriterSettings

ClockMode = Literal["wall", "stepped", "virtual"]
WriterPlace = Literal["thread", "process"]

_LAST_EPOCH_MS = 32_503_680_000_000  # the year 3000; ids carry 48 bits of milliseconds


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen when an engine is opened."""

    path: str
    writer: WriterPlace = "thread"
    clock: ClockMode | None = None  # None: as the store was created, wall for a new one
    resolution_ms: int | None = None
    partitions: int | None = None
    partition: str | None = None  # which of them to own, such as "0-7"; None: all, or a fair share
    epoch_ms: int | None = None
    max_in_flight: int = 1_000
    threads: int | None = None
    switch_interval_ms: float | None = 0.2  # how long a busy Python thread keeps the writer waiting
    seed: str | None = None  # virtual time: salts, ids and instance seeds derive from it
    seal_key: str | None = None  # a file with the Ed25519 key that signs seals
    vault_key: str | None = None  # 32 bytes as hex or base64, or a file with them: seals secrets
    vault_old_keys: tuple[str, ...] = ()  # keys that only open what they sealed before
    webhooks: tuple[Webhook, ...] = ()  # who is told of ends and breaches
    webhook_delivery: Delivery = Delivery()
    workers: bool = False  # handlers that nobody has registered are external workers'
    work_stale_ms: int = limits.WORK_STALE_MS  # a claim without a heartbeat for so long is over
    allow_internal_urls: bool = False  # network handlers may call private addresses
    allowed_internal_hosts: tuple[str, ...] = ()  # names, addresses, networks; perhaps with :port
    api_key_envs: tuple[str, ...] = ("*_API_KEY",)  # variables that llm_call may read keys from
    breaker_threshold: int = 0  # failures in a row that open a circuit breaker; 0: there are none
    breaker_cooldown_ms: int = limits.BREAKER_COOLDOWN_MS  # how long an open one lets nothing pass
    turns: WriterSettings = WriterSettings()

    def __repr__(self) -> str:
        shown = shown_address(self.path)
        return f"Settings(path={shown!r})"  # a vault key may be among them


_NAMES = tuple(name for name in Settings.__struct_fields__ if name != "path")


def settings_of(path: object, named: dict[str, Any]) -> Settings:
    """Settings out of what a caller gave; each must be of its type."""
    if not _is_path(path):
        raise _bad("path", "the path of a file, ':memory:' or the URL of a database", path)
    for name in named:
        if name not in _NAMES:
            near = get_close_matches(name, _NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_NAMES)}"
            raise RequestError("request.invalid", f"an engine has no setting {name!r}; {hint}")
    made = Settings(path=str(path), **named)
    if made.seal_key is not None:
        if not _is_path(made.seal_key):
            raise _bad("seal_key", "the path of a key file", made.seal_key)
        made = msgspec.structs.replace(made, seal_key=str(Path(made.seal_key).absolute()))
    try:
        return msgspec.convert(msgspec.structs.asdict(made), Settings)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        raise RequestError("request.invalid", f"{name} is of the wrong type: {problem}") from None


def check(settings: Settings) -> Settings:
    """Refuse values that no engine can work with."""
    if settings.writer not in ("thread", "process"):
        raise _bad("writer", "'thread' or 'process'", settings.writer)
    if settings.clock not in (None, "wall", "stepped", "virtual"):
        raise _bad("clock", "'wall', 'stepped' or 'virtual'", settings.clock)
    if settings.clock == "virtual" and settings.writer == "process":
        raise _bad("writer", "'thread' with a virtual clock", settings.writer)
    resolution_ms = settings.resolution_ms
    if resolution_ms is not None and not 1 <= resolution_ms <= limits.RESOLUTION_MS:
        raise _bad("resolution_ms", f"1 to {limits.RESOLUTION_MS}", resolution_ms)
    if settings.partitions is not None and not 1 <= settings.partitions <= limits.PARTITIONS_MOST:
        raise _bad("partitions", f"1 to {limits.PARTITIONS_MOST}", settings.partitions)
    if settings.epoch_ms is not None and not 0 <= settings.epoch_ms <= _LAST_EPOCH_MS:
        raise _bad("epoch_ms", f"0 to {_LAST_EPOCH_MS}", settings.epoch_ms)
    if settings.max_in_flight < 1:
        raise _bad("max_in_flight", "at least 1", settings.max_in_flight)
    if settings.threads is not None and settings.threads < 1:
        raise _bad("threads", "at least 1", settings.threads)
    if settings.work_stale_ms < 1:
        raise _bad("work_stale_ms", "at least 1", settings.work_stale_ms)
    if settings.turns.seal_every_turns < 1:
        raise _bad("seal_every_turns", "at least 1", settings.turns.seal_every_turns)
    vault_of(settings.vault_key, settings.vault_old_keys)
    Allowed(settings.allowed_internal_hosts)
    signer_of(settings.seal_key)  # refused here already, whichever process will sign with it
    check_webhooks(settings.webhooks, settings.webhook_delivery)
    _check_breakers(settings)
    own = (
        settings.turns.partitions if settings.partition is None else read_range(settings.partition)
    )
    turns = msgspec.structs.replace(
        settings.turns,
        partitions=own,
        webhooks=tuple(msgspec.structs.replace(hook, secrets=()) for hook in settings.webhooks),
        breaker_threshold=settings.breaker_threshold,
        breaker_cooldown_ms=settings.breaker_cooldown_ms,
    )
    return settings if turns == settings.turns else msgspec.structs.replace(settings, turns=turns)


def _check_breakers(settings: Settings) -> None:
    for name, least, most in (
        ("breaker_threshold", 0, limits.BREAKER_THRESHOLD_MOST),
        ("breaker_cooldown_ms", 1, limits.BREAKER_COOLDOWN_MOST_MS),
    ):
        if not least <= getattr(settings, name) <= most:
            raise _bad(name, f"{least} to {most}", getattr(settings, name))


def for_writer(settings: Settings) -> Settings:
    """The settings as a writer gets them, perhaps in another process: without secrets."""
    return msgspec.structs.replace(
        settings,
        webhooks=(),
        webhook_delivery=Delivery(),
        vault_key=None,
        vault_old_keys=(),
        turns=msgspec.structs.replace(
            settings.turns, sharing=is_sharing(settings.path, settings.turns)
        ),
    )


def _is_path(value: object) -> bool:
    return isinstance(value, str | Path) and str(value) != "" and "\x00" not in str(value)


def _bad(name: str, expected: str, got: object) -> RequestError:
    return RequestError("request.invalid", f"{name} must be {expected}; got {got!r}")
