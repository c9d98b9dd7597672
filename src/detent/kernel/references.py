"""References to credentials: only the definition names them, never what came from outside.

A param that is `credentials://<id>`, or `Bearer credentials://<id>`, is replaced by the secret when
the call is made. Data that a webhook, a signal or a worker brought can hold such a text, too. So it
is a reference only where the author wrote the scheme, templates or not in the rest of it; elsewhere
a step does not act.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.failure import Failure

SCHEME = "credentials://"
MARK = SCHEME.encode()
_STARTS = (SCHEME, f"Bearer {SCHEME}")


def foreign(written: Any, rendered: Any) -> Failure | None:
    """Why params may not be sent, which were written so in the definition and came out so."""
    where = _foreign(written, rendered, "params")
    if where is None:
        return None
    return Failure(
        message=f"{where} came out as a reference to a credential, which its definition does not "
        f"write: put {SCHEME} into the param itself",
        kind="authorization",
        code="credential.foreign",
    )


def _foreign(written: Any, rendered: Any, where: str) -> str | None:
    if isinstance(rendered, str):
        named = isinstance(written, str) and SCHEME in written
        return where if rendered.startswith(_STARTS) and not named else None
    if isinstance(rendered, dict):
        fields = written if isinstance(written, dict) else {}
        pairs = [(fields.get(key), each, f"{where}.{key}") for key, each in rendered.items()]
    elif isinstance(rendered, list):
        items = written if isinstance(written, list) else []
        items = [*items, *[None] * (len(rendered) - len(items))]
        pairs = [(items[n], each, f"{where}[{n}]") for n, each in enumerate(rendered)]
    else:
        return None
    return next((found for each in pairs if (found := _foreign(*each)) is not None), None)
