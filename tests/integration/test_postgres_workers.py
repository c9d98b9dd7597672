"""Workers on PostgreSQL: limited calls that come back are held until the gate lets them out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.model import limits
from tests.acceptance.stage import virtual
from tests.acceptance.test_permits import MAIL, done, tick
from tests.acceptance.workshop import STALE_MS, polled, proved
from tests.integration.web.house import house, step
from tests.integration.web.receiver import QUEUE, Receiver, history, pushed_to, task_of
from tests.integration.web.receiver import done as answered
from tests.unit.handlers.network.loopback import answer

WINDOW_MS = 2 * STALE_MS
pytestmark = pytest.mark.req("SEQ-LIM-1", "SEQ-HND-3")


def limited(url):
    engine = virtual(url, workers=True)
    engine.limits.set("box", max=1, window=timedelta(milliseconds=WINDOW_MS))
    return engine


def test_a_task_of_a_silent_worker_is_handed_out_again_by_the_gate(postgres_url):
    with limited(postgres_url) as engine:
        instance, other = [engine.start(MAIL) for _ in range(2)]
        engine.advance(0)
        task = polled(engine, handler="send")
        began = tick(engine)
        engine.advance(STALE_MS)
        assert engine.work.poll("send", "w2") == ()  # it was called already, within the window
        assert "once more" in engine.explain(instance).summary
        engine.advance(to=began + WINDOW_MS // 100 + 1)
        again = polled(engine, "w2", handler="send")  # before the other, for it had its turn
        assert (again.id, again.claim_epoch) == (task.id, 2)
        done(engine, again, "w2")
        engine.advance(WINDOW_MS + 100)
        done(engine, polled(engine, handler="send"))
        proved(engine, instance, other)


def test_a_held_task_outlives_the_process_that_held_it_back(postgres_url):
    with limited(postgres_url) as engine:
        instance = engine.start(MAIL)
        engine.advance(0)
        task = polled(engine, handler="send")
        engine.advance(STALE_MS)
        assert engine.work.poll("send", "w2") == ()
    with virtual(postgres_url, workers=True) as engine:
        assert engine.work.poll("send", "w2") == ()
        engine.advance(WINDOW_MS + 100)
        again = polled(engine, "w2", handler="send")
        assert (again.id, again.claim_epoch) == (task.id, 2)
        done(engine, again, "w2")
        proved(engine, instance)


def test_a_limited_task_that_no_receiver_took_is_pushed_again_through_the_gate(
    postgres_url, monkeypatch
):
    monkeypatch.setattr(limits, "PUSH_BACKOFF_MS", 20)
    settings = {"workers": True, "allow_internal_urls": True}
    with house(postgres_url, **settings) as server, Receiver(answer(503), answered({})) as receiver:
        server.engine.limits.set("box", max=1, window=timedelta(milliseconds=300), tenant="acme")
        pushed_to(server, receiver.url)
        steps = step("s", "job", queue_name=QUEUE, rate_limit_key="box")
        instance = server.instance(server.sequence(steps))
        server.settle(instance)
        task = task_of(server, instance)
        assert history(server, task["id"]) == [
            ("claimed", 1),
            ("push_failed", 1),
            ("claimed", 2),
            ("completed", 2),
        ]
        assert len(receiver.tasks) == 2
        row = server.engine.inspect.look(lambda store: store.work.item(task["id"]))
        assert row.ticket, "the gate was asked"
