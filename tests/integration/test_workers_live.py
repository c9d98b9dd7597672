"""Workers of a running engine: woken by its turns, and replaced when they fall silent."""

from __future__ import annotations

import asyncio
import threading

import pytest

import detent
from detent import sequence, step
from detent.service.bell import long_poll
from detent.service.work import PollRequest

pytestmark = pytest.mark.req("SEQ-HND-3")

PATIENCE_S = 20.0
ONE = sequence("one", step("a", "charge"))


@pytest.fixture(params=["thread", "process"])
def engine(request, tmp_path):
    path = tmp_path / "store.db"
    with detent.Engine(path, writer=request.param, workers=True, resolution_ms=10) as engine:
        yield engine


def waited_for(engine, worker, handler="charge", limit=1):
    """The tasks that a long poll finds, as a server does it; `asked` says how often it looked."""
    asked = []

    async def story():
        async def ask():
            asked.append(worker)
            request = PollRequest(handler=handler, worker=worker, limit=limit)
            return await asyncio.to_thread(engine._parts.work.poll, request)

        request = PollRequest(handler=handler, worker=worker)
        now_ms = engine._parts.work.now_ms
        return await long_poll(engine.work.bell, request, ask, PATIENCE_S, now_ms)

    return asyncio.run(story()).tasks, len(asked)


def listening(engine, *, begin):
    """Wait for work in a thread, and `begin` something once it waits."""
    found = []
    waiter = threading.Thread(target=lambda: found.append(waited_for(engine, "w1")))
    waiter.start()
    turn = threading.Event()
    while not engine.work.bell.waiting():
        turn.wait(0.001)
    begin()
    waiter.join(PATIENCE_S)
    return found[0]


def test_a_turn_that_makes_work_wakes_who_waits_for_it_and_the_report_wakes_the_writer(engine):
    made = []
    tasks, asked = listening(engine, begin=lambda: made.append(engine.start(ONE)))
    (task,) = tasks
    assert asked <= 3  # it slept until the bell rang
    assert engine.inspect.show(made[0]).summary.state == "waiting"
    engine.work.complete(task.id, "w1", 1, {"ok": True})
    assert engine.wait_for(made[0], timeout=PATIENCE_S) == "completed"
    assert engine.inspect.show(made[0]).data == {"ok": True}
    assert engine.inspect.verify().valid


def test_a_retry_wakes_who_waits_when_its_backoff_is_over(engine):
    retry = detent.retry(2, initial_backoff=150)
    instance = engine.start(sequence("r", step("a", "charge", retry=retry)))
    (task,), _ = waited_for(engine, "w1")
    engine.work.fail(task.id, "w1", 1, "no", retryable=True)
    (again,), _ = waited_for(engine, "w1")
    assert again.attempt == 1
    assert again.claimed_ms >= again.available_ms >= task.claimed_ms + 150
    engine.work.complete(again.id, "w1", 1, {})
    assert engine.wait_for(instance, timeout=PATIENCE_S) == "completed"


def test_the_reaper_gives_a_silent_worker_s_task_to_who_waits(tmp_path):
    path = tmp_path / "store.db"
    with detent.Engine(path, workers=True, resolution_ms=10, work_stale_ms=200) as engine:
        instance = engine.start(ONE)
        (task,), _ = waited_for(engine, "silent")
        (other,), _ = waited_for(engine, "w1")
        assert (other.id, other.claim_epoch) == (task.id, 2)
        engine.work.complete(other.id, "w1", 2, {})
        assert engine.wait_for(instance, timeout=PATIENCE_S) == "completed"
        events = [event.event for event in engine.work.attempts(task.id)]
        assert events == ["claimed", "reclaimed", "claimed", "completed"]


def test_claims_of_an_earlier_process_are_looked_after(tmp_path):
    path = tmp_path / "store.db"
    settings = {"workers": True, "resolution_ms": 10, "work_stale_ms": 300}
    with detent.Engine(path, **settings) as engine:
        engine.start(ONE)
        (task,), _ = waited_for(engine, "silent")
    with detent.Engine(path, **settings) as engine:
        tasks, _ = waited_for(engine, "w1")
        assert [each.id for each in tasks] == [task.id]


def test_a_timeout_is_found_without_any_poll(tmp_path):
    path = tmp_path / "store.db"
    with detent.Engine(path, workers=True, resolution_ms=10) as engine:
        instance = engine.start(sequence("t", step("a", "charge", timeout=100)))
        waited_for(engine, "w1")
        assert engine.wait_for(instance, timeout=PATIENCE_S) == "failed"
        assert "no report within 100 ms" in engine.inspect.show(instance).error["message"]


def test_eight_threads_carry_five_hundred_instances_through_and_none_is_done_twice(tmp_path):
    done, failures = [], []
    with detent.Engine(tmp_path / "store.db", workers=True) as engine:
        ids = engine.start_many(ONE, [{"n": n} for n in range(500)])

        def work(name):
            try:
                while len(done) < len(ids):
                    for task in engine.work.poll("charge", name, limit=5):
                        done.append((task.instance, task.claim_epoch))
                        engine.work.complete(task.id, name, task.claim_epoch, {"by": name})
            except Exception as error:  # noqa: BLE001 - told to the test below
                failures.append(error)
                done.extend([None] * len(ids))

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert sorted(done) == sorted((id, 1) for id in ids)
        for id in ids:
            assert engine.wait_for(id, timeout=60) == "completed"
        assert engine.work.stats().by_state == {"completed": 500}
        assert engine.inspect.verify().valid
