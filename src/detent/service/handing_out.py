"""Credentials on their way to a handler: found, judged and opened, or to be renewed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.handlers.secrets import Resolved, resolve
from detent.model.errors import RequestError
from detent.service.arguments import shown
from detent.service.credentials import (
    GLOBAL,
    KIND,
    REFRESHED,
    Setback,
    Stored,
    credential_record,
    decode,
)
from detent.service.records import unix_ms
from detent.service.vault import Place, Safe

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from detent.ports.records import Record
    from detent.ports.store import Store


def secret_of(store: Store, safe: Safe, tenant: str, id: str, now_ms: int) -> str:
    """The value, for a handler of that tenant; `credential.unusable` says why there is none."""
    record = credential_record(store, id)
    if record is None or record.tenant not in (tenant, GLOBAL):
        raise _unusable(f"there is no credential {shown(id)} that this tenant may use")
    stored = decode(record.body)
    if not stored.enabled:
        raise _unusable(f"credential {shown(id)} is disabled")
    if expired(stored, now_ms):
        raise _too_old(record, stored, now_ms)
    return safe.open(stored.value, Place(KIND, record.tenant, record.id))


def expired(stored: Stored, now_ms: int) -> bool:
    """Whether its time is over."""
    return stored.expires_at is not None and unix_ms(stored.expires_at) <= now_ms


def _too_old(record: Record, stored: Stored, now_ms: int) -> RequestError:
    """The error for a value whose time is over; it names a `credential` that can be renewed now."""
    when = "" if stored.expires_at is None else stored.expires_at.isoformat()
    text = f"credential {shown(record.id)} expired at {when}"
    setback = stored.setback
    if record.owner != REFRESHED:
        return _unusable(text)
    if setback is not None and (not setback.again or now_ms < stored.next_refresh_ms):
        return refresh_failed(record.id, setback)
    text += "; it is to be refreshed"
    return RequestError("credential.unusable", text, again=True, credential=record.id)


def refresh_failed(id: str, setback: Setback) -> RequestError:
    """The error for a token that the provider did not renew."""
    cure = "it is tried again" if setback.again else "enter a new value and refresh token"
    text = f"the provider of credential {shown(id)} gave no new token: {setback.why}; {cure}"
    return RequestError("credential.refresh", text, **({"again": True} if setback.again else {}))


def resolve_params(store: Store, safe: Safe, tenant: str, params: Any, now_ms: int) -> Resolved:
    """Params as a worker of that tenant gets them, and the secrets to hide in its answer."""
    return resolve(params, lambda id_: secret_of(store, safe, tenant, id_, now_ms))


class StoredSecrets:
    """The secrets of a store, as the dispatcher's handlers are given them."""

    __slots__ = ("_look", "_now_ms", "_safe", "renew")

    def __init__(
        self,
        look: Callable[[Callable[[Store], str]], str],
        safe: Safe,
        now_ms: Callable[[], int],
        renew: Callable[[str], Future[None]],
    ) -> None:
        """`look` runs a function over a store and may block; `renew` begins to refresh a token."""
        self._look = look
        self._safe = safe
        self._now_ms = now_ms
        self.renew = renew

    def value(self, id: str, tenant: str) -> str:
        """The secret of a credential that the tenant may use."""
        return self._look(lambda store: secret_of(store, self._safe, tenant, id, self._now_ms()))


def _unusable(message: str) -> RequestError:
    return RequestError("credential.unusable", message)
