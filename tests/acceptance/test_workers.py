"""External workers through the engine's door: tasks, polls and reports."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step
from detent.model import limits
from detent.ports.work import WorkQuery
from tests.acceptance.stage import nodes, refused, state, virtual
from tests.acceptance.workshop import (
    ONE,
    TICK_MS,
    completed,
    events,
    failed,
    polled,
    proved,
    started,
)

pytestmark = pytest.mark.req("SEQ-HND-3")


@pytest.fixture
def engine():
    with virtual(workers=True) as engine:
        yield engine


# dispatch and polling ----------------------------------------------------------------------------


@pytest.mark.req("CORE-STM-1")
def test_dispatch_puts_the_instance_in_waiting_and_a_pending_task_in_the_table(engine):
    instance = started(engine)
    (task,) = engine.work.list()
    assert state(engine, instance) == "waiting"
    assert nodes(engine, instance) == {"a": "waiting"}
    assert (task.state, task.worker, task.claim_epoch) == ("pending", None, 0)
    assert (task.instance, task.block, task.handler, task.queue) == (instance, "a", "charge", None)
    assert (task.params, task.context["data"], task.attempt) == ({"n": 1}, {"n": 1}, 0)
    assert (
        engine.explain(instance)
        .waits[0]
        .text.startswith("step 'a' waits for a worker of handler charge since")
    )


def test_a_poll_gives_claimed_tasks_oldest_first_with_epoch_one(engine):
    made = [started(engine, data={"n": n}) for n in range(3)]
    first = engine.work.poll("charge", "w1", limit=2)
    assert [task.instance for task in first] == made[:2]
    assert [(task.state, task.worker, task.claim_epoch) for task in first] == [
        ("claimed", "w1", 1)
    ] * 2
    assert polled(engine, "w2").instance == made[2]
    assert list(engine.work.poll("charge", "w1", limit=1_000)) == []
    assert list(engine.work.poll("other", "w1")) == []


def test_a_queue_must_match_and_a_poll_by_handler_takes_any(engine):
    queued = sequence("queued", step("a", "charge", queue_name="eu"))
    first, second = started(engine, queued), started(engine, queued)
    started(engine)
    assert list(engine.work.poll("charge", "w1", queue="us")) == []
    assert polled(engine, queue="eu").instance == first
    found = [(task.instance, task.queue) for task in engine.work.poll("charge", "w1", limit=9)]
    assert found[0] == (second, "eu")
    assert found[1][1] is None


def test_a_definition_with_a_queue_is_taken_where_unknown_handlers_are_not():
    with virtual() as engine:
        with refused("handler.unknown"):
            engine.start(ONE)
        instance = started(engine, sequence("q", step("a", "charge", queue_name="eu")))
        assert state(engine, instance) == "waiting"
        completed(engine, polled(engine, queue="eu"), {"ok": True})
        assert state(engine, instance) == "completed"


def test_the_step_s_context_access_holds_for_its_worker(engine):
    access = {"data": {"fields": ["open"]}, "config": False}
    definition = sequence("s", step("a", "charge", context_access=access))
    started(engine, definition, {"open": 1, "secret": 2}, config={"key": 3})
    context = polled(engine).context
    assert (context["data"], context["config"]) == ({"open": 1}, None)


# complete ----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-CTX-1")
def test_an_output_is_kept_and_its_keys_are_merged_into_data(engine):
    definition = sequence(
        "s", step("a", "charge"), step("b", "transform", params={"got": "{{ outputs.a.id }}"})
    )
    instance = started(engine, definition, {"n": 1, "id": 0})
    completed(engine, polled(engine), {"id": 7})
    shown = engine.inspect.show(instance)
    assert (shown.summary.state, shown.data) == ("completed", {"n": 1, "id": 7})
    assert shown.outputs == {"a": {"id": 7}, "b": {"got": 7}}
    (task,) = engine.work.list()
    assert (task.state, task.output) == ("completed", {"id": 7})
    proved(engine, instance)


@pytest.mark.parametrize("wrong", [("w2", 1), ("w1", 2), ("w1", 0)], ids=str)
def test_only_the_claim_itself_may_report_and_nothing_else_changes(engine, wrong):
    instance = started(engine)
    task = polled(engine)
    worker, epoch = wrong
    with refused("work.lost"):
        engine.work.complete(task.id, worker, epoch, {})
    with refused("work.lost"):
        engine.work.fail(task.id, worker, epoch, "no")
    with refused("work.lost"):
        engine.work.heartbeat(task.id, worker, epoch)
    engine.run_until_idle()
    assert state(engine, instance) == "waiting"
    assert engine.work.show(task.id) == task
    assert events(engine, task) == ["claimed", *["stale_mutation_rejected"] * 2]


def test_nobody_reports_on_a_pending_or_an_ended_task(engine):
    started(engine)
    (task,) = engine.work.list()
    with refused("work.lost"):
        engine.work.complete(task.id, "w1", 0, {})
    with refused("work.lost"):
        engine.work.heartbeat(task.id, "w1", 0)
    task = polled(engine)
    completed(engine, task)
    with refused("work.lost"):
        engine.work.complete(task.id, "w1", 1, {})


def test_an_unknown_task_and_one_of_another_tenant_are_not_found(engine):
    started(engine, tenant="acme")
    (task,) = engine.work.list()
    for call in (
        lambda: engine.work.complete("no-such", "w1", 1, {}),
        lambda: engine.work.complete(task.id, "w1", 1, {}, tenant="beta"),
        lambda: engine.work.fail(task.id, "w1", 1, "no", tenant="beta"),
        lambda: engine.work.heartbeat(task.id, "w1", 1, tenant="beta"),
        lambda: engine.work.show(task.id, tenant="beta"),
        lambda: engine.work.attempts(task.id, tenant="beta"),
        lambda: engine.work.attempts("\ud800"),
    ):
        with refused("work.not_found"):
            call()
    assert list(engine.work.poll("charge", "w1", tenant="beta")) == []
    assert engine.work.list(WorkQuery(tenant="beta")) == []
    assert engine.work.stats(tenant="beta").by_state == {}
    assert polled(engine, tenant="acme").id == task.id


def test_what_cannot_be_stored_is_refused_and_the_claim_is_kept(engine):
    instance = started(engine)
    task = polled(engine)
    with refused("payload.too_large"):
        engine.work.complete(task.id, "w1", 1, "x" * limits.PAYLOAD_BYTES)
    with refused("payload.invalid"):
        engine.work.complete(task.id, "w1", 1, {"n": float("nan")})
    with refused("request.invalid"):
        engine.work.complete(task.id, "w1", 1, {}, logs=["text"])
    with refused("request.invalid"):
        engine.work.complete(task.id, "", 1, {})
    with refused("request.invalid"):
        engine.work.complete(task.id, "w1", "1", {})
    completed(engine, task, {"n": 2})
    assert state(engine, instance) == "completed"


def test_a_paused_instance_takes_the_report_and_goes_on_when_it_is_resumed(engine):
    definition = sequence("s", step("a", "charge"), step("b", "charge"))
    instance = started(engine, definition)
    engine.pause(instance)
    completed(engine, polled(engine), {"x": 1})
    assert state(engine, instance) == "paused"
    assert list(engine.work.poll("charge", "w1")) == []
    engine.resume(instance)
    engine.run_until_idle()
    completed(engine, polled(engine), {"y": 2})
    assert engine.inspect.show(instance).data == {"n": 1, "x": 1, "y": 2}
    proved(engine, instance)


# fail and retry ----------------------------------------------------------------------------------


@pytest.mark.req("CORE-EFF-7")
def test_a_retryable_failure_makes_a_new_task_at_once_that_is_had_after_its_backoff(engine):
    definition = sequence("s", step("a", "charge", retry=detent.retry(3, initial_backoff=1_000)))
    instance = started(engine, definition)
    first = polled(engine)
    engine.work.heartbeat(first.id, "w1", 1, checkpoint={"at": 5}, seq=0)
    failed(engine, first, retryable=True)
    second = engine.work.list()[0]
    assert state(engine, instance) == "waiting"
    assert (second.state, second.attempt, second.claim_epoch) == ("pending", 1, 0)
    assert second.id != first.id
    assert list(engine.work.poll("charge", "w1")) == []
    engine.advance(1_000 - TICK_MS)
    assert list(engine.work.poll("charge", "w1")) == []
    engine.advance(TICK_MS)
    again = polled(engine)
    assert (again.id, again.claim_epoch) == (second.id, 1)
    assert (again.checkpoint, again.checkpoint_seq) == ({"at": 5}, 1)
    completed(engine, again)
    assert state(engine, instance) == "completed"
    proved(engine, instance)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_max_attempts_is_the_number_of_tasks(engine, most):
    policy = detent.retry(most, initial_backoff=0)
    instance = started(engine, sequence("s", step("a", "charge", retry=policy)))
    for attempt in range(most):
        assert state(engine, instance) == "waiting"
        task = polled(engine)
        assert task.attempt == attempt
        failed(engine, task, retryable=True)
    assert state(engine, instance) == "failed"
    assert engine.work.stats().by_state == {"failed": most}


def test_a_permanent_failure_fails_the_instance_or_is_caught(engine):
    policy = detent.retry(3, initial_backoff=0)
    flat = started(engine, sequence("flat", step("a", "charge", retry=policy)))
    failed(engine, polled(engine), retryable=False)
    assert state(engine, flat) == "failed"
    tree = sequence(
        "tree",
        detent.try_catch("t", do=[step("a", "charge", retry=policy)], catch=[step("c", "noop")]),
    )
    caught = started(engine, tree)
    failed(engine, polled(engine), retryable=False)
    assert state(engine, caught) == "completed"
    (task, _) = engine.work.list()
    assert (task.state, task.error, task.retryable) == ("failed", "no luck", False)
    proved(engine, flat, caught)


def test_without_a_retry_policy_the_first_failure_is_final(engine):
    instance = started(engine)
    failed(engine, polled(engine), retryable=True)
    assert state(engine, instance) == "failed"
    engine.retry(instance)
    engine.run_until_idle()
    assert state(engine, instance) == "waiting"
    completed(engine, polled(engine))
    assert state(engine, instance) == "completed"
