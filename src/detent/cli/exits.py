"""Exit codes: one small number for what a script has to do next."""

from __future__ import annotations

from detent.model.errors import (
    DefinitionError,
    DetentError,
    ExpressionError,
    InvariantViolation,
    StoreError,
)

OK = 0
NO = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
OPERATOR = 5
BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141

MEANINGS = {
    OK: "done, or the answer is yes",
    NO: "the answer is no: invalid, different, broken, failed",
    USAGE: "the command line is wrong",
    NOT_FOUND: "no such instance, definition, effect, limit, pool or schedule",
    REFUSED: "refused: the state does not allow it, or it conflicts",
    OPERATOR: "the store, its owner, the clock or the machine needs attention",
    BUG: "a fault of Detent itself; please report it",
}

_NOT_FOUND = (
    "instance.not_found",
    "definition.unknown",
    "effect.not_found",
    "limit.unknown",
    "pool.unknown",
    "cron.not_found",
    "resource.unknown",
    "file.missing",
)
_OPERATOR = ("request.timeout", "vault.key")
_REFUSED = ("definition.conflict", "request.unauthorized", "request.forbidden")
_NO = (
    "request.",
    "payload.",
    "handler.",
    "calendar.",
    "limit.",
    "pool.",
    "replay.differs",
    "audit.broken",
)


def exit_code(error: DetentError) -> int:
    """The exit code of an error, by who must act."""
    if isinstance(error, InvariantViolation):
        return BUG
    if error.code in _NOT_FOUND:
        return NOT_FOUND
    if error.code in _REFUSED:
        return REFUSED
    if isinstance(error, DefinitionError | ExpressionError):
        return NO
    if error.code.startswith("audit."):
        return NO
    if isinstance(error, StoreError) or error.code in _OPERATOR:
        return OPERATOR
    return NO if error.code.startswith(_NO) else REFUSED
