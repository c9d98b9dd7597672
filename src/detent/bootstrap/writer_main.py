"""The writer's own process: settings on standard input, the link a socket it was given."""

from __future__ import annotations

import sys

import msgspec

from detent.bootstrap.making import chance_of, make_writer
from detent.bootstrap.settings import Settings
from detent.model.decision import HandlerSpec
from detent.ports.store import Owner
from detent.runtime.links import serve_link


def main() -> None:
    """Serve one link until the parent closes it."""
    settings, owner, specs = msgspec.json.decode(
        sys.stdin.buffer.read(), type=tuple[Settings, Owner, dict[str, HandlerSpec]]
    )
    number = int(sys.argv[-1])
    serve_link(number, number, lambda: make_writer(settings, owner, chance_of(None), specs))


if __name__ == "__main__":
    main()
