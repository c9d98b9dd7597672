"""Circuit breakers: a handler that fails again and again is left alone, and nothing is lost."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent import sequence, step
from detent.ports.store import Page
from tests.acceptance.provider import (
    COOLDOWN_MS,
    OR_CHEQUE,
    SECOND,
    Provider,
    at,
    orders,
    states,
)
from tests.acceptance.stage import actions, outputs, proved, refused, rows, state, virtual


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def engine(provider):
    with virtual(handlers=provider.handlers, breaker_threshold=5) as made:
        yield made
        proved(made)


@pytest.mark.req("SEQ-HND-5")
def test_four_failures_close_nothing_and_the_fifth_opens(engine, provider):
    orders(engine, 4)
    shown = engine.breakers.show("pay")
    assert (shown.state, shown.failures, shown.threshold) == ("closed", 4, 5)
    assert (shown.cooldown_ms, shown.opened_ms) == (COOLDOWN_MS, None)
    orders(engine, 1)
    shown = engine.breakers.show("pay")
    assert (shown.state, shown.failures) == ("open", 5)
    assert shown.opened_ms is not None
    assert shown.next_call_ms == shown.opened_ms + COOLDOWN_MS
    assert states(engine, orders(engine, 1)) == ["scheduled"]
    assert provider.count == 5


@pytest.mark.req("SEQ-HND-5")
def test_a_success_between_failures_begins_anew(engine, provider):
    orders(engine, 4)
    provider.down = False
    orders(engine, 1)
    shown = engine.breakers.show("pay")
    assert (shown.state, shown.failures) == ("closed", 0)
    provider.down = True
    orders(engine, 4)
    assert engine.breakers.show("pay").state == "closed"


@pytest.mark.req("SEQ-HND-5")
def test_a_handler_that_never_failed_is_not_known_and_leaves_no_row(tmp_path, provider):
    provider.down = False
    path = tmp_path / "s.db"
    with virtual(path, provider.handlers, breaker_threshold=5) as engine:
        made = orders(engine, 7)
        assert engine.breakers.list() == []
        with refused("breaker.unknown"):
            engine.breakers.show("pay")
        proved(engine)
    assert rows(path, "gate_row") == rows(path, "gate") == []
    assert len(rows(path, "instance")) == len(made)
    assert not [body for (body,) in rows(path, "journal", "body") if b"breaker" in body]


@pytest.mark.req("SEQ-HND-5", "CORE-EXP-1")
def test_an_open_breaker_holds_steps_until_the_instant_that_explain_names(engine, provider):
    orders(engine, 5)
    engine.advance(10 * SECOND)
    (late,) = orders(engine, 1, first=5)
    told = engine.explain(late)
    assert told.state == "scheduled"
    assert "circuit breaker of 'pay'" in told.summary
    assert at(engine, late) == 50
    provider.down = False
    engine.advance(50 * SECOND - dt.timedelta(milliseconds=100))
    assert (state(engine, late), provider.count) == ("scheduled", 5)
    engine.advance(dt.timedelta(milliseconds=100))
    assert (state(engine, late), provider.count) == ("completed", 6)
    assert outputs(engine, late) == [("pay", {"paid": 5})]


@pytest.mark.req("SEQ-HND-5")
def test_one_probe_is_made_among_many_who_wait_and_its_success_frees_all(engine, provider):
    orders(engine, 5)
    waiting = orders(engine, 20, first=5)
    assert [at(engine, each) for each in waiting[:3]] == [60, None, None]
    engine.advance(59 * SECOND)
    assert provider.count == 5
    provider.down = False
    engine.advance(SECOND)
    assert states(engine, waiting) == ["completed"] * 20
    probes = [each for each in waiting if "gate.granted" in actions(engine, each)]
    assert probes == waiting[:1]
    assert [n for _, n in provider.called] == list(range(25))
    assert engine.breakers.show("pay").state == "closed"


@pytest.mark.req("SEQ-HND-5")
def test_a_probe_that_fails_lets_the_others_wait_for_another_cool_down(engine, provider):
    orders(engine, 5)
    waiting = orders(engine, 3, first=5)
    engine.advance(60 * SECOND)
    assert states(engine, waiting) == ["failed", "scheduled", "scheduled"]
    assert provider.count == 6
    assert engine.breakers.show("pay").failures == 6
    assert at(engine, waiting[1]) == 60
    provider.down = False
    engine.advance(60 * SECOND)
    assert states(engine, waiting) == ["failed", "completed", "completed"]


@pytest.mark.req("SEQ-HND-5")
def test_failures_that_are_tried_again_count_like_final_ones(engine, provider):
    provider.trouble = lambda: detent.Failed("down", retryable=True)
    retry = detent.retry(7, initial_backoff=100)
    patient = sequence("patient", step("pay", "pay", retry=retry))
    instance = engine.start(patient)
    engine.advance(10 * SECOND)
    assert (provider.count, state(engine, instance)) == (5, "scheduled")
    assert "circuit breaker of 'pay'" in engine.explain(instance).summary
    provider.down = False
    engine.run_until_idle()
    assert (provider.count, state(engine, instance)) == (6, "completed")
    planned = engine.inspect.audit(instance, action="effect.planned")
    assert [entry.detail["attempt"] for entry in planned] == [1, 2, 3, 4, 5, 6]


@pytest.mark.req("SEQ-HND-5", "CORE-STM-2")
def test_a_fallback_is_performed_with_the_same_params_and_the_record_says_so(engine, provider):
    before = orders(engine, 5, OR_CHEQUE)
    assert states(engine, before) == ["failed"] * 5
    (instance,) = orders(engine, 1, OR_CHEQUE, first=5)
    assert outputs(engine, instance) == [("pay", {"posted": 5})]
    assert provider.called[-1] == ("cheque", 5)
    (planned,) = engine.inspect.audit(instance, action="effect.planned")
    assert planned.detail["handler"] == "cheque"
    (said,) = engine.inspect.audit(instance, action="step.fallback")
    assert (said.detail["handler"], said.detail["instead_of"]) == ("cheque", "pay")
    assert engine.inspect.show(instance).data == {"n": 5, "posted": 5}


@pytest.mark.req("SEQ-HND-5")
def test_a_step_with_a_fallback_is_the_probe_when_its_time_has_come(engine, provider):
    orders(engine, 5, OR_CHEQUE)
    engine.advance(60 * SECOND)
    (probe,) = orders(engine, 1, OR_CHEQUE, first=5)
    assert (provider.called[-1], state(engine, probe)) == (("pay", 5), "failed")
    orders(engine, 1, OR_CHEQUE, first=6)
    assert provider.called[-1] == ("cheque", 6)
    engine.advance(60 * SECOND)
    provider.down = False
    orders(engine, 2, OR_CHEQUE, first=7)
    assert provider.called[-2:] == [("pay", 7), ("pay", 8)]
    assert engine.breakers.show("pay").state == "closed"


@pytest.mark.req("SEQ-HND-5")
def test_a_step_that_is_tried_again_goes_over_to_its_fallback(engine, provider):
    provider.trouble = lambda: detent.Failed("down", retryable=True)
    retry = detent.retry(9, initial_backoff=100)
    instance = engine.start(sequence("s", step("pay", "pay", retry=retry, fallback_handler="log")))
    engine.advance(10 * SECOND)
    assert (provider.count, state(engine, instance)) == (5, "completed")
    assert outputs(engine, instance) == [("pay", {"message": "no message"})]


def test_a_fallback_that_nobody_performs_is_refused_before_anything_starts(engine):
    with refused("handler.unknown"):
        engine.start(sequence("s", step("a", "pay", fallback_handler="nobody")))
    assert not engine.inspect.instances().items


@pytest.mark.req("SEQ-HND-5")
def test_tenants_are_apart(engine, provider):
    orders(engine, 5, tenant="acme")
    assert states(engine, orders(engine, 1, tenant="acme")) == ["scheduled"]
    assert states(engine, orders(engine, 1, tenant="other")) == ["failed"]
    assert provider.count == 6
    shown = [(each.tenant, each.handler, each.failures) for each in engine.breakers.list()]
    assert shown == [("acme", "pay", 5), ("other", "pay", 1)]
    assert [each.tenant for each in engine.breakers.list(tenant="other")] == ["other"]
    with refused("breaker.unknown"):
        engine.breakers.show("pay", tenant="third")


@pytest.mark.req("SEQ-HND-5")
def test_a_restart_keeps_the_breaker_and_who_waits_for_it(tmp_path, provider):
    path = tmp_path / "s.db"
    with virtual(path, provider.handlers, breaker_threshold=5) as engine:
        orders(engine, 5)
        waiting = orders(engine, 3, first=5)
        promised = engine.explain(waiting[0]).earliest_ms
    with virtual(path, provider.handlers, breaker_threshold=5) as engine:
        assert engine.breakers.show("pay").state == "open"
        assert engine.explain(waiting[0]).earliest_ms == promised
        late = orders(engine, 1, first=8)
        assert states(engine, waiting + late) == ["scheduled"] * 4
        provider.down = False
        engine.run_until_idle()
        assert states(engine, waiting + late) == ["completed"] * 4
        assert round(engine.now().timestamp() * 1000) == promised
        proved(engine)


@pytest.mark.req("SEQ-HND-5")
def test_a_reset_lets_everybody_go_on_at_once(engine, provider):
    orders(engine, 5)
    waiting = orders(engine, 3, first=5)
    provider.down = False
    engine.breakers.reset("pay")
    engine.advance(0)
    assert states(engine, waiting) == ["completed"] * 3
    shown = engine.breakers.show("pay")
    assert (shown.state, shown.failures, shown.opened_ms) == ("closed", 0, None)


def test_a_reset_of_what_never_failed_makes_nothing(engine):
    engine.breakers.reset("pay")
    assert engine.breakers.list() == []
    assert not engine.inspect.instances(Page(namespace="detent")).items
    with refused("request.invalid"):
        engine.breakers.reset("")


@pytest.mark.req("SEQ-HND-5")
def test_doubt_is_no_failure(provider):
    @detent.handler("once", on_doubt="once")
    async def once():
        raise ConnectionError("who knows")

    with virtual(handlers=[once], breaker_threshold=5) as engine:
        made = orders(engine, 7, sequence("s", step("a", once)))
        assert states(engine, made) == ["waiting"] * 7
        assert engine.breakers.list() == []
        for each in made:
            engine.resolve(each, engine.explain(each).effects[0].key, "failed")
        assert engine.breakers.list() == []


@pytest.mark.req("SEQ-HND-5")
@pytest.mark.parametrize(
    "failing",
    [
        step("a", "fail"),
        step("a", "assert", params={"condition": False}),
        step("a", "send_signal", params={"instance_id": "nobody", "signal_type": "pause"}),
        step("a", "query_instance", params={"instance_id": "nobody"}),
        step("a", "emit_event", params={"trigger_slug": "none"}),
    ],
    ids=lambda each: str(each["handler"]),
)
def test_what_the_engine_does_itself_has_no_breaker(engine, failing):
    made = orders(engine, 6, sequence("s", failing))
    assert states(engine, made) == ["failed"] * 6
    assert engine.breakers.list() == []
