"""Calls from outside to a trigger: signed, in time, and taken once.

A call is looked at first (`verify_webhook`, which only reads), so that a stranger costs no write;
then its nonce is used up (`accept_webhook`), which is one insert that the second of two cannot
make. A nonce is kept for as long as its timestamp could still be taken. The id of the instance
derives from the nonce (`instance_of`): a call whose start was lost between the two, in a crash, may
come again, and one that comes twice at once starts the same instance, which only one has started.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import derived_id
from detent.ports.records import Record
from detent.service.triggers import (
    Firing,
    decode,
    firing,
    secret_of_trigger,
    trigger_record,
    unknown_trigger,
)

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.vault import Safe

NONCE = "trigger_nonce"
SIGNATURES = ("x-detent-signature", "x-orch8-signature")
_KEPT_MS = (limits.WEBHOOK_OLD_S + limits.WEBHOOK_EARLY_S) * 1000
_DIGITS = 15

_parse = msgspec.json.Decoder().decode


class Call(NamedTuple):
    """A call as it came; the names of the headers are in small letters."""

    headers: Mapping[str, str]
    body: bytes


class Verified(NamedTuple):
    """A call that its sender has signed, and that may be taken if nobody has done so."""

    trigger: Record
    nonce: str
    body: bytes


def verify_webhook(store: Store, safe: Safe, slug: str, call: Call, now_ms: int) -> Verified:
    """Check a call in everything but whether it was taken before; `trigger.refused` if not."""
    record = trigger_record(store, None, slug)
    stored = decode(record.body)
    if stored.trigger_type != "webhook" or not stored.enabled:
        raise unknown_trigger(slug)
    if len(call.body) > limits.WEBHOOK_BYTES:
        raise RequestError(
            "payload.too_large", f"a call has at most {limits.WEBHOOK_BYTES:,} bytes"
        )
    secret = secret_of_trigger(safe, record)
    if secret is None:
        raise _refused("the trigger has no secret, so that no call can be signed; give it one")
    stamp, nonce = _stamp(call, now_ms), _nonce(call)
    given = next((call.headers[name] for name in SIGNATURES if name in call.headers), "")
    expected = signature(secret, stamp, nonce, call.body)
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        raise _refused("the signature is missing or wrong")
    return Verified(record, nonce, call.body)


def accept_webhook(store: Store, verified: Verified, now_ms: int) -> Firing:
    """Use the nonce up and fire; of two calls with the same nonce one is refused."""
    slug = verified.trigger.id
    store.prune_records(NONCE, slug, before_ms=now_ms - _KEPT_MS, limit=limits.WEBHOOK_PRUNED)
    used = Record(
        NONCE,
        f"{slug}\n{verified.nonce}",
        verified.trigger.tenant,
        b"",
        owner=slug,
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    if not store.insert_record(used) and store.instance(instance_of(verified)) is not None:
        raise replayed()
    try:
        data = _parse(verified.body)
    except (msgspec.MsgspecError, RecursionError):
        raise RequestError("payload.invalid", "the body of a call must be JSON") from None
    return firing(store, verified.trigger, data, {"source": "public_webhook"})


def instance_of(verified: Verified) -> str:
    """The id of the instance that a call starts: the same for the same call."""
    trigger = verified.trigger
    return derived_id(trigger.tenant, "webhook", f"in\x00{trigger.id}\x00{verified.nonce}")


def replayed() -> RequestError:
    """The refusal of a call that was taken before."""
    return _refused("the nonce was used before")


def signature(secret: str, timestamp: str, nonce: str, body: bytes) -> str:
    """What a sender puts into the header."""
    signed = f"{timestamp}.{nonce}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return "v1=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


class PeerRates:
    """How often each peer calls each trigger in the present second, counted in memory."""

    def __init__(self) -> None:
        self._second = -1
        self._counts: dict[tuple[str, str], int] = {}

    def check(self, peer: str, slug: str, now_ms: int) -> None:
        """Count a call; `trigger.rate` when it is one too many."""
        second = now_ms // 1000
        if second != self._second:
            self._second = second
            self._counts.clear()
        count = self._counts.get((peer, slug), 0)
        full = not count and len(self._counts) >= limits.WEBHOOK_PEERS
        if full or count >= limits.WEBHOOKS_PER_SECOND:
            raise RequestError(
                "trigger.rate",
                f"a peer may call a trigger {limits.WEBHOOKS_PER_SECOND} times a second; "
                "try again later",
            )
        self._counts[peer, slug] = count + 1


def _stamp(call: Call, now_ms: int) -> str:
    stamp = call.headers.get("x-trigger-timestamp", "")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= _DIGITS):
        raise _refused("x-trigger-timestamp must be Unix seconds")
    age_s = now_ms / 1000 - int(stamp)
    if not -limits.WEBHOOK_EARLY_S <= age_s <= limits.WEBHOOK_OLD_S:
        span = f"{limits.WEBHOOK_OLD_S} s before now to {limits.WEBHOOK_EARLY_S} s after it"
        raise _refused(f"x-trigger-timestamp must lie from {span}; check the sender's clock")
    return stamp


def _nonce(call: Call) -> str:
    nonce = call.headers.get("x-trigger-nonce", "")
    least, most = limits.WEBHOOK_NONCE_LEAST, limits.WEBHOOK_NONCE_MOST
    if not least <= len(nonce) <= most or not all("!" <= char <= "~" for char in nonce):
        raise _refused(f"x-trigger-nonce must be {least} to {most} printable ASCII characters")
    return nonce


def _refused(message: str) -> RequestError:
    return RequestError("trigger.refused", message)
