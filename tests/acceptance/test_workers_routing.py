"""Routing rules: into which queue the tasks of external workers go."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest

import detent
from detent import sequence, step
from detent.kernel.routing import RoutingRule
from detent.model import limits
from detent.service import fleet
from detent.service.fleet_kinds import RULES
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database
from tests.acceptance.stage import refused, virtual
from tests.acceptance.workshop import completed, events, failed, polled, proved, started

pytestmark = pytest.mark.req("SEQ-HND-3")

NAMED = sequence("named", step("a", "charge", queue_name="light"))


@pytest.fixture
def engine():
    with virtual(workers=True) as made:
        yield made


def a_rule(queue="heavy", handler="charge", **more):
    return RoutingRule(handler_name=handler, queue_name=queue, **more)


def hand(parts):
    return fleet.Hand(parts.safe, parts.now_ms())


def ruled(engine, queue="heavy", tenant="default", **more):
    """Make a rule; its id."""
    body, id = a_rule(queue, **more), str(uuid.uuid4())
    parts = engine._parts
    parts.write(lambda store: fleet.create(store, RULES, tenant, body, id, hand(parts)))
    return id


def lifted(engine, id, tenant="default"):
    engine._parts.write(lambda store: fleet.delete(store, RULES, tenant, id))


def queues(engine, **query):
    """The queues of all tasks, the oldest first."""
    return [task.queue for task in reversed(engine.work.list())]


def test_a_task_goes_into_the_queue_that_a_rule_names(engine):
    rule = ruled(engine)
    instance = started(engine)
    assert engine.work.poll("charge", "w1", queue="other") == ()
    task = polled(engine, queue="heavy")
    assert (task.queue, task.handler) == ("heavy", "charge")
    completed(engine, task, {"ok": True})
    assert events(engine, task) == ["routed", "claimed", "completed"]
    routed = engine.work.attempts(task.id)[0]
    assert routed.reason == f"queue heavy instead of none, by rule {rule}"
    assert engine.inspect.show(instance).data == {"n": 1, "ok": True}
    proved(engine, instance)


def test_a_rule_moves_tasks_away_from_the_queue_that_their_step_names(engine):
    ruled(engine, match_queue="light")
    started(engine, NAMED)
    started(engine)  # names no queue: the rule is not for it
    assert queues(engine) == ["heavy", None]
    assert engine.work.poll("charge", "w1", queue="light") == ()


def test_of_several_rules_the_highest_priority_counts(engine):
    ruled(engine, "low", priority=1)
    highest = ruled(engine, "high", priority=7)
    ruled(engine, "off", priority=9, enabled=False)
    ruled(engine, "elsewhere", priority=9, handler="mail")
    ruled(engine, "foreign", tenant="beta", priority=9)
    started(engine)
    lifted(engine, highest)
    started(engine)
    assert queues(engine) == ["high", "low"]


def test_without_a_rule_for_it_a_task_stays_in_the_queue_of_its_step(engine):
    ruled(engine, handler="mail")
    ruled(engine, enabled=False)
    ruled(engine, match_queue="other")
    started(engine)
    started(engine, NAMED)
    assert queues(engine) == [None, "light"]
    assert [events(engine, task) for task in engine.work.list()] == [[], []]


def test_the_rules_of_a_tenant_are_its_own(engine):
    ruled(engine, tenant="acme")
    for tenant in ("acme", "beta"):
        engine.start(NAMED, {"n": 1}, tenant=tenant)
    engine.run_until_idle()
    by_tenant = {task.tenant: task.queue for task in engine.work.list()}
    assert by_tenant == {"acme": "heavy", "beta": "light"}
    with refused("record.not_found"):
        lifted(engine, ruled(engine, tenant="acme"), tenant="beta")


def test_a_task_stays_where_it_was_put_and_the_next_attempt_goes_by_the_rules_of_then(engine):
    retried = sequence("r", step("a", "charge", retry=detent.retry(3, initial_backoff="1s")))
    rule = ruled(engine)
    instance = started(engine, retried)
    lifted(engine, rule)
    started(engine, retried)
    assert queues(engine) == ["heavy", None]
    failed(engine, polled(engine, queue="heavy"), retryable=True)
    assert queues(engine) == ["heavy", None, None]
    other = ruled(engine, "cold")
    engine.advance(1_000)
    oldest, newer = engine.work.poll("charge", "w1", limit=2)
    failed(engine, newer if newer.instance == instance else oldest, retryable=True)
    assert queues(engine)[-1] == "cold"
    lifted(engine, other)
    proved(engine, instance)


def test_a_changed_rule_counts_for_the_handler_it_names_now(engine):
    rule = ruled(engine)
    parts = engine._parts
    changed = a_rule("cold", handler="mail")
    parts.write(lambda s: fleet.replace(s, RULES, None, rule, changed, hand(parts)))
    started(engine)
    started(engine, sequence("mails", step("a", "mail")))
    assert queues(engine) == [None, "cold"]


def test_a_step_that_the_engine_performs_itself_is_no_task_and_has_no_queue():
    @detent.handler
    def charge() -> dict:
        return {"by": "engine"}

    with virtual(handlers=[charge], workers=True) as engine:
        ruled(engine)
        instance = started(engine, sequence("own", step("a", "charge")))
        assert engine.inspect.show(instance).outputs == {"a": {"by": "engine"}}
        assert engine.work.list() == []


def test_there_are_only_so_many_rules_and_each_is_asked_for(engine, monkeypatch):
    monkeypatch.setattr(limits, "FLEET_PER_TENANT", 3)
    for n in range(3):
        ruled(engine, f"q{n}", priority=n)
    with refused("record.limit"):
        ruled(engine, "one more")
    started(engine)
    assert queues(engine) == ["q2"]


# crashes -----------------------------------------------------------------------------------------


def live(store):
    engine = engine_over(store, workers=True)
    try:
        engine.start(NAMED, {"n": 1}, key="story")
        engine.run_until_idle()
        for task in engine.work.poll("charge", "w1", queue="heavy"):
            engine.work.complete(task.id, "w1", task.claim_epoch, {"done": task.queue})
        engine.run_until_idle()
        engine.advance(limits.WORK_STALE_MS)
        for task in engine.work.poll("charge", "w2", queue="heavy"):
            engine.work.complete(task.id, "w2", task.claim_epoch, {"done": task.queue})
        engine.run_until_idle()
    finally:
        with suppress(Crash):
            engine.close()


def test_whenever_the_engine_dies_the_task_is_routed_once():
    def prepared():
        connection = new_database(1)
        with engine_over(FaultyStore(connection), workers=True) as engine:
            ruled(engine)
        return connection

    clean = FaultyStore(prepared())
    live(clean)
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection = prepared()
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)))
            live(FaultyStore(connection))
            with engine_over(FaultyStore(connection), workers=True) as engine:
                (task,) = engine.work.list()
                assert (task.queue, task.state) == ("heavy", "completed")
                assert events(engine, task).count("routed") == 1
                proved(engine, task.instance)
            connection.close()
