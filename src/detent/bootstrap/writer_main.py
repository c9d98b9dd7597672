"""The writer's own process: what it is handed on standard input, the link a socket it was given."""

from __future__ import annotations

import gc
import sys

import msgspec

from detent.bootstrap.making import Handover, chance_of, make_writer
from detent.runtime.links import SUCCESSOR, serve_link

_YOUNG = 50_000  # objects made before the collector looks; a turn makes a few thousand


def main() -> None:
    """Serve one link until the parent closes it."""
    spare_collector()
    handover = msgspec.json.decode(sys.stdin.buffer.read(), type=Handover)
    rank, number = sys.argv[-2], int(sys.argv[-1])
    chance = chance_of(None)
    serve_link(number, number, lambda: make_writer(handover, chance, successor=rank == SUCCESSOR))


def spare_collector() -> None:
    """Let the collector leave alone what was imported, and look rarely at the rest.

    Nothing but the writer runs here, and it makes no cycles that grow.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG)


if __name__ == "__main__":
    main()
