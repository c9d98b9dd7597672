"""One scheduler of several on one store: an engine that works until its standard input ends.

`python -m detent.testing.member '{"path": …, "books": …}'` prints `ready` once the engine is open,
and `closed` when it has closed in peace. What it calls is kept by a bookkeeper.
"""

from __future__ import annotations

import json
import sys
import time

from msgspec import Struct, convert

from detent.bootstrap.engine import Engine
from detent.handlers import HandlerContext
from detent.runtime.settings import WriterSettings
from detent.testing.bookkeeper import BooksByWire
from detent.testing.killed import handlers
from detent.testing.outside import Deed
from detent.testing.providers import Providers, place_of


class Membership(Struct, frozen=True, kw_only=True):
    """What a member is told."""

    path: str
    books: str
    writer: str = "thread"
    partitions: int = 16
    partition: str | None = None
    lease_ttl_ms: int = 1_500
    lease_retry_ms: int = 200
    lease_margin_ms: int = 300


def main() -> None:
    """Work until told to stop."""
    told = convert(json.loads(sys.argv[1]), Membership)
    turns = WriterSettings(
        tick_interval_ms=200,
        lease_ttl_ms=told.lease_ttl_ms,
        lease_retry_ms=told.lease_retry_ms,
        lease_margin_ms=told.lease_margin_ms,
    )
    books = BooksByWire(told.books)

    def begin(ctx: HandlerContext) -> None:
        """Say first of all that a call has begun: from then on its process may be paused."""
        books.add(Deed("begun", ctx.key, place_of(ctx), "", ""))
        time.sleep(0.002)

    with Engine(
        told.path,
        handlers=handlers(Providers(books), begin),
        writer=told.writer,
        partitions=told.partitions,
        partition=told.partition,
        turns=turns,
    ):
        print("ready", flush=True)
        sys.stdin.read()
    print("closed", flush=True)


if __name__ == "__main__":
    main()
