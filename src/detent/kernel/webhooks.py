"""Outbound webhooks, the pure part: what is told, how it is signed, and how a delivery is dropped.

A signature follows Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`,
one for each key, apart by spaces, so that a receiver may hold the old key or the new one. Beside it
stands the form that existing receivers know: hex of HMAC-SHA256 over `timestamp.body`, by the first
key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from detent.kernel.recording import detail_of
from detent.kernel.run import Run
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.snapshot import Snapshot
from detent.model.webhook import secret_bytes

DEFINITION = "detent.webhook"
DISMISS = "webhook.dismiss"
_ENDS = {"run.completed": "instance.completed", "run.failed": "instance.failed"}
_BREACH = "sla.breached"
BREACHED = "instance.sla_breached"
MARKS = (b'"run.completed"', b'"run.failed"', b'"sla.breached"')


# what happened -----------------------------------------------------------------------------------


class Happened(NamedTuple):
    """Something that webhooks tell, by the place of its entry in the row."""

    place: int
    event_type: str
    data: dict[str, Any]
    node: str = ""  # the path of the step that it is about, if it is about one


def happened(entries: Sequence[list[Any]]) -> Iterator[Happened]:
    """What the entries of a journal row have to tell."""
    for place, entry in enumerate(entries):
        if entry[0] == "run.completed":
            yield Happened(place, _ENDS[entry[0]], {})
        elif entry[0] == "run.failed":
            yield Happened(place, _ENDS[entry[0]], _error(entries[place + 1 : place + 2]))
        elif entry[0] == _BREACH:
            yield Happened(place, BREACHED, _breach(detail_of(entry) or {}), str(entry[1]))


def _breach(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Which service level was not kept, and by how much."""
    return {
        "type": detail.get("kind"),
        "limit_ms": detail.get("limit_ms"),
        "elapsed_ms": detail.get("elapsed_ms"),
    }


def _error(following: Sequence[list[Any]]) -> dict[str, Any]:
    """The error of an instance, which the entry after its end tells."""
    detail = detail_of(following[0]) if following else None
    error = detail.get("instance") if isinstance(detail, dict) else None
    if not isinstance(error, dict):
        return {}
    told: dict[str, Any] = {"error": error.get("message", "")}
    if error.get("attempt"):
        told["attempts"] = error["attempt"]
    if error.get("block"):
        told["block_id"] = error["block"]
    return told


# signatures --------------------------------------------------------------------------------------


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The signature of one message by one key."""
    message = b"%b.%d.%b" % (id.encode(), timestamp, body)
    digest = hmac.digest(secret_bytes(secret), message, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def signed_headers(secrets: Sequence[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows a message, and that it is ours."""
    headers = {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "x-detent-timestamp": str(timestamp),
    }
    if secrets:
        message = b"%d.%b" % (timestamp, body)
        digest = hmac.digest(secret_bytes(secrets[0]), message, hashlib.sha256)
        headers["webhook-signature"] = " ".join(sign(key, id, timestamp, body) for key in secrets)
        headers["x-detent-signature"] = f"sha256={digest.hex()}"
    return headers


def verify(secret: str, headers: Mapping[str, str], body: bytes, now_s: int) -> bool:
    """Whether a message is signed by a key, and not too long ago; header names in lower case."""
    given = headers.get("webhook-timestamp", "")
    if not given.isascii() or not given.isdecimal() or len(given) > len(str(1 << 63)):
        return False
    if abs(now_s - int(given)) > limits.WEBHOOK_TOLERANCE_S:
        return False
    expected = sign(secret, headers.get("webhook-id", ""), int(given), body).encode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, each.encode()) for each in signatures)


# lists -------------------------------------------------------------------------------------------


def url_mark(url: str) -> str:
    """What the deliveries of a URL are found by."""
    return hashlib.sha256(url.encode()).hexdigest()[:32]


def found_by(
    data: Mapping[str, Any], snapshot: Snapshot | None = None
) -> tuple[str, str, bool, str]:
    """What a delivery is found by: its URL, its event, whether it arrived, and what went wrong."""
    delivered, kind = (False, "") if snapshot is None else standing(snapshot)
    return url_mark(str(data["url"])), str(data["event_type"]), delivered, kind


def standing(snapshot: Snapshot) -> tuple[bool, str]:
    """Whether a delivery has arrived, and the class of what went wrong; empty when nothing did."""
    output = snapshot.outputs.get("deliver")
    result = output if isinstance(output, dict) else {}
    details = snapshot.error.get("details") if isinstance(snapshot.error, dict) else None
    kind = details.get("error_class") if isinstance(details, dict) else None
    if result.get("skipped"):
        kind = result.get("error_class")
    return result.get("delivered") is True, str(kind or "")


# deliveries --------------------------------------------------------------------------------------


def dismiss(run: Run) -> Any:
    """A person drops a parked delivery: it is cancelled without another call."""
    snapshot = run.snapshot
    if run.program.definition.name != DEFINITION or snapshot.state != "failed":
        raise RequestError(
            "webhook.state", f"only a parked delivery can be dropped; this is {snapshot.state}"
        )
    run.move("scheduled", "dismissed", "run.dismissed")
    run.move("cancelled", "dismissed")
    snapshot.root = None
    snapshot.ended = run.tick
    return {"state": snapshot.state}
