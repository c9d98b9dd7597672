"""How errors leave the server: the status and the words of the contract, and our stable code.

An error of a handler is JSON, `{"error": "<class>: <sentence>", "code": "<code>"}`, with `details`
for programs where it has some. An error before the handler (the body or a parameter cannot be read)
is plain text. Who is not let in gets a status and an empty body. The code is in the header
`x-detent-code` of all three.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from detent.model.errors import DetentError
from detent.web.api.reply import JSON, _encode, text_reply

CLASSES: Final[dict[int, str]] = {
    400: "invalid argument",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    409: "conflict",
    413: "payload too large",
    422: "unprocessable entity",
    429: "rate limit exceeded",
    502: "bad gateway",
    503: "unavailable",
}

# code -> status; what is not named here is decided by its last word or its area
_STATUS: Final[dict[str, int]] = {
    "definition.unknown": 404,
    "definition.conflict": 409,
    "definition.exists": 409,
    "definition.in_use": 409,
    "payload.too_large": 413,
    "payload.schema": 422,
    "payload.invalid": 422,
    "request.key_reused": 422,
    "request.in_progress": 409,
    "request.spent": 409,
    "request.forbidden": 403,
    "request.unauthorized": 401,
    "request.timeout": 503,
    "request.rate": 429,
    "cron.exists": 409,
    "stream.full": 503,
    "webhook.state": 409,
    "webhook.undelivered": 502,
    "event.full": 409,
    "tenant.foreign": 403,
    "trigger.refused": 401,
    "trigger.rate": 429,
    "api_key.refused": 401,
    "session.closed": 409,
    "record.limit": 409,
    "credential.refresh": 502,
    "vault.locked": 503,
    "vault.broken": 500,
    "vault.key": 500,
    "engine.closed": 503,
    "work.checkpoint": 409,
    "invariant.broken": 500,
}
_BY_REASON: Final[dict[str, int]] = {
    "not_found": 404,
    "unknown": 404,
    "exists": 409,
    "lost": 409,
    "conflict": 409,
    "too_large": 413,
    "unauthorized": 401,
    "forbidden": 403,
}
_BY_AREA: Final[dict[str, int]] = {"store": 503, "clock": 503}
_UNKNOWN_ARE_FAULTS_OF_THE_AUTHOR: Final = ("expression.unknown", "handler.unknown")


class Refusal(Exception):
    """A request that is answered with a status and a text before its handler runs."""

    def __init__(self, status: int, text: str = "", code: str = "request.invalid") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code

    def reply(self) -> Response:
        """The answer: plain text, or nothing where there is no text."""
        return text_reply(self.text, self.status, self.code)


def status_of(error: DetentError) -> int:
    """The status of an error, by its code."""
    code = error.code
    if code in _STATUS:
        return _STATUS[code]
    if code in _UNKNOWN_ARE_FAULTS_OF_THE_AUTHOR:
        return 400
    area, _, reason = code.partition(".")
    return _BY_REASON.get(reason) or _BY_AREA.get(area, 400)


def error_reply(error: DetentError) -> Response:
    """An error of a handler, in the words of the contract."""
    status = status_of(error)
    if status >= 500 and status not in CLASSES:
        return internal_reply(error.code)
    kind = CLASSES[status]
    if status == 409 and error.code.endswith((".exists", "definition.conflict")):
        kind = "already exists"
    body: dict[str, Any] = {"error": f"{kind}: {error.message}", "code": error.code}
    if error.details:
        body["details"] = error.details
    return Response(_encode(body), status, {"x-detent-code": error.code}, media_type=JSON)


def internal_reply(code: str = "invariant.broken") -> Response:
    """A fault of ours; its details are in the log, never in the answer."""
    body = {"error": "internal server error", "code": code}
    return Response(_encode(body), 500, {"x-detent-code": code}, media_type=JSON)
