"""The writer's own process: what it is handed on standard input, the link a socket it was given."""

from __future__ import annotations

import sys

import msgspec

from detent.bootstrap.making import Handover, chance_of, make_writer
from detent.runtime.links import SUCCESSOR, serve_link


def main() -> None:
    """Serve one link until the parent closes it."""
    handover = msgspec.json.decode(sys.stdin.buffer.read(), type=Handover)
    rank, number = sys.argv[-2], int(sys.argv[-1])
    chance = chance_of(None)
    serve_link(number, number, lambda: make_writer(handover, chance, successor=rank == SUCCESSOR))


if __name__ == "__main__":
    main()
