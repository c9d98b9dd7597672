"""How many requests were answered, by route and status, and how long that took.

Labels are declared routes, never what a client wrote, so there are only so many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.figures import Times

if TYPE_CHECKING:
    from detent.web.api.routes import Route

Labels = tuple[str, str, str]  # method, path, status

_NOWHERE = ("-", "-")  # no such route


class Meters:
    """Counted on the loop; an answer costs one look-up."""

    def __init__(self) -> None:
        self.answers: dict[Labels, Times] = {}

    def note(self, route: Route | None, status: int, us: int) -> None:
        """Count an answer; of a stream, the time until it begins."""
        method, path = _NOWHERE if route is None else (route.method, route.path)
        labels = (method, path, str(status))
        times = self.answers.get(labels)
        if times is None:
            times = self.answers[labels] = Times("answer")
        times.note(us)
