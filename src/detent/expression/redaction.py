"""Hiding values that look like secrets from traces."""

from __future__ import annotations

import re
from typing import Any, Final

from detent.model.errors import ExpressionError
from detent.model.limits import PAYLOAD_DEPTH

REDACTED: Final = "[REDACTED]"

_SHAPES = re.compile(
    r"(?:sk|pk|rk)_(?:live|test)_\S"
    r"|sk-[A-Za-z0-9_-]{16}"
    r"|gh[pousr]_[A-Za-z0-9]|github_pat_[A-Za-z0-9]"
    r"|xox[abprs]-\S"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|[Bb]earer\s+\S"
    r"|eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?![A-Za-z0-9_.-])"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_NAMES = frozenset(
    {
        "accesstoken",
        "apikey",
        "auth",
        "authorization",
        "clientsecret",
        "credentials",
        "passwd",
        "password",
        "privatekey",
        "refreshtoken",
        "secret",
        "token",
    }
)


def sensitive(name: str) -> bool:
    """Tell whether a key names a secret, however it is spelled."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) in _NAMES


def redacted(value: Any, name: str = "", depth: int = 0) -> Any:
    """Give the value with secrets hidden; `name` is the key it stands under."""
    if value is None:
        return None
    if depth > PAYLOAD_DEPTH:
        raise ExpressionError(
            "expression.limit", f"The value is nested deeper than {PAYLOAD_DEPTH} levels."
        )
    if sensitive(name) or (isinstance(value, str) and _SHAPES.match(value)):
        return REDACTED
    if isinstance(value, dict):
        return {key: redacted(item, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, "", depth + 1) for item in value]
    return value
