"""Push targets: the URL that gets the tasks of a queue, and what they are signed with.

A target is a tenant's own, one for each queue. Its key is the value of a credential, or a secret of
its own that is sealed and never shown; without either the keys of all deliveries sign. The URL is
judged when it is set and again by whoever connects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.records import RecordQuery
from detent.service.addresses import check_url
from detent.service.arguments import check_text, invalid, storable
from detent.service.handing_out import secret_of
from detent.service.records import change, encode
from detent.service.vault import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detent.ports.store import Store
    from detent.service.vault import Safe

KIND = "push_target"


class PushTarget(Struct, frozen=True, kw_only=True):
    """Where the tasks of a queue are pushed to; `push_url` is another name of `url`.

    `version` is what the receiver counts as where a handler is pinned. A `secret` that is left out
    stays as it was, an empty one goes. In mode `poll`, or disabled, nothing is pushed.
    """

    queue_name: str
    url: str = ""
    push_url: str = ""
    mode: Literal["push", "poll"] = "push"
    credential_id: str | None = None
    secret: str | None = None
    version: str | None = None
    enabled: bool = True
    tenant_id: str = ""

    def __repr__(self) -> str:
        return f"PushTarget(queue_name={self.queue_name!r})"


class KeptTarget(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A target as it is stored: its secret is sealed."""

    queue_name: str
    url: str
    mode: Literal["push", "poll"] = "push"
    credential_id: str | None = None
    sealed: bytes | None = None
    version: str | None = None
    enabled: bool = True
    reason: str = ""  # why it was disabled, where its receiver asked for that

    @property
    def active(self) -> bool:
        """Whether tasks are pushed."""
        return self.enabled and self.mode == "push"


class Target(NamedTuple):
    """A target that tasks are pushed to now."""

    id: str
    tenant: str
    kept: KeptTarget

    @property
    def worker(self) -> str:
        """The worker under whose name its claims are made."""
        return worker_of(self.kept.queue_name)


decode = msgspec.json.Decoder(KeptTarget).decode


def worker_of(queue: str) -> str:
    """The name of the worker that a queue is pushed by."""
    return f"push:{queue}"


def settled(
    body: PushTarget, place: Place, safe: Safe, earlier: KeptTarget | None = None
) -> KeptTarget:
    """What is kept of a target; refused where its URL may not be called."""
    url = body.url or body.push_url
    if body.push_url not in ("", url):
        raise invalid("push_url", "the same as url, or left out", body.push_url)
    check_text("queue_name", body.queue_name, limits.QUEUE_CHARS)
    for name in ("credential_id", "version"):
        if getattr(body, name) is not None:
            check_text(name, getattr(body, name), limits.NAME_CHARS)
    if body.secret and body.credential_id is not None:
        raise RequestError("request.invalid", "a target has a secret or a credential_id, not both")
    check_url("request.invalid", "url", url, safe)
    return KeptTarget(
        queue_name=body.queue_name,
        url=url,
        mode=body.mode,
        credential_id=body.credential_id,
        sealed=_sealed(body, place, safe, earlier),
        version=body.version,
        enabled=body.enabled,
    )


def shown(kept: KeptTarget) -> dict[str, Any]:
    """A target as callers see it: that it has a secret, never which."""
    told = asdict(kept)
    has_secret = told.pop("sealed") is not None
    return {**told, "push_url": kept.url, "has_secret": has_secret}


def active_targets(store: Store) -> Iterator[Target]:
    """The targets of all tenants to which tasks are pushed."""
    query = RecordQuery(KIND, limit=limits.LIST_MOST)
    while page := store.records(query):
        for record in page:
            kept = decode(record.body)
            if kept.active:
                yield Target(record.id, record.tenant, kept)
        query = query._replace(after=page[-1].n)


def keys_of(
    store: Store, safe: Safe, target: Target, now_ms: int, common: tuple[str, ...]
) -> tuple[str, ...]:
    """The keys that sign what a target gets; `credential.unusable` where its own cannot be had."""
    kept = target.kept
    if kept.credential_id is not None:
        return (secret_of(store, safe, target.tenant, kept.credential_id, now_ms),)
    if kept.sealed is not None:
        return (safe.open(kept.sealed, Place(KIND, target.tenant, target.id, "secret")),)
    return common


def disable(store: Store, target: Target, reason: str, now_ms: int) -> None:
    """Push nothing more to a target, unless somebody has changed it meanwhile."""
    record = store.record(KIND, target.id)
    if record is not None:
        change(store, record, lambda body: _disabled(body, target, reason), now_ms)


def _disabled(body: bytes, target: Target, reason: str) -> bytes | None:
    kept = decode(body)
    return encode(replace(kept, enabled=False, reason=reason)) if kept == target.kept else None


def _sealed(body: PushTarget, place: Place, safe: Safe, earlier: KeptTarget | None) -> bytes | None:
    if body.secret is None:
        same = earlier is not None and body.credential_id is None
        return earlier.sealed if same and earlier is not None else None
    if not body.secret:
        return None
    if not storable(body.secret) or len(body.secret) > limits.KEY_CHARS:
        expected = f"secret must be text of {limits.KEY_CHARS} characters at most, or left out"
        raise RequestError("request.invalid", expected)
    return safe.seal(body.secret, place)
