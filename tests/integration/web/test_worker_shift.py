"""A worker's shift against a real server: what each end of a function means, and how many run."""

from __future__ import annotations

import asyncio
import threading
import uuid

import pytest

import detent
from detent.cli.worker_shift import Shift
from detent.cli.worker_wire import Wire, client
from detent.handlers.registry import Registry
from tests.integration.web.house import ROOT, house, step
from tests.integration.web.worker_calls import listed, polled

pytestmark = pytest.mark.req("SEQ-HND-3")

PATIENCE_S = 20
RETRY = {"max_attempts": 2, "initial_backoff": 0, "max_backoff": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose claims are over soon."""
    path = tmp_path_factory.mktemp("shift") / "s.db"
    with house(path, workers=True, resolution_ms=10, work_stale_ms=400) as made:
        yield made


class Crew:
    """A shift on a thread of its own."""

    def __init__(self, server, *functions, concurrency=4):
        registry = Registry()
        names = registry.collect(functions)
        self.entries = [registry.get(name) for name in names]
        self.url = server.url
        self.concurrency = concurrency
        self.name = f"w-{uuid.uuid4().hex[:8]}"
        self.tally = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))

    async def _work(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        headers = {"x-api-key": ROOT, "x-tenant-id": "acme"}
        async with client(self.url, headers, 20) as http:
            wire = Wire(http, self.name, None, lambda: 0.5)
            shift = Shift(wire, self.entries, self.concurrency, "acme")
            self._began.set()
            await shift.work(self._stop, asyncio.Event(), PATIENCE_S)
        self.tally = shift.tally

    def __enter__(self):
        self._thread.start()
        self._began.wait(PATIENCE_S)
        return self

    def __exit__(self, *_error):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)


def fresh(function, **options):
    """The function as a handler under a name that nobody else uses."""
    return detent.handler(f"{function.__name__}-{uuid.uuid4().hex[:8]}", **options)(function)


def started(server, function, data=None, **options):
    return server.instance(server.sequence(step("a", function.detent_name, **options)), data)


def data_of(server, instance):
    return server.get(f"/instances/{instance}").json()["context"]["data"]


def test_a_handler_is_told_what_its_task_says(server):
    async def tells(n: int, ctx):
        return {
            "n": n,
            "attempt": ctx.attempt,
            "instance": ctx.instance_id,
            "tenant": ctx.tenant,
            "node": ctx.node,
            "data": ctx.data,
            "resumed": ctx.resume_checkpoint,
            "key": ctx.key,
        }

    tells = fresh(tells)
    with Crew(server, tells) as crew:
        instance = started(server, tells, {"x": 1}, params={"n": 3})
        assert server.settle(instance) == "completed"
    (task,) = listed(server, tells.detent_name)
    assert task["output"] == {
        "n": 3,
        "attempt": 1,
        "instance": instance,
        "tenant": "acme",
        "node": "a",
        "data": {"x": 1},
        "resumed": None,
        "key": task["id"],
    }
    assert (crew.tally.reported, crew.tally.left) == (1, 0)


@pytest.mark.parametrize(
    ("error", "tasks"),
    [
        (ValueError("odd"), 2),
        (detent.Failed("down"), 2),
        (detent.Failed("no such card", retryable=False), 1),
    ],
    ids=str,
)
def test_an_exception_is_a_retryable_failure_and_failed_says_itself(server, error, tasks):
    def breaks():
        raise error

    breaks = fresh(breaks)
    with Crew(server, breaks):
        instance = started(server, breaks, retry=RETRY)
        assert server.settle(instance) == "failed"
    found = listed(server, breaks.detent_name)
    assert len(found) == tasks
    assert str(error) in found[0]["error_message"]
    assert found[0]["error_retryable"] is (tasks == 2)


def test_params_that_do_not_fit_and_outputs_that_are_no_json_fail_for_good(server):
    async def takes(n: int):
        return {"n": n}

    async def gives():
        return object()

    takes, gives = fresh(takes), fresh(gives)
    with Crew(server, takes, gives):
        wrong = started(server, takes, params={"n": "many"}, retry=RETRY)
        odd = started(server, gives, retry=RETRY)
        assert server.settle(wrong) == server.settle(odd) == "failed"
    for function in (takes, gives):
        (task,) = listed(server, function.detent_name)
        assert task["error_retryable"] is False


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_call_that_takes_too_long_fails_and_may_be_tried_again(server, asynchronous):
    over = threading.Event()

    async def waits():
        await asyncio.Event().wait()

    def sits():
        over.wait(PATIENCE_S)

    slow = fresh(waits if asynchronous else sits)
    with Crew(server, slow, concurrency=2):
        instance = started(server, slow, timeout=50, retry=RETRY)
        assert server.settle(instance) == "failed"
        over.set()
    found = listed(server, slow.detent_name)
    assert [task["attempt"] for task in found] == [1, 0]


def test_no_more_calls_run_at_once_than_there_is_room_for(server):
    running, most, over = [], [], threading.Event()

    def sits(n: int):
        running.append(n)
        most.append(len(running))
        over.wait(PATIENCE_S)
        running.remove(n)

    first, second = fresh(sits), fresh(sits)
    with Crew(server, first, second, concurrency=2) as crew:
        made = [
            started(server, each, params={"n": n}) for n in range(3) for each in (first, second)
        ]
        turn = threading.Event()
        while len(running) < 2:
            turn.wait(0.001)
        over.set()
        for each in made:
            assert server.settle(each) == "completed"
    assert max(most) == 2
    assert crew.tally.reported == 6


def silent(server, function, **options):
    """An instance whose task another worker has taken up, and then fallen silent."""
    instance = started(server, function, **options)
    server.settle(instance, "waiting")
    (task,) = polled(server, function.detent_name, "silent")
    return instance, task


def test_a_once_handler_is_not_called_again_after_silence(server):
    calls = []

    async def pays():
        calls.append(1)

    pays = fresh(pays, on_doubt="once")
    instance, _ = silent(server, pays, retry=RETRY)
    with Crew(server, pays):
        assert server.settle(instance) == "failed"
    (task,) = listed(server, pays.detent_name)
    assert calls == []
    assert "nobody knows whether it happened" in task["error_message"]
    assert task["error_retryable"] is False


def test_a_keyed_handler_is_called_again_with_the_same_key(server):
    keys = []

    async def pays(ctx):
        keys.append(ctx.key)
        if len(keys) == 1:
            raise ValueError("the line went dead")
        return {"paid": True}

    pays = fresh(pays, on_doubt="keyed")
    with Crew(server, pays) as crew:
        instance = started(server, pays)
        assert server.settle(instance) == "completed"
    (task,) = listed(server, pays.detent_name)
    assert keys == [task["id"], task["id"]]
    assert task["claim_epoch"] == 2
    assert (crew.tally.reported, crew.tally.left) == (1, 1)


@pytest.mark.parametrize(
    ("found", "state", "data"),
    [
        (detent.Applied({"paid": 9}), "completed", {"paid": 9}),
        (detent.NotApplied("no trace of it"), "completed", {"paid": 1}),
    ],
    ids=str,
)
def test_a_queryable_handler_is_asked_before_it_is_called_again(server, found, state, data):
    async def pays():
        return {"paid": 1}

    pays = fresh(pays, on_doubt="queryable", reconcile=lambda: found)
    instance, _ = silent(server, pays, retry=RETRY)
    with Crew(server, pays):
        assert server.settle(instance) == state
    assert data_of(server, instance) == data


def test_a_call_whose_task_was_called_off_is_stopped(server):
    begun, stopped = threading.Event(), threading.Event()

    async def waits():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    waits = fresh(waits)
    with Crew(server, waits) as crew:
        instance = started(server, waits)
        assert begun.wait(PATIENCE_S)
        server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"})
        assert server.settle(instance) == "cancelled"
        assert stopped.wait(PATIENCE_S)
    assert crew.tally.lost == 1


def test_a_checkpoint_that_is_too_large_is_refused_and_the_call_goes_on(server):
    def saves(ctx):
        try:
            ctx.checkpoint("x" * 300_000)
        except detent.DetentError as error:
            ctx.checkpoint({"after": error.code})
            return {"refused": error.code}

    saves = fresh(saves)
    with Crew(server, saves):
        instance = started(server, saves)
        assert server.settle(instance) == "completed"
    (task,) = listed(server, saves.detent_name)
    assert task["output"] == {"refused": "payload.too_large"}
    assert task["resume_checkpoint"] == {"after": "payload.too_large"}
    assert task["checkpoint_seq"] == 1
