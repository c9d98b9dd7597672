"""A server that pushes dies at every write, in every way: no task is lost, each ends once.

The outside is a list of what was sent. A claim may be sent once; what is sent again is claimed
anew, so that the receiver can tell the two apart and only one of them can be reported.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from detent import sequence, step
from detent.bootstrap.push_room import PushRoom
from detent.model.errors import RequestError
from detent.model.limits import PUSH_BACKOFF_MAX_MS, PUSH_TIMEOUT_MS, WORK_STALE_MS
from detent.service import fleet
from detent.service.fleet_kinds import TARGETS
from detent.service.push_targets import PushTarget
from detent.service.pushing import Again, Done, Taken, Unsure
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database

STORY = sequence("story", step("a", "charge", queue_name="q"), step("b", "mail", queue_name="q"))
TARGET = PushTarget(queue_name="q", url="https://example.com/")
ANSWERS = {
    ("a", 1): Again(reason="503"),
    ("a", 2): Unsure(reason="the answer was lost"),
    ("a", 3): Taken(),  # and not a word more
    ("b", 1): Again(reason="404", final=True),
}
OVER_MS = WORK_STALE_MS + PUSH_TIMEOUT_MS


class Outside:
    """What receivers got, as (block, epoch), and the most they were asked at once."""

    def __init__(self):
        self.sent = []

    def answer(self, push):
        key = (push.task.block, push.task.claim_epoch)
        self.sent.append(key)
        return ANSWERS.get(key, Done(output={push.task.block: push.task.claim_epoch}))


def live(store, outside):
    """One life: set the target and start unless that was done, and push until all is over."""
    engine = engine_over(store, workers=True)
    try:
        parts = engine._parts
        hand = fleet.Hand(parts.safe, parts.now_ms())
        with suppress(RequestError):
            parts.write(lambda s: fleet.create(s, TARGETS, "default", TARGET, "the-target", hand))
        engine.start(STORY, {"n": 1}, key="story")
        room = PushRoom(parts)
        while engine.inspect.instances().items[0].state != "completed":
            engine.run_until_idle()
            look = room.claim({})
            for push in look.pushes:
                room.settle(push, outside.answer(push))
            if not look.pushes:
                engine.advance(max(OVER_MS, PUSH_BACKOFF_MAX_MS * 5 // 4))
                engine.work.poll("nobody", "w")  # a reaper would look by itself
    finally:
        with suppress(Crash):
            engine.close()


def ending(connection):
    engine = engine_over(FaultyStore(connection), workers=True)
    (row,) = engine.inspect.instances().items
    shown = engine.inspect.show(row.id)
    assert engine.inspect.verify().valid
    assert engine.replay(row.id).identical
    tasks = {task.block: (task.state, task.claim_epoch, task.output) for task in engine.work.list()}
    histories = {
        task.block: [line.event for line in engine.work.attempts(task.id)]
        for task in engine.work.list()
    }
    engine.close()
    return shown, tasks, histories


def test_the_story_without_a_crash():
    outside, connection = Outside(), new_database(1)
    live(FaultyStore(connection), outside)
    shown, tasks, histories = ending(connection)
    assert outside.sent == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("b", 2)]
    assert shown.data == {"n": 1, "a": 4, "b": 2}
    assert {block: task[0] for block, task in tasks.items()} == dict.fromkeys("ab", "completed")
    assert histories["a"] == [
        *["claimed", "push_failed"],
        *["claimed", "reclaimed"] * 2,
        *["claimed", "completed"],
    ]
    assert histories["b"] == ["claimed", "push_failed", "claimed", "completed"]


@pytest.mark.req("SEQ-HND-3", "CORE-REC-1")
def test_whenever_it_dies_no_claim_is_sent_twice_and_every_task_ends_once():
    connection = new_database(1)
    clean = FaultyStore(connection)
    live(clean, Outside())
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            where = f"{write}:{moment}"
            connection, outside = new_database(1), Outside()
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)), outside)
            live(FaultyStore(connection), outside)
            shown, tasks, histories = ending(connection)
            assert shown.summary.state == "completed", where
            assert len(outside.sent) == len(set(outside.sent)), where
            for block, (state, epoch, output) in tasks.items():
                assert (state, output) == ("completed", {block: epoch}), where
                assert shown.outputs[block] == output, where
                assert histories[block].count("completed") == 1, where
                assert histories[block].count("claimed") == epoch, where
            connection.close()
