"""Templates as authors debug them: the result, and where each value in it came from."""

from __future__ import annotations

from typing import Any

from detent.expression import Scope, trace_template


def inspect_template(template: Any, data: Any, config: Any, outputs: Any) -> dict[str, Any]:
    """Render a template in a context; what looks like a secret is hidden."""
    return trace_template(template, Scope(data=data, config=config, outputs=outputs)).as_dict()
