"""The process that is killed: an engine on a file, with callers and a person, until all has ended.

`python -m detent.testing.killed '{"path": …}'` does everything under fixed ids, so that it can be
started again after every kill and goes on. It prints `ready` once the engine is open, one line
`writer lost` for each writer process that died, and `done` at the end.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct, convert

from detent import definition as make
from detent.bootstrap.engine import Engine
from detent.handlers import Applied, HandlerContext, NotApplied, Retry, handler
from detent.kernel.lifecycle import TERMINAL
from detent.model.definition import Definition
from detent.model.errors import DetentError, RequestError
from detent.model.ids import derived_id
from detent.model.limits import LEASE_MARGIN_MS, LEASE_TTL_MS
from detent.ports.store import Page
from detent.runtime.settings import WriterSettings
from detent.service.instances import InstanceSummary
from detent.testing.bookkeeper import BooksByWire
from detent.testing.outside import Deed
from detent.testing.providers import CLASSES, Providers

PATIENCE_S = 60.0
NOBODY = "00000000-0000-8000-8000-000000000000"
_GONE = ("store.unavailable", "engine.closed", "request.timeout", "store.owned")
LOST = 3  # exit status: the writer is gone for good
STUCK = 4  # exit status: not all ended in time


class Task(Struct, frozen=True, kw_only=True):
    """What the parent tells."""

    path: str
    books: str
    writer: str = "thread"
    clock: str = "stepped"
    instances: int = 6
    lease_ttl_ms: int = LEASE_TTL_MS  # where no lock tells that an owner is gone, it is waited for


def definitions() -> list[Definition]:
    """Sequences over all classes of doubt, with a wait, a signal, a child, a saga and branches."""
    again = make.retry(6, initial_backoff=100)
    kid = make.sequence(
        "kid",
        make.step("k_pay", "pay", params={"act": "ok"}),
        make.step("k_note", "note", params={"act": "ok"}),
    )
    branches = make.parallel(
        "both",
        [make.step("p_post", "post", params={"act": "lose"}), make.step("p_put", "put")],
        [make.step("p_book", "book", retry=again), make.step("p_pay", "pay")],
    )
    order = make.sequence(
        "order",
        make.step("note", "note"),
        make.step("pay", "pay"),
        branches,
        make.wait("nap", 200),
        make.sub_sequence("child", "kid", input={"n": 1}),
        make.step("post", "post", params={"act": "refuse"}),
        make.wait("go", signal="go"),
        make.step("book", "book", params={"act": "lose", "times": 1}, retry=again),
    )
    trip = make.sequence(
        "trip",
        make.saga(
            "saga",
            make.saga_step(
                "one", make.step("t_book", "book", retry=again), make.step("t_undo", "post")
            ),
            make.saga_step(
                "two", make.step("t_pay", "pay"), make.step("t_back", "book", retry=again)
            ),
            make.saga_step("three", make.step("t_never", "put", params={"act": "final"})),
        ),
        on_failure=[make.step("sorry", "post")],
    )
    each = make.sequence(
        "each",
        make.for_each("items", "list", make.step("e_pay", "pay"), make.step("e_put", "put")),
        make.step("big", "note", params={"size": 40_000}),
    )
    return [kid, order, trip, each]


def expected_state(place: int) -> str:
    """How the instance of a number must end."""
    return "failed" if place % 3 == 1 else "completed"


def key_of(place: int) -> str:
    """The idempotency key of an instance."""
    return f"order-{place}"


def _doze(_ctx: HandlerContext) -> None:
    time.sleep(0.002)


def handlers(providers: Providers, begin: Callable[[HandlerContext], None] = _doze) -> list[Any]:
    """The providers as plain functions, which run on threads and may be cut off anywhere.

    Each call begins with `begin`.
    """

    def ask(
        ctx: HandlerContext, act: str = "ok", times: int = 0, **_rest: Any
    ) -> Applied | NotApplied | Retry:
        return providers.find_out(ctx, act, times)

    def make_handler(name: str) -> Any:
        def act(
            ctx: HandlerContext, act: str = "ok", times: int = 0, size: int = 0
        ) -> dict[str, Any]:
            begin(ctx)
            return providers.perform(ctx, name, (act, times, size))

        doubt: Any = CLASSES[name]
        options: dict[str, Any] = {}
        if doubt == "queryable":
            options["reconcile"] = ask
        return handler(name, on_doubt=doubt, withdrawable=name != "put", **options)(act)

    return [make_handler(name) for name in CLASSES]


class Session:
    """One life of the process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._books = BooksByWire(task.books)
        turns = WriterSettings(
            tick_interval_ms=2 if task.clock == "stepped" else 1_000,
            lease_ttl_ms=task.lease_ttl_ms,
            lease_margin_ms=min(LEASE_MARGIN_MS, task.lease_ttl_ms // 4),
        )
        providers = Providers(self._books)
        self._engine = Engine(
            task.path,
            handlers=handlers(providers),
            writer=task.writer,
            clock=task.clock,
            partitions=2,
            turns=turns,
        )

    def run(self) -> int:
        """Start what is not started, and help on until all has ended."""
        print("ready", flush=True)
        engine = self._engine
        kid, *others = definitions()
        engine.deploy(kid)
        for place in range(self._task.instances):
            engine.start(others[place % 3], {"list": [1, 2], "n": place}, key=key_of(place))
        for place in range(0, self._task.instances, 3):
            self._tell(derived_id("default", "instance", key_of(place)))
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self._knock()
            if not self._decide() and not self._open():
                engine.close()
                print("done", flush=True)
                return 0
            time.sleep(0.02)
        for row in self._open():
            print(f"open: {row.id} {self._engine.inspect.explain(row.id).summary}", flush=True)
        return STUCK

    def _knock(self) -> None:
        """Ask the writer something; views alone would not notice that it is gone for good."""
        try:
            self._engine.signal(NOBODY, "knock")
        except RequestError as refused:
            if refused.code != "instance.not_found":
                raise

    def _tell(self, instance: str) -> None:
        try:
            self._engine.signal(instance, "go", {"by": "caller"}, id=f"go:{instance}")
        except RequestError as refused:
            if refused.code != "instance.terminal":
                raise

    def _open(self) -> list[InstanceSummary]:
        listed = self._engine.inspect.instances(Page(limit=1_000)).items
        return [row for row in listed if row.state not in TERMINAL]

    def _decide(self) -> int:
        """The person: look into the books, and say what happened."""
        open_ = [d for d in self._engine.inspect.doubts() if d.state == "indeterminate"]
        for doubt in open_:
            key, books = doubt.effect, self._books
            action, result = "again", None
            if books.happened(key):
                action, result = "happened", books.result(key)
            elif books.count("refused", key):
                action = "failed"
            turn = books.count("person", f"resolve:{key}")
            id = f"resolve:{key}:{turn}"
            books.add(Deed("asked", id, doubt.instance, action, ""))
            args = {"key": key, "action": action, "result": result}
            try:
                self._engine.command(doubt.instance, "resolve", args, id=id)
            except RequestError as refused:
                if not refused.code.startswith("effect."):
                    raise
            books.add(Deed("person", f"resolve:{key}", doubt.instance, action, ""))
        return len(open_)


class _Losses(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "the writer stopped" in record.getMessage():
            print("writer lost", flush=True)


def main() -> int:
    """Run one life."""
    log = logging.getLogger("detent.runtime")
    log.addHandler(_Losses())
    log.propagate = False
    task = convert(json.loads(sys.argv[1]), Task)
    try:
        return Session(task).run()
    except DetentError as error:
        if error.code in _GONE:
            print(f"gone: {error}", flush=True)
            return LOST
        raise


if __name__ == "__main__":
    sys.exit(main())
