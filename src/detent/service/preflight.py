"""Preflight: what would stand in the way of a definition's instances, before one is started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, to_builtins

from detent.definition import warnings
from detent.kernel.builtin import MOVES
from detent.model.decision import HandlerSpec
from detent.model.errors import RequestError
from detent.service.blocks import every_child, every_step
from detent.service.credentials import get_credential
from detent.service.gate_views import list_limits, list_pools
from detent.service.starting import check_handlers

if TYPE_CHECKING:
    from detent.model.definition import Definition
    from detent.ports.store import Store

Status = Literal["pass", "warn", "fail"]

_WORST: tuple[Status, ...] = ("fail", "warn", "pass")
_CREDENTIAL = re.compile(r"credentials://([A-Za-z0-9._-]+)")


class Surroundings(Struct, frozen=True, kw_only=True):
    """Where a definition would run."""

    place: tuple[str, str]  # tenant and namespace
    handlers: Mapping[str, HandlerSpec]
    workers: bool  # whether steps of unknown handlers wait for workers
    now_ms: int


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at; its findings are sentences."""

    id: str
    status: Status
    summary: str
    findings: list[str] = []


def preflight(store: Store, definition: Definition, around: Surroundings) -> list[Check]:
    """Look at everything a definition needs, and say what is missing."""
    known = [*around.handlers, *MOVES]
    unknown: Status = "warn" if around.workers else "fail"
    return [
        _check("handlers", "every handler is here", _handlers(definition, around), unknown),
        _check("expressions", "nothing looks wrong", warnings(definition, _All(known)), "warn"),
        _check("sub_sequences", "every one is stored", _children(store, definition, around)),
        _check("credentials", "every one is usable", _credentials(store, definition, around)),
        _check("pools", "every pool has resources", _pools(store, definition, around)),
        _check("limits", "every key has a limit", _limits(store, definition, around), "warn"),
    ]


def overall(checks: Iterable[Check]) -> Status:
    """The worst status of all."""
    found = {check.status for check in checks}
    return next(each for each in _WORST if each in found)


class _All(frozenset[str]):
    """Handlers are looked at by a check of their own."""

    def __contains__(self, name: object) -> bool:
        return True


def _check(id: str, good: str, found: Iterable[str], bad: Status = "fail") -> Check:
    findings = list(found)
    if not findings:
        return Check(id=id, status="pass", summary=good)
    many = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
    return Check(id=id, status=bad, summary=many, findings=findings)


def _handlers(definition: Definition, around: Surroundings) -> Iterator[str]:
    try:
        check_handlers(definition, around.handlers)
    except RequestError as error:
        yield error.message


def _children(store: Store, definition: Definition, around: Surroundings) -> Iterator[str]:
    for child in every_child(definition):
        if "{{" in child.sequence_name:
            continue  # only known when it is reached
        if store.find_definition(*around.place, child.sequence_name, child.version) is None:
            which = "" if child.version is None else f"version {child.version} of "
            yield f"block {child.id!r}: {which}{child.sequence_name!r} is not stored here"


def _credentials(store: Store, definition: Definition, around: Surroundings) -> Iterator[str]:
    tenant = around.place[0]
    for step in every_step(definition):
        for id in dict.fromkeys(_CREDENTIAL.findall(str(to_builtins(step.params)))):
            try:
                found = get_credential(store, tenant, id)
            except RequestError as error:
                yield f"block {step.id!r}: {error.message}"
            else:
                if not found.enabled:
                    yield f"block {step.id!r}: credential {id!r} is disabled"


def _pools(store: Store, definition: Definition, around: Surroundings) -> Iterator[str]:
    wanted = {step.id: step.pool for step in every_step(definition) if step.pool}
    if not any(wanted):
        return
    pools = {pool.name: pool for pool in list_pools(store, around.place[0], around.now_ms)}
    for block, name in wanted.items():
        if "{{" in name:
            continue
        if name not in pools:
            yield f"block {block!r}: there is no pool {name!r}"
        elif not any(each.enabled for each in pools[name].resources):
            yield f"block {block!r}: pool {name!r} has no enabled resource"


def _limits(store: Store, definition: Definition, around: Surroundings) -> Iterator[str]:
    wanted = {step.id: _keys(step.rate_limit_key) for step in every_step(definition)}
    if not any(wanted.values()):
        return
    known = {limit.key for limit in list_limits(store, around.place[0], around.now_ms)}
    for block, keys in wanted.items():
        for key in keys:
            if "{{" not in key and key not in known:
                yield f"block {block!r}: key {key!r} has no limit, so nothing is held back"


def _keys(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)
