"""Changes asked of the engine's own instances: their block carries them out, or refuses them."""

from __future__ import annotations

from typing import Any

from detent.kernel.run import Run
from detent.kernel.walk import KINDS
from detent.kernel.webhooks import DISMISS, dismiss
from detent.model.decision import Verdict
from detent.model.errors import RequestError
from detent.model.inputs import Configured


def configure(run: Run, told: Configured, index: int) -> None:
    """Change an instance's configuration as asked, or refuse with nothing changed."""
    try:
        result = _carry_out(run, told)
    except RequestError as error:
        run.note("command.refused", "", {"in": index, "verb": told.verb, "code": error.code})
        run.verdicts.append(Verdict(id=told.id, ok=False, code=error.code, message=error.message))
        return
    run.note("config.changed", "", {"in": index, "verb": told.verb})
    run.verdicts.append(Verdict(id=told.id, result=result))


def _carry_out(run: Run, told: Configured) -> Any:
    if told.verb == DISMISS:
        return dismiss(run)
    root = run.snapshot.root
    frame = root.lanes[0].open if root is not None and root.lanes else None
    if frame is None:
        raise RequestError("instance.terminal", f"it is {run.snapshot.state} and takes no changes")
    node = run.program.nodes[frame.b]
    change = getattr(KINDS[node.kind], "configure", None)
    if change is None:
        raise RequestError(
            "request.invalid", "only the engine's own gates and schedules are configured"
        )
    args = told.args if isinstance(told.args, dict) else {}
    return change(run, frame, told.verb, args)
