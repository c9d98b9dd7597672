"""The canonical form: sorted keys, no spaces, no defaults, UTF-8; and its hash.

Checked members come in with defaults left out already. A float keeps its shortest form that reads
back as the same number, and stays a float: only durations and the like, whose type is ours, become
whole numbers. The bytes are stored and hashed as they are and never made again from the values.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from detent.definition.faults import refuse
from detent.model.definition import Body, Definition
from detent.model.limits import DEFINITION_BYTES

_BODY = msgspec.json.Decoder(Body)
_ENCODER = msgspec.json.Encoder(order="sorted")


def seal(checked: dict[str, Any]) -> Definition:
    """Make the definition of members that were checked."""
    canonical = _ENCODER.encode(checked)
    if len(canonical) > DEFINITION_BYTES:
        message = f"expected at most {DEFINITION_BYTES} bytes, found {len(canonical)}; split it"
        raise refuse("$", "definition.size", message)
    return load(canonical)


def load(canonical: bytes) -> Definition:
    """Read stored canonical bytes without checking them again."""
    try:
        body = _BODY.decode(canonical)
    except msgspec.MsgspecError as error:
        message = f"expected the canonical bytes of a definition, found: {error}; restore the row"
        raise refuse("$", "definition.syntax", message) from None
    return Definition(body=body, canonical=canonical, hash=sha256(canonical).hexdigest())
