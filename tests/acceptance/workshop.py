"""What acceptance tests of workers share: an instance at its worker, polls and reports."""

from __future__ import annotations

from detent import sequence, step
from detent.model import limits

ONE = sequence("one", step("a", "charge", params={"n": "{{ data.n }}"}))
STALE_MS = limits.WORK_STALE_MS
TICK_MS = 100


def started(engine, definition=ONE, data=None, **options):
    """An instance that stands at its worker."""
    instance = engine.start(definition, {"n": 1} if data is None else data, **options)
    engine.run_until_idle()
    return instance


def polled(engine, worker="w1", handler="charge", **more):
    """The one task there is."""
    (task,) = engine.work.poll(handler, worker, **more)
    return task


def completed(engine, task, output=None, worker="w1"):
    engine.work.complete(task.id, worker, task.claim_epoch, {} if output is None else output)
    engine.run_until_idle()


def failed(engine, task, *, retryable, worker="w1"):
    engine.work.fail(task.id, worker, task.claim_epoch, "no luck", retryable=retryable)
    engine.run_until_idle()


def events(engine, task):
    return [event.event for event in engine.work.attempts(task.id)]


def proved(engine, *instances):
    assert all(engine.replay(each).identical for each in instances)
    assert engine.inspect.verify().valid
