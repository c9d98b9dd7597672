"""A program with the writer's side of a link; what its writer does is told on standard input.

echo: answers every caller, wins every mark, orders what a control asks for. refuse: cannot start.
stop: as echo, but raises when a control says so. parent: starts such a child and dies.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "src"))

from msgspec import Raw

from detent.model.decision import Order, Verdict
from detent.model.errors import StoreError
from detent.model.link import Decided
from detent.runtime.links import ProcessLink, serve_link


def order_of(args):
    return Order(
        key=args["key"],
        instance="i1",
        tenant="t",
        node="n",
        block="b",
        handler="h",
        request=Raw(json.dumps(args["request"]).encode()),
        data=Raw(b'{"a":[1]}'),
    )


def echo(settings, inbox, publish):
    """Run like a writer until told to close."""
    publish(Decided(lease_until_ms=1))
    handlers = None
    while True:
        for batch in inbox.get_batch(10.0):
            out = Decided()
            for told in batch.inputs:
                text = told.body.decode()
                if told.ack < 0:
                    out.moved.append(("outcome", text))
                    if text != "unheard":
                        out.taken.append(told.ack)
                    continue
                out.acks.append((told.ack, Verdict(id=told.id, result=[text, handlers])))
            for wanted in batch.marks:
                out.marked.extend((key, 7) for key in wanted.keys)
            verbs = [control.verb for control in batch.control]
            for control in batch.control:
                match control.verb:
                    case "register":
                        handlers = control.args
                    case "order":
                        out.orders.append(order_of(control.args))
                    case "stop":
                        raise StoreError("store.full", "the disk is full", free=0)
                    case "crash":
                        raise ValueError("a fault of ours")
            publish(out)
            if "close" in verbs or "orphan" in verbs:
                publish(Decided(held="engine.closed"))
                return


def factory(settings):
    if settings["mode"] == "refuse":
        raise StoreError("store.owned", "another engine owns this store", owner="x")
    return settings


def main():
    settings = json.loads(sys.stdin.buffer.read())
    if settings["mode"] == "parent":
        link = ProcessLink(b'{"mode": "echo"}', [sys.executable, __file__])
        link.start(lambda _decided: None)
        sys.stdout.write(f"{link.pid}\n")
        sys.stdout.flush()
        os._exit(0)
    fd = int(sys.argv[-1])
    serve_link(fd, fd, lambda: factory(settings), echo)


if __name__ == "__main__":
    main()
