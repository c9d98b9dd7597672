"""Tasks of external workers over crashes, in views, and in virtual time."""

from __future__ import annotations

import pytest

from detent import sequence, step, wait
from detent.model import limits
from detent.ports.work import WorkQuery
from detent.service.work import Holder, complete
from detent.service.work_views import external_handlers, instance_logs
from detent.store.sqlite import open_store
from tests.acceptance.stage import actions, refused, rows, state, virtual
from tests.acceptance.workshop import STALE_MS, completed, events, polled, proved, started

pytestmark = pytest.mark.req("SEQ-HND-3")


@pytest.fixture
def engine():
    with virtual(workers=True) as engine:
        yield engine


# crashes -----------------------------------------------------------------------------------------


@pytest.mark.req("CORE-REC-1")
def test_a_pending_task_outlives_its_engine_and_is_made_once(tmp_path):
    path = tmp_path / "store.db"
    with virtual(path, workers=True) as engine:
        instance = started(engine)
        (before,) = engine.work.list()
    with virtual(path) as engine:  # this one takes no unknown handlers, but knows these
        engine.run_until_idle()
        assert engine.work.list() == [before]
        completed(engine, polled(engine), {"x": 1})
        assert engine.inspect.show(instance).data == {"n": 1, "x": 1}
        proved(engine, instance)


@pytest.mark.req("CORE-REC-1")
@pytest.mark.parametrize("landed", [False, True], ids=["before", "after"])
def test_a_crash_around_the_report_s_transaction_loses_all_of_it_or_nothing(tmp_path, landed):
    """The server dies with the report; the engine is opened again by another process."""
    path = tmp_path / "store.db"
    with virtual(path, workers=True) as engine:
        instance = started(engine)
        task = polled(engine)
    server = open_store(path, create=None)
    if not landed:
        server.before_commit(_die)
    try:
        complete(server, Holder(task=task.id, worker="w1", epoch=1), {"x": 1}, task.claimed_ms)
    except _PowerCut:
        assert not landed
    finally:
        server.close()
    assert len(rows(path, "arrival", where="body IS NOT NULL")) == int(landed)
    with virtual(path, workers=True) as engine:
        engine.run_until_idle()
        assert state(engine, instance) == ("completed" if landed else "waiting")
        if not landed:
            engine.advance(STALE_MS)
            completed(engine, polled(engine, "w2"), {"x": 1}, "w2")
        assert engine.inspect.show(instance).outputs == {"a": {"x": 1}}
        proved(engine, instance)


class _PowerCut(Exception):
    pass


def _die():
    raise _PowerCut


@pytest.mark.req("CORE-INB-2")
def test_the_same_report_twice_is_one(tmp_path):
    """A report that was left and not taken yet is known by its id."""
    path = tmp_path / "store.db"
    with virtual(path, workers=True) as engine:
        instance = started(engine)
        task = polled(engine)
        engine.work.complete(task.id, "w1", 1, {"x": 1})
        with refused("work.lost"):
            engine.work.complete(task.id, "w1", 1, {"x": 2})
        engine.run_until_idle()
        assert engine.inspect.show(instance).outputs == {"a": {"x": 1}}
        assert actions(engine, instance, "effect.applied", "event.ignored") == ["effect.applied"]


# looking -----------------------------------------------------------------------------------------


def test_lists_and_figures_and_workers(engine):
    for _ in range(2):
        started(engine)
    started(engine, sequence("m", step("a", "mail", queue_name="eu")), tenant="acme")
    polled(engine, version="1.2")
    polled(engine, "w2", "mail", queue="eu", tenant="acme")
    stats = engine.work.stats()
    assert stats.by_state == {"claimed": 2, "pending": 1}
    assert stats.by_handler == {"charge": {"claimed": 1, "pending": 1}, "mail": {"claimed": 1}}
    assert stats.active_workers == ("w1", "w2")
    assert [task.handler for task in engine.work.list()] == ["mail", "charge", "charge"]
    assert [task.worker for task in engine.work.list(WorkQuery(states=("claimed",)))] == [
        "w2",
        "w1",
    ]
    for wrong in (WorkQuery(states=("done",)), WorkQuery(limit=0), WorkQuery(tenant="")):
        with refused("request.invalid"):
            engine.work.list(wrong)
    first, second = engine.work.workers()
    assert (first.id, first.handlers, first.queues) == ("w1", ("charge",), ())
    assert (first.version, first.alive, first.in_flight) == ("1.2", True, 1)
    assert (second.id, second.queues) == ("w2", ("eu",))
    assert [worker.id for worker in engine.work.workers(tenant="acme")] == ["w2"]
    engine.advance(60_001)
    assert engine.work.workers() == []
    assert [worker.alive for worker in engine.work.workers(include_stale=True)] == [False, False]


def test_what_workers_write_down_is_kept_with_the_instance(engine):
    instance = started(engine, sequence("l", step("a", "charge"), step("b", "mail")))
    for handler, lines in (("charge", 2), ("mail", limits.WORK_LOG_LINES + 1)):
        task = polled(engine, handler=handler)
        logs = [{"ts": "12:00", "level": "info", "message": f"{n}"} for n in range(lines)]
        engine.work.complete(task.id, "w1", 1, {}, logs=logs)
        engine.run_until_idle()
    found = engine.inspect.look(lambda store: instance_logs(store, instance, None))
    assert [line.block for line in found] == ["a"] * 2 + ["b"] * limits.WORK_LOG_LINES
    assert (found[1].ts, found[1].level, found[1].message) == ("12:00", "info", "1")
    with refused("instance.not_found"):
        engine.inspect.look(lambda store: instance_logs(store, instance, "beta"))
    assert engine.inspect.look(lambda store: external_handlers(store, None)) == ["charge", "mail"]
    assert engine.inspect.look(lambda store: external_handlers(store, "beta")) == []


def test_an_open_effect_is_in_flight_while_a_worker_holds_it(engine):
    instance = started(engine)
    assert [call.state for call in engine.inspect.doubts(instance)] == ["planned"]
    polled(engine)
    assert [call.state for call in engine.inspect.doubts(instance)] == ["in_flight"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": True},
        {"worker": ""},
        {"handler": ""},
        {"queue": ""},
        {"tenant": ""},
        {"version": 3},
    ],
    ids=str,
)
def test_a_poll_that_makes_no_sense_is_refused(engine, wrong):
    asked = {"handler": "charge", "worker": "w1", **wrong}
    with refused("request.invalid"):
        engine.work.poll(**asked)


# virtual time ------------------------------------------------------------------------------------


def test_time_does_not_move_on_for_a_worker_but_ends_its_lease_when_it_passes(engine):
    started(engine)
    task = polled(engine)
    before = engine.now()
    engine.run_until_idle()
    assert engine.now() == before
    assert engine.work.show(task.id).state == "claimed"
    sleeper = engine.start(sequence("sleep", wait("w", 10 * STALE_MS)))
    engine.run_until_idle()
    assert state(engine, sleeper) == "completed"
    assert events(engine, task) == ["claimed", "reclaimed"]
    assert engine.work.attempts(task.id)[1].at_ms == task.claimed_ms + STALE_MS


def test_equal_seeds_give_equal_tasks():
    def told():
        with virtual(workers=True, seed="same") as engine:
            instance = started(engine)
            completed(engine, polled(engine), {"x": 1})
            return engine.work.list(), actions(engine, instance)

    assert told() == told()


@pytest.mark.req("CORE-EFF-4")
def test_a_forked_instance_makes_a_task_of_its_own(engine):
    definition = sequence("s", step("a", "charge"), step("b", "mail"))
    origin = started(engine, definition)
    completed(engine, polled(engine), {"x": 1})
    twin = engine.fork(origin, before="b")
    engine.run_until_idle()
    made = engine.work.poll("mail", "w1", limit=9)
    assert [task.instance for task in made] == [origin, twin]
    for task in made:
        completed(engine, task, {"y": 2})
    assert (state(engine, origin), state(engine, twin)) == ("completed", "completed")
    proved(engine, origin, twin)
