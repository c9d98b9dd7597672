"""A limit is one on calls: what is granted and not called counts until it is, however late."""

from __future__ import annotations

import threading
from datetime import timedelta

import apsw
import pytest

import detent
from detent import sequence, step
from detent.bootstrap.making import VIRTUAL_EPOCH_MS
from tests.acceptance.stage import virtual
from tests.acceptance.workshop import STALE_MS, polled, proved

TEN_SECONDS = 101  # ticks until the window of a call is over
MAIL = sequence("mail", step("send", "send", rate_limit_key="box"))


class Sender:
    """A handler that notes the tick of every call."""

    def __init__(self, **options):
        self.calls = []
        self.engine = None

        @detent.handler("send", **options)
        async def send():
            self.calls.append(tick(self.engine))

        self.handlers = [send]

    def over(self, path, *, known=True):
        """An engine that has the handler, or has it not."""
        handlers = self.handlers if known else ()
        self.engine = detent.Engine(path, handlers=handlers, clock="virtual")
        return self.engine


def tick(engine):
    return round((engine.now().timestamp() * 1000 - VIRTUAL_EPOCH_MS) / 100)


def done(engine, task, worker="w1"):
    engine.work.complete(task.id, worker, task.claim_epoch, {})
    engine.advance(0)


def pass_time_while_nobody_runs(path, ticks):
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE partition SET tick = tick + ?", (ticks,))
    connection.close()


def never_over(calls, *, most=1, window=TEN_SECONDS):
    return all(late - early >= window for early, late in zip(calls, calls[most:], strict=False))


@pytest.mark.req("SEQ-LIM-1")
@pytest.mark.parametrize("doubt", ["repeatable", "once"])
def test_what_nobody_could_call_does_not_go_out_at_once(tmp_path, doubt):
    sender, path = Sender(on_doubt=doubt), tmp_path / "store.db"
    with sender.over(path) as engine:
        engine.limits.set("box", max=1, window="10s")
        ids = [engine.start(MAIL) for _ in range(4)]
    with sender.over(path, known=False) as engine:
        engine.advance(timedelta(minutes=5))
        told = engine.explain(ids[-1])
        assert "behind 1 granted call that has not begun" in told.summary
        assert (told.earliest, told.not_before_ms is None) == (None, False)
    with sender.over(path) as engine:
        engine.run_until_idle()
        assert len(sender.calls) == 4
        assert never_over(sender.calls)
        assert sender.calls[-1] - sender.calls[0] == 3 * TEN_SECONDS  # nor is any of it unused
        proved(engine, *ids)


@pytest.mark.req("SEQ-LIM-1")
def test_a_handler_that_is_registered_late_is_called_at_the_limits_pace(tmp_path):
    sender, path = Sender(), tmp_path / "store.db"
    with sender.over(path) as engine:
        engine.limits.set("box", max=2, window="10s")
        ids = [engine.start(MAIL) for _ in range(5)]
    with sender.over(path, known=False) as engine:
        engine.advance(timedelta(minutes=5))
        engine.register(sender.handlers)
        engine.run_until_idle()
        assert len(sender.calls) == 5
        assert never_over(sender.calls, most=2)
        proved(engine, *ids)


@pytest.mark.req("SEQ-LIM-1", "CORE-REC-1")
def test_what_was_granted_before_the_engine_was_gone_is_asked_for_again(tmp_path):
    sender, path = Sender(on_doubt="once"), tmp_path / "store.db"
    with sender.over(path) as engine:
        engine.limits.set("box", max=3, window="10s")
        ids = [engine.start(MAIL) for _ in range(3)]
        engine.limits.set("box", max=1, window="10s")
    pass_time_while_nobody_runs(path, 10_000)
    with sender.over(path) as engine:
        engine.run_until_idle()
        assert len(sender.calls) == 3
        assert never_over(sender.calls)
        proved(engine, *ids)


@pytest.mark.req("SEQ-TIM-1", "CORE-CLK-4")
def test_a_call_that_was_not_made_before_its_window_shut_waits_for_the_next(tmp_path):
    sender, path = Sender(on_doubt="once"), tmp_path / "store.db"
    hours = {"start": "00:00", "end": "00:30"}
    daily = sequence("daily", step("send", "send", send_window=hours))
    with sender.over(path) as engine:
        instance = engine.start(daily)
        assert engine.explain(instance).effects[0].state == "planned"
    pass_time_while_nobody_runs(path, 27_000)  # 45 minutes
    with sender.over(path) as engine:
        engine.advance(0)
        assert sender.calls == []
        assert "waits for its send window to open" in engine.explain(instance).summary
        assert engine.explain(instance).earliest == 24 * 36_000
        engine.run_until_idle()
        assert sender.calls == [24 * 36_000]
        proved(engine, instance)


@pytest.mark.req("SEQ-LIM-1")
def test_what_is_withdrawn_before_its_call_is_free_for_the_next(tmp_path):
    sender = Sender(on_doubt="once")
    with sender.over(tmp_path / "store.db") as engine:
        engine.limits.set("box", max=1, window="1d")
        first, second = [engine.start(MAIL) for _ in range(2)]
        assert engine.explain(second).state == "scheduled"
        engine.cancel(first)
        engine.advance(0)
        assert engine.explain(second).state == "completed"
        assert len(sender.calls) == 1


@pytest.mark.req("SEQ-LIM-1", "SEQ-HND-3")
def test_workers_who_come_late_get_no_more_than_the_limit_allows():
    with virtual(workers=True) as engine:
        engine.limits.set("box", max=1, window="10s")
        ids = [engine.start(MAIL) for _ in range(3)]
        engine.advance(timedelta(minutes=5))
        (task,) = engine.work.poll("send", "w1", limit=10)
        done(engine, task)
        assert engine.work.poll("send", "w1", limit=10) == ()
        engine.advance(TEN_SECONDS * 100)
        (task,) = engine.work.poll("send", "w1", limit=10)
        engine.advance(TEN_SECONDS * 100)  # the claim is the call: its end frees nothing
        (third,) = engine.work.poll("send", "w2", limit=10)
        done(engine, task)
        done(engine, third, "w2")
        proved(engine, *ids)


@pytest.mark.req("SEQ-LIM-1", "SEQ-HND-3")
def test_a_task_of_a_silent_worker_is_handed_out_again_by_the_gate():
    window = 2 * STALE_MS
    with virtual(workers=True) as engine:
        engine.limits.set("box", max=1, window=timedelta(milliseconds=window))
        instance, other = [engine.start(MAIL) for _ in range(2)]
        engine.advance(0)
        task = polled(engine, handler="send")
        began = tick(engine)
        engine.advance(STALE_MS)
        assert engine.work.poll("send", "w2") == ()  # it was called already, within the window
        assert "once more" in engine.explain(instance).summary
        engine.advance(to=began + window // 100)
        assert engine.work.poll("send", "w2") == ()
        engine.advance(to=began + window // 100 + 1)
        again = polled(engine, "w2", handler="send")  # before the other, for it had its turn
        assert (again.id, again.claim_epoch) == (task.id, 2)
        done(engine, again, "w2")
        engine.advance(window + 100)
        done(engine, polled(engine, handler="send"))
        proved(engine, instance, other)


@pytest.mark.req("SEQ-LIM-1")
def test_a_call_counts_from_its_beginning_though_it_takes_long(tmp_path):
    """In real time: the third begins when the window is over, while the first two still run."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    @detent.handler("send")
    def send():
        begun.release()
        assert go_on.wait(60)

    with detent.Engine(tmp_path / "store.db", handlers=[send]) as engine:
        engine.limits.set("box", max=2, window="300ms")
        ids = [engine.start(MAIL) for _ in range(3)]
        assert all(begun.acquire(timeout=60) for _ in range(3))
        go_on.set()
        for instance in ids:
            assert engine.wait_for(instance, timeout=60) == "completed"
