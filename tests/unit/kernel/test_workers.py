"""Steps of external workers: what is decided for them, and what their reports lead to."""

from __future__ import annotations

import msgspec
import pytest

from detent.kernel.explain import explain
from detent.kernel.recording import Timing
from detent.model.decision import ANYBODY
from detent.model.ids import work_id
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.kernel.blocks import call, noop, parallel, race, retry, saga
from tests.unit.kernel.driver import RESOLUTION_MS, World, run

WORKERS = {ANYBODY: {"worker": True}}


def workers(*blocks, data=None, **more):
    """A world in which handlers nobody has registered are workers'."""
    return run(*blocks, data=data, handlers={**WORKERS, **more.pop("handlers", {})}, **more)


def item(world):
    (made,) = world.decision.work
    return made


def open_key(world):
    (effect,) = world.snap().effects
    return effect.key


def report(world, result=None, key=None):
    return world.tell(EffectApplied(key=key or open_key(world), result=result))


def no(world, **more):
    return world.tell(EffectFailed(key=open_key(world), message="no", **more))


@pytest.mark.req("SEQ-HND-3", "CORE-STM-1")
def test_a_handler_nobody_has_registered_becomes_a_work_item_and_the_instance_waits():
    world = workers(call("a", "charge", params={"n": "{{ data.n }}"}, timeout=5000), data={"n": 3})
    made = item(world)
    assert world.state == "waiting"
    assert world.orders == []
    assert (made.handler, made.block, made.queue, made.attempt) == ("charge", "a", "", 0)
    assert (made.params, made.timeout_ms) == (b'{"n":3}', 5000)
    assert made.id == work_id(made.effect)
    assert made.available_ms == made.created_ms == world.tick * RESOLUTION_MS
    assert world.decision.due is None  # its time starts at its claim
    assert world.actors["i1"].facts[0]["handler:charge"] == {"name": "charge", "worker": True}


@pytest.mark.req("SEQ-HND-3")
def test_without_workers_the_same_handler_is_an_order_and_a_registered_one_always_is():
    plain = run(call("a", "charge"))
    assert not plain.decision.work
    assert plain.state == "running"
    known = workers(call("a", "charge"), handlers={"charge": {"doubt": "keyed"}})
    assert [order.handler for order in known.orders] == ["charge"]
    assert not known.decision.work


@pytest.mark.req("SEQ-HND-3")
def test_a_queue_is_workers_whoever_registered_the_handler():
    world = run(call("a", queue_name="q"), handlers={"a": {"doubt": "once", "merge": False}})
    assert item(world).queue == "q"
    assert world.actors["i1"].facts == [{}]  # the definition says so, no fact is needed
    report(world, {"x": 1})
    assert (world.state, world.data, world.outputs) == ("completed", {"x": 1}, {"a": {"x": 1}})


@pytest.mark.req("SEQ-HND-3")
def test_a_built_in_move_is_no_worker_s_even_with_a_queue():
    world = workers(noop("n", queue_name="q"))
    assert world.state == "completed"
    assert not world.decision.work


@pytest.mark.req("SEQ-HND-3", "SEQ-CTX-1")
def test_a_work_item_shows_what_the_step_may_see_and_nothing_else():
    access = {"data": {"fields": ["open"]}, "config": False}
    data = {"open": 1, "secret": 2}
    hidden = workers(call("a", context_access=access), data=data)
    assert msgspec.json.decode(item(hidden).context) == {
        "data": {"open": 1},
        "config": None,
        "audit": None,
        "runtime": None,
    }
    whole = msgspec.json.decode(item(workers(call("a"), data=data)).context)
    assert whole["data"] == data
    assert whole["runtime"]["current_step"] == "a"


@pytest.mark.req("SEQ-HND-3")
def test_an_object_is_merged_into_data_and_anything_is_the_output():
    world = workers(call("a"), call("b"), data={"k": 0})
    report(world, {"k": 1, "m": 2})
    assert world.data == {"k": 1, "m": 2}
    report(world, [1])
    assert (world.state, world.data) == ("completed", {"k": 1, "m": 2})
    assert world.outputs == {"a": {"k": 1, "m": 2}, "b": [1]}


@pytest.mark.req("SEQ-HND-3", "CORE-EFF-7")
def test_a_retry_is_a_new_item_at_once_that_can_be_had_after_its_backoff():
    world = workers(call("a", retry=retry(3, 1000)))
    first = item(world)
    no(world)
    second = item(world)
    assert world.state == "waiting"
    assert (second.attempt, second.previous) == (1, first.id)
    assert second.id != first.id
    assert second.available_ms - second.created_ms == 1000
    no(world)
    third = item(world)
    assert (third.attempt, third.previous) == (2, second.id)
    assert third.available_ms - third.created_ms == 2000
    no(world)
    assert world.state == "failed"
    assert not world.decision.work


@pytest.mark.req("SEQ-HND-3")
@pytest.mark.parametrize("more", [{"retryable": False}, {"details": {"code": "gone"}}], ids=str)
def test_a_failure_that_is_final_is_one_as_for_any_handler(more):
    policy = {**retry(3, 1000), "non_retryable_codes": ["gone"]}
    world = workers(call("a", retry=policy))
    no(world, **more)
    assert world.state == "failed"
    assert not world.decision.work
    assert not world.decision.called_off


@pytest.mark.req("SEQ-HND-3", "CORE-EFF-7")
def test_a_retry_that_must_ask_a_window_or_a_limit_again_waits_for_its_backoff_first():
    world = workers(call("a", retry=retry(2, 1000), send_window={"start_hour": 0, "end_hour": 23}))
    first = item(world)
    no(world)
    assert world.state == "scheduled"
    assert not world.decision.work
    world.due()
    assert world.state == "waiting"
    assert item(world).previous == first.id
    assert item(world).available_ms == world.tick * RESOLUTION_MS


@pytest.mark.req("SEQ-HND-3", "CORE-STM-7")
def test_a_pause_is_held_while_a_worker_is_waited_for():
    world = workers(call("a", retry=retry(2, 0)), call("b"))
    assert world.command("pause").ok
    assert world.state == "waiting"
    no(world)
    assert world.state == "paused"
    assert not world.decision.work  # a held instance hands nothing out
    assert world.command("resume").ok
    assert world.state == "waiting"
    assert world.decision.work[0].attempt == 1


@pytest.mark.req("SEQ-HND-3", "SEQ-BLK-3")
def test_what_is_cancelled_is_called_off_with_the_very_turn():
    world = workers(race([call("a")], [noop("n")]))
    assert world.state == "completed"
    assert [each.handler for each in world.decision.work] == ["a"]
    assert world.decision.called_off == [world.decision.work[0].effect]
    late = report(world, {"x": 1}, key=world.decision.work[0].effect)
    assert late.state == "completed"
    assert world.entries("event.ignored")[0][2]["why"] == "the effect is settled"
    cancelled = workers(call("a"))
    key = item(cancelled).effect
    assert cancelled.command("cancel").ok
    assert (cancelled.state, cancelled.decision.called_off) == ("cancelled", [key])
    assert cancelled.snap().effects == []


@pytest.mark.req("SEQ-HND-3")
def test_the_deadline_of_a_step_calls_its_item_off():
    world = workers(call("a", deadline=1000))
    key = item(world).effect
    world.due()
    assert world.state == "failed"
    assert world.decision.called_off == [key]


@pytest.mark.req("SEQ-HND-3", "CORE-STM-1")
def test_one_branch_at_a_worker_and_one_at_a_call_show_the_busier_state():
    world = workers(parallel([call("a")], [call("b")]), handlers={"b": {}})
    assert world.state == "running"
    world.apply("b", {})
    assert world.state == "waiting"


@pytest.mark.req("SEQ-HND-3")
def test_a_failed_saga_compensates_by_workers_too():
    world = workers(saga((call("do"), call("undo")), (call("more"), None)))
    report(world, {})
    no(world, retryable=False)
    assert item(world).handler == "undo"
    report(world, {})
    assert world.state == "failed"


@pytest.mark.req("SEQ-HND-3")
def test_a_dry_run_hands_nothing_out_and_says_what_would_have_been():
    world = World(call("a", params={"n": 1}), handlers=WORKERS).start({}, dry_run=True)
    assert world.state == "completed"
    assert not world.decision.work
    assert world.outputs == {"a": {"dry_run": True, "handler": "a", "would": {"n": 1}}}


@pytest.mark.req("CORE-EXP-1", "SEQ-HND-3")
def test_explain_names_the_handler_the_queue_and_when_it_can_be_had():
    world = workers(call("a", "charge", queue_name="eu", retry=retry(2, 1000)))

    def told():
        timing = Timing(epoch_ms=0, resolution_ms=RESOLUTION_MS)
        return explain(world.snap(), world.program, timing, world.tick)

    (wait,) = told().waits
    assert wait.text.startswith("step 'a' waits for a worker of handler charge in queue eu since")
    assert told().earliest is None
    no(world)
    (wait,) = told().waits
    report = "the report of a worker of handler charge in queue eu"
    later = "who may have it at 1970-01-01T00:00:01.100Z (attempt 2)"
    assert wait.released_by == (f"{report}, {later}",)
