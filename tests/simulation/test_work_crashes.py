"""Workers of an engine that dies at every write, in every way: each task is settled once."""

from __future__ import annotations

from contextlib import suppress

import pytest

import detent
from detent import sequence, step
from detent.model.errors import RequestError
from detent.model.limits import WORK_STALE_MS
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database

RETRY = detent.retry(3, initial_backoff=500)
STORY = sequence(
    "story", step("a", "charge", retry=RETRY), step("b", "charge", queue_name="q", retry=RETRY)
)


def live(store):
    """One life: start unless it was started, and work until nothing is left to do.

    The first task of block a fails for now, and its first claim of block b falls silent.
    """
    engine = engine_over(store, workers=True)
    try:
        engine.start(STORY, {"n": 1}, key="story")
        while engine.inspect.instances().items[0].state == "waiting":
            engine.run_until_idle()
            tasks = engine.work.poll("charge", "w1")
            for task in tasks:
                _carry_out(engine, task)
            if not tasks:
                engine.advance(WORK_STALE_MS)
    finally:
        with suppress(Crash):
            engine.close()


def _carry_out(engine, task):
    if task.block == "b" and task.claim_epoch == 1:
        return  # not a word
    try:
        if task.block == "a" and task.attempt == 0:
            engine.work.fail(task.id, "w1", task.claim_epoch, "not yet", retryable=True)
        else:
            engine.work.complete(task.id, "w1", task.claim_epoch, {task.block: task.attempt})
    except RequestError as error:
        if error.code != "work.lost":
            raise


def ending(connection):
    engine = engine_over(FaultyStore(connection))
    (row,) = engine.inspect.instances().items
    shown = engine.inspect.show(row.id)
    audit = [(entry.action, entry.node) for entry in engine.inspect.audit(row.id)]
    assert engine.inspect.verify().valid
    assert engine.replay(row.id).identical
    tasks = [(task.block, task.attempt, task.state) for task in engine.work.list()]
    engine.close()
    return shown.summary.state, shown.data, shown.outputs, audit, tasks


@pytest.mark.req("SEQ-HND-3", "CORE-REC-1")
def test_every_task_is_settled_once_whenever_the_engine_dies():
    connection = new_database(1)
    clean = FaultyStore(connection)
    live(clean)
    expected = ending(connection)
    assert expected[1] == {"n": 1, "a": 1, "b": 0}
    assert expected[4] == [("b", 0, "completed"), ("a", 1, "completed"), ("a", 0, "failed")]
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection = new_database(1)
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)))
            live(FaultyStore(connection))
            assert ending(connection) == expected, f"{write}:{moment}"
            connection.close()
