"""The pool of threads: as many as there is work for, and stand-ins for stuck ones."""

from __future__ import annotations

import queue
import threading
from contextvars import ContextVar, copy_context

import pytest

from detent.runtime.pool import Pool

PATIENCE_S = 10.0
LABEL: ContextVar[str] = ContextVar("label", default="")


class Job:
    """Work that tells when it begins and ends, and goes on until it is let go."""

    def __init__(self):
        self.begun = queue.SimpleQueue()
        self.ended = queue.SimpleQueue()
        self.go = threading.Semaphore(0)

    def __call__(self, item):
        self.begun.put((item, LABEL.get()))
        self.go.acquire(timeout=PATIENCE_S)
        self.ended.put(item)

    def begins(self):
        return self.begun.get(timeout=PATIENCE_S)[0]

    def end(self, count=1):
        self.go.release(count)
        return sorted(self.ended.get(timeout=PATIENCE_S) for _ in range(count))


@pytest.fixture
def job():
    made = Job()
    yield made
    made.go.release(100)


def test_a_pool_runs_as_many_items_at_once_as_it_may_have_threads(job):
    pool = Pool(job, copy_context(), size=2)
    for item in range(3):
        pool.put(item)
    assert sorted([job.begins(), job.begins()]) == [0, 1]
    assert job.begun.empty()
    job.end()
    pool.done()
    assert job.begins() == 2
    job.go.release(2)
    pool.close(PATIENCE_S)


def test_one_thread_is_enough_for_items_that_come_one_after_the_other(job):
    pool = Pool(job, copy_context(), size=8)
    for item in range(5):
        pool.put(item)
        assert job.begins() == item
        job.end()
        pool.done()
    assert pool._alive == 1
    pool.close(PATIENCE_S)


def test_a_thread_that_is_stuck_is_replaced_up_to_the_bound_and_goes_when_it_comes_back(job):
    pool = Pool(job, copy_context(), size=1, spare=1)
    pool.put("first")
    assert job.begins() == "first"
    pool.lost()
    assert (pool.room, pool.stuck) == (1, 1)
    pool.put("second")
    assert job.begins() == "second"  # on the stand-in
    pool.lost()
    assert (pool.room, pool.stuck) == (0, 2)  # beyond the bound there is none
    pool.put("third")
    assert job.begun.empty()
    assert job.end() in (["first"], ["second"])
    pool.found()
    assert job.begins() == "third"
    job.end(2)
    pool.found()
    pool.done()
    assert (pool.room, pool.stuck, pool._alive) == (1, 0, 1)
    pool.close(PATIENCE_S)


def test_every_thread_runs_in_a_copy_of_the_given_context(job):
    context = copy_context()
    context.run(LABEL.set, "inside")
    pool = Pool(job, context, size=1)
    pool.put("x")
    assert job.begun.get(timeout=PATIENCE_S) == ("x", "inside")
    assert LABEL.get() == ""
    job.end()
    pool.done()
    pool.close(PATIENCE_S)
