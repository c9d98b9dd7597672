"""Settings of a server: flags before the environment, that before `detent.toml`, then defaults.

Every setting has one name: `log_level` is `--log-level`, `DETENT_LOG_LEVEL` and `log_level = "…"`.
A name that nobody knows is an error: a setting that is silently ignored is a hole in the fence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.model.errors import RequestError, StoreError

PREFIX = "DETENT_"
FILE = "detent.toml"
# Read elsewhere, by the command line itself.
OTHERS = ("DETENT_DEBUG", "DETENT_SEAL_KEY_FILE", "DETENT_URL")
# Known to existing deployments, and why they change nothing here.
WITHOUT_EFFECT = {
    "cron_tick_secs": "schedules are woken when they are due",
    "worker_reaper_tick_secs": "the reaper is woken when a claim is over",
    "max_instances_per_tenant": "tenants share every turn fairly",
}


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a server can be told."""

    db: str = "detent.db"
    host: str = "127.0.0.1"
    port: int = 8080
    writer: str = "process"
    partitions: str = ""  # which of the store's partitions to own; empty: all, or a fair share
    api_key: str = ""
    insecure: bool = False  # without a key, listen on other addresses than this machine's own
    require_tenant_header: bool = True
    allow_no_tenant_isolation: bool = False  # a key, and calls that name no tenant
    allow_internal_urls: bool = False
    allowed_internal_hosts: tuple[str, ...] = ()
    tick_interval_ms: int = 1_000
    cron_tick_secs: int = 10
    worker_reaper_tick_secs: int = 30
    worker_reaper_stale_secs: int = 60
    max_instances_per_tenant: int = 0
    encryption_key: str = ""
    encryption_key_file: str = ""
    encryption_keys_old: tuple[str, ...] = ()
    webhook_urls: tuple[str, ...] = ()
    webhook_secret: str = ""
    handlers: tuple[str, ...] = ()
    max_in_flight: int = 1_000
    breaker_threshold: int = limits.BREAKER_THRESHOLD
    breaker_cooldown_ms: int = limits.BREAKER_COOLDOWN_MS
    env_label: str = ""
    env_color: str = ""
    log_level: str = "info"


NAMES = ServerSettings.__struct_fields__
SECRET = ("api_key", "encryption_key", "encryption_keys_old", "webhook_secret")


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: str | None = None
) -> ServerSettings:
    """The settings that hold, from all places together."""
    told: dict[str, Any] = {}
    for name, value, place in (*_of_file(file), *_of_environment(environment), *_flags(flags)):
        told[name] = _checked(name, value, place)
    return ServerSettings(**told)


def vault_keys(settings: ServerSettings) -> tuple[str | None, tuple[str, ...]]:
    """The key that seals secrets, or the file that holds it, and those that only open."""
    if settings.encryption_key and settings.encryption_key_file:
        raise RequestError(
            "vault.key", "give encryption_key or encryption_key_file; both were given"
        )
    key = settings.encryption_key or settings.encryption_key_file or None
    if key is None and settings.encryption_keys_old:
        raise RequestError(
            "vault.key",
            "encryption_keys_old only open what they sealed; set encryption_key or "
            "encryption_key_file beside them",
        )
    return key, settings.encryption_keys_old


def check_isolation(settings: ServerSettings) -> None:
    """A key whose holder need not name a tenant sees all of them; that must be meant."""
    lax = settings.api_key and not settings.require_tenant_header
    if lax and not settings.allow_no_tenant_isolation:
        raise StoreError(
            "server.isolation",
            "require_tenant_header is false, so that whoever has the API key sees every tenant; "
            "set allow_no_tenant_isolation if that is meant",
        )


def without_effect(flags: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Settings that were given and change nothing."""
    return [
        name
        for name in WITHOUT_EFFECT
        if flags.get(name) is not None or PREFIX + name.upper() in environment
    ]


def _flags(flags: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    return [
        (name, value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
        if value not in (None, ())
    ]


def _of_environment(environment: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    found = []
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in OTHERS:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in NAMES:
            raise _unknown(variable, [PREFIX + each.upper() for each in NAMES])
        found.append((name, environment[variable], variable))
    return found


def _of_file(file: str | None) -> list[tuple[str, Any, str]]:
    path = Path(file or FILE)
    if not path.exists():
        if file is not None:
            raise RequestError("file.missing", f"there is no file {file}")
        return []
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RequestError("request.invalid", f"{path} cannot be read: {error}") from None
    for name in told:
        if name not in NAMES:
            raise _unknown(f"{name} in {path}", NAMES, name)
    return [(name, value, f"{name} in {path}") for name, value in told.items()]


def _checked(name: str, value: Any, place: str) -> Any:
    """A value of the setting's type; texts of the environment are read as what they mean."""
    kind = ServerSettings.__annotations__[name]
    try:
        if isinstance(value, str) and "tuple" in kind:
            value = tuple(part.strip() for part in value.split(",") if part.strip())
        if "tuple" in kind:
            return msgspec.convert(value, tuple[str, ...])
        types = {"str": str, "int": int, "bool": bool}
        return msgspec.convert(value, types[kind], strict=False)
    except msgspec.ValidationError:
        shown = "[hidden]" if name in SECRET else repr(value)[:80]
        wanted = {"int": "a whole number", "bool": "true or false", "str": "text"}
        raise RequestError(
            "request.invalid", f"{place} must be {wanted.get(kind, 'a list')}; got {shown}"
        ) from None


def _unknown(given: str, known: Any, name: str = "") -> RequestError:
    near = get_close_matches(name or given, known, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; the settings are {', '.join(NAMES)}"
    return RequestError("request.invalid", f"there is no setting {given}{hint}")
