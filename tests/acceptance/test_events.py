"""Events with correlation: before and after the wait, told twice, joined, and given back."""

from __future__ import annotations

import pytest

import detent
from detent.kernel.listening import correlator_id
from detent.model import limits
from detent.ports.store import Page
from detent.service import events as service
from tests.acceptance.stage import DAY_MS, actions, refused, rows, state, virtual

KEY = "order-7"
MINUTE_MS = 60_000


def waiting(*names, block="w", timeout=None, **more):
    """A step that waits for events of `data.order`."""
    params = {"events": list(names), "correlation_key": "{{ data.order }}", **more}
    human = None if timeout is None else {"timeout": timeout}
    return detent.step(block, "wait_for_event", params=params, wait_for_input=human)


def listener(*names, **more):
    """A sequence of one such step, named after what it waits for."""
    label = "-".join([*names, *(f"{name}-{value}" for name, value in more.items())])
    return detent.sequence(label, waiting(*names, **more))


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine
        prove(engine)


def prove(engine):
    """The chain is whole, and every record gives the same again, the engine's own too."""
    assert engine.inspect.verify().valid
    for page in (Page(limit=1_000), Page(namespace="detent", limit=1_000)):
        for row in engine.inspect.instances(page).items:
            replayed = engine.replay(row.id)
            assert replayed.identical, replayed


def started(engine, definition, order=KEY, **options):
    instance = engine.start(definition, {"order": order}, **options)
    engine.advance(0)
    return instance


def output(engine, instance, block="w"):
    return engine.inspect.show(instance).outputs[block]


def sent(engine, name, producer, payload=None, key=KEY, **options):
    outcome = engine.events.send(name, key, producer, payload, **options)
    engine.advance(0)
    return outcome


# matching ----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_resumes_the_step_that_waits_for_it(engine):
    instance = started(engine, listener("paid"))
    assert state(engine, instance) == "waiting"
    assert "the events 'paid' of 'order-7'" in engine.explain(instance).summary
    told = sent(engine, "paid", "p1", {"amount": 990})
    assert state(engine, instance) == "completed"
    event = {"event_name": "paid", "producer_event_id": "p1", "payload": {"amount": 990}}
    assert output(engine, instance) == {
        "wait_id": told.matched_wait,
        "events": {"paid": event},
        "all": [event],
        "waiting_for": ["paid"],
        "correlation_key": KEY,
        "satisfied": True,
        "matched": 1,
    }
    assert (told.duplicate, told.satisfied) == (False, True)
    (seen,) = engine.events.list()
    assert (seen.status, seen.consumed_by) == ("consumed", told.matched_wait)
    assert (seen.instance_id, seen.id) == (instance, told.event_id)


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_that_came_before_the_wait_is_kept_for_it(engine):
    told = sent(engine, "paid", "p1", {"amount": 990})
    assert (told.matched_wait, told.satisfied) == (None, False)
    assert [each.status for each in engine.events.list()] == ["pending"]
    instance = started(engine, listener("paid"))
    assert state(engine, instance) == "completed"
    assert output(engine, instance)["all"][0]["payload"] == {"amount": 990}
    assert engine.events.show(told.event_id).status == "consumed"


@pytest.mark.req("SEQ-WHK-2")
@pytest.mark.parametrize(
    ("join", "names", "told", "satisfying"),
    [
        ({"join": "all"}, ("a", "b"), ["a", "a", "b"], 2),
        ({}, ("a", "b"), ["b", "a"], 1),
        ({"join": "any"}, ("a", "b"), ["x", "b"], 1),
        ({"join": "count", "count": 3}, ("a", "b"), ["a", "x", "a", "b"], 3),
    ],
)
def test_a_join_says_which_events_are_enough(engine, join, names, told, satisfying):
    instance = started(engine, listener(*names, **join))
    for index, name in enumerate(told):
        outcome = sent(engine, name, f"p{index}")
        assert outcome.satisfied == (index == satisfying), (name, outcome)
        assert state(engine, instance) == ("completed" if index == satisfying else "waiting")
    wanted = 1 if join.get("join") == "any" else join.get("count", 2)
    assert output(engine, instance)["matched"] == wanted


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_told_twice_counts_once_whatever_its_key(engine):
    instance = started(engine, listener("paid", join="count", count=2))
    first = sent(engine, "paid", "p1")
    again = sent(engine, "paid", "p1", {"other": True})
    elsewhere = sent(engine, "paid", "p1", key="another")
    assert (first.duplicate, again.duplicate, elsewhere.duplicate) == (False, True, True)
    assert {first.event_id} == {again.event_id, elsewhere.event_id}
    assert state(engine, instance) == "waiting"
    assert not sent(engine, "refunded", "p1").duplicate
    assert sent(engine, "paid", "p2").satisfied
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_told_again_after_the_window_of_ids_is_still_known(engine):
    first = sent(engine, "paid", "p1")
    engine.advance(10 * DAY_MS)
    parts = engine._parts
    assert parts.write(lambda store: store.forget(parts.moment().tick, 1_000))
    again = sent(engine, "paid", "p1")
    assert (again.duplicate, again.event_id) == (True, first.event_id)


@pytest.mark.req("SEQ-WHK-2")
def test_two_steps_that_wait_get_an_event_each_in_the_order_in_which_they_came(engine):
    first = started(engine, listener("paid"))
    second = started(engine, listener("paid"))
    sent(engine, "paid", "p1")
    assert (state(engine, first), state(engine, second)) == ("completed", "waiting")
    sent(engine, "paid", "p2")
    assert output(engine, second)["all"][0]["producer_event_id"] == "p2"


@pytest.mark.req("SEQ-WHK-2")
def test_tenants_never_see_each_others_events(engine):
    instance = started(engine, listener("paid"), tenant="acme")
    other = sent(engine, "paid", "p1", tenant="other")
    assert other.matched_wait is None
    assert state(engine, instance) == "waiting"
    assert engine.events.list(tenant="acme") == []
    with refused("event.not_found"):
        engine.events.show(other.event_id, tenant="acme")
    own = sent(engine, "paid", "p1", tenant="acme")
    assert own.satisfied
    assert own.event_id != other.event_id


# leaving -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-2")
def test_a_cancelled_wait_gives_its_events_back_to_the_next(engine):
    both = started(engine, listener("a", "b"))
    told = sent(engine, "a", "p1")
    assert engine.events.show(told.event_id).instance_id == both
    engine.cancel(both)
    engine.run_until_idle()
    assert engine.events.show(told.event_id).status == "pending"
    next_one = started(engine, listener("a"))
    assert state(engine, next_one) == "completed"
    assert output(engine, next_one)["all"][0]["producer_event_id"] == "p1"


@pytest.mark.req("SEQ-WHK-2")
def test_events_freed_by_one_wait_go_to_another_that_stands_already(engine):
    both = started(engine, listener("a", "b"))
    single = started(engine, listener("a"))
    sent(engine, "a", "p1")
    assert state(engine, single) == "waiting"
    engine.cancel(both)
    engine.run_until_idle()
    assert state(engine, single) == "completed"


@pytest.mark.req("SEQ-WHK-2")
def test_a_wait_satisfied_in_the_moment_it_is_cancelled_gives_its_events_back(engine):
    """The correlator answers and the instance ends in one turn: neither knows of the other."""
    instance = started(engine, listener("a"))
    parts = engine._parts
    event = service.read_event(
        {"event_name": "a", "producer_event_id": "p1", "correlation_key": KEY}, "default"
    )
    parts.submit(service.event_submission(event, "call"))
    engine.cancel(instance)
    engine.run_until_idle()
    assert state(engine, instance) == "cancelled"
    assert engine.events.show(event.id).status == "pending"
    correlator = correlator_id("default", KEY)
    assert actions(engine, correlator, "wait.matched", "wait.left") == ["wait.matched", "wait.left"]


@pytest.mark.req("SEQ-WHK-2")
def test_a_wait_whose_time_is_over_fails_and_gives_its_events_back(engine):
    instance = started(engine, listener("a", "b", timeout=MINUTE_MS))
    told = sent(engine, "a", "p1")
    engine.advance(MINUTE_MS)
    view = engine.inspect.show(instance)
    assert view.summary.state == "failed"
    assert view.error["message"] == "the events it waits for did not come in time"
    assert engine.events.show(told.event_id).status == "pending"
    engine.retry(instance)
    engine.advance(0)
    assert sent(engine, "b", "p2").satisfied
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-WHK-2")
def test_a_wait_whose_time_is_over_can_escalate_instead():
    asked = []

    @detent.handler
    async def call_somebody(block_id: str, choices: list, **rest):
        asked.append((block_id, choices))
        return {"called": True}

    params = {"events": "paid", "correlation_key": KEY}
    human = {"timeout": MINUTE_MS, "escalation_handler": "call_somebody"}
    definition = detent.sequence(
        "late", detent.step("w", "wait_for_event", params=params, wait_for_input=human)
    )
    with virtual(handlers=[call_somebody]) as engine:
        instance = started(engine, definition)
        engine.advance(MINUTE_MS)
        assert state(engine, instance) == "completed"
        assert asked == [("w", [])]
        assert output(engine, instance)["_escalated"]
        assert sent(engine, "paid", "p1").matched_wait is None
        prove(engine)


@pytest.mark.req("SEQ-WHK-2", "SEQ-BLK-2")
def test_the_loser_of_a_race_waits_no_longer(engine):
    race = detent.race("r", [waiting("a", block="left")], [waiting("b", block="right")])
    instance = started(engine, detent.sequence("race", race))
    sent(engine, "a", "p1")
    assert state(engine, instance) == "completed"
    assert sent(engine, "b", "p2").matched_wait is None


@pytest.mark.req("SEQ-WHK-2")
def test_a_paused_instance_takes_its_events_and_goes_on_when_it_is_resumed(engine):
    two = detent.sequence("two", waiting("a"), detent.step("after", "noop"))
    instance = started(engine, two)
    engine.pause(instance)
    sent(engine, "a", "p1")
    assert (state(engine, instance), output(engine, instance)["matched"]) == ("paused", 1)
    engine.resume(instance)
    engine.run_until_idle()
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-WHK-2", "CORE-RPL-2")
def test_a_fork_waits_for_events_of_its_own(engine):
    instance = started(engine, listener("a"))
    fork = engine.fork(instance, seq=1)
    engine.run_until_idle()
    sent(engine, "a", "p1")
    assert (state(engine, instance), state(engine, fork)) == ("completed", "waiting")
    sent(engine, "a", "p2")
    assert output(engine, fork)["all"][0]["producer_event_id"] == "p2"


@pytest.mark.req("SEQ-WHK-2", "CORE-RPL-2")
def test_another_definition_is_told_the_same_events(engine):
    instance = started(engine, listener("a"))
    engine.advance(MINUTE_MS)
    sent(engine, "a", "p1", {"n": 1})
    pause = detent.wait("first", duration=100)
    longer = detent.sequence("longer", pause, waiting("a"))
    engine.deploy(longer)
    told = engine.inspect.what_if(instance, detent.Changes(definition=longer.hash))
    assert told.state == "completed"
    assert told.outputs["w"]["all"][0]["payload"] == {"n": 1}


@pytest.mark.req("SEQ-WHK-2")
def test_a_dry_run_takes_no_event_away(engine):
    sent(engine, "a", "p1")
    rehearsal = started(engine, listener("a"), dry_run=True)
    assert state(engine, rehearsal) == "completed"
    assert output(engine, rehearsal)["dry_run"]
    assert [each.status for each in engine.events.list()] == ["pending"]


# time, crashes, limits ---------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_that_nobody_wants_expires_and_is_forgotten(engine):
    told = sent(engine, "a", "p1")
    engine.advance(limits.EVENT_TTL_MS - 100)
    assert engine.events.show(told.event_id).status == "pending"
    engine.advance(100)
    assert [each.status for each in engine.events.list("expired")] == ["expired"]
    instance = started(engine, listener("a"))
    assert state(engine, instance) == "waiting"
    engine.advance(limits.EVENT_REMEMBERED_MS - limits.EVENT_TTL_MS)
    with refused("event.not_found"):
        engine.events.show(told.event_id)
    assert engine.events.list() == []


@pytest.mark.req("SEQ-WHK-2", "CORE-REC-1")
def test_events_and_waits_survive_a_restart(tmp_path):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        both = engine.start(listener("a", "b"), {"order": KEY})
        engine.run_until_idle()
        told = sent(engine, "a", "p1")
    with virtual(path) as engine:
        assert engine.events.show(told.event_id).instance_id == both
        assert sent(engine, "a", "p1").duplicate
        assert sent(engine, "b", "p2").satisfied
        assert state(engine, both) == "completed"
        prove(engine)


@pytest.mark.req("SEQ-WHK-2")
def test_a_batch_is_told_in_order_and_all_of_it_is_checked_first(tmp_path):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        instance = started(engine, listener("a", "b"))
        good = [
            {"event_name": name, "producer_event_id": "p1", "correlation_key": KEY}
            for name in ("a", "b", "a")
        ]
        before = rows(path, "journal", "count(*)")
        for wrong in (
            [],
            good * 34,
            [*good, {**good[0], "event_name": " "}],
            [*good, {**good[0], "producer_event_id": None}],
            [*good, {**good[0], "payload": "x" * limits.EVENT_BYTES}],
            ["a"],
        ):
            with pytest.raises(detent.DetentError) as caught:
                engine.events.send_many(wrong)
            assert caught.value.code in ("event.invalid", "payload.too_large")
        with refused("request.forbidden"):
            engine.events.send_many([*good, {**good[0], "tenant_id": "other"}])
        assert rows(path, "journal", "count(*)") == before
        told = engine.events.send_many(good)
        engine.run_until_idle()
        assert [(each.duplicate, each.satisfied) for each in told] == [
            (False, False),
            (False, True),
            (True, False),
        ]
        assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-WHK-2")
def test_a_list_shows_no_secrets(engine):
    sent(engine, "a", "p1", {"amount": 1, "api_key": "k", "note": "Bearer abc"})
    (seen,) = engine.events.list("pending")
    assert seen.payload == {"amount": 1, "api_key": "[REDACTED]", "note": "[REDACTED]"}


@pytest.mark.req("SEQ-WHK-2")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"events": []},
        {"events": "a"},
        {"events": "a", "correlation_key": " "},
        {"events": [1], "correlation_key": "k"},
        {"events": ["a"] * 33, "correlation_key": "k"},
        {"events": "a", "correlation_key": "k", "join": "some"},
        {"events": "a", "correlation_key": "k", "join": "count"},
        {"events": "a", "correlation_key": "k", "join": "count", "count": 0},
    ],
)
def test_a_wait_that_makes_no_sense_fails_and_registers_nothing(engine, params):
    definition = detent.sequence("wrong", detent.step("w", "wait_for_event", params=params))
    instance = started(engine, definition)
    view = engine.inspect.show(instance)
    assert (view.summary.state, view.error["code"]) == ("failed", "request.invalid")
    assert engine.inspect.instances(Page(namespace="detent")).items == ()
