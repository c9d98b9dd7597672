"""Steps that ask a person first (SEQ-BLK-1)."""

from __future__ import annotations

import pytest

import detent
from detent import for_each, parallel, router, sequence, step, try_catch, wait
from detent.testing import Calls
from tests.acceptance.stage import (
    DAY_MS,
    finished,
    outputs,
    refused,
    state,
    virtual,
)


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def flat(*blocks):
    return sequence("flat", *blocks)


def deep(*blocks):
    """The same blocks three composites down."""
    inner = parallel("p", [wait("aside", "1s")], list(blocks))
    return sequence(
        "deep", try_catch("t", do=router("r", default=inner), catch=[step("again", "fail")])
    )


def nodes_of(shown):
    """The path of the step `s`, in either place."""
    return "s" if shown.summary.name == "flat" else "t/r/p/s"


anywhere = pytest.mark.parametrize("place", [flat, deep])


ASK = {
    "prompt": "Ship it?",
    "choices": [{"label": "Ship", "value": "ship"}, {"label": "Hold", "value": "hold"}],
    "store_as": "answer",
}


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_person_is_asked_before_the_handler_runs_and_the_answer_is_kept(engine, calls, place):
    act = calls.handler("act", {"done": 1})
    engine.register(act)
    instance = engine.start(place(step("s", act, wait_for_input=ASK), step("after", "noop")))
    engine.advance(DAY_MS)
    assert state(engine, instance) == "waiting"
    assert calls.made == ()
    (question,) = engine.inspect.approvals()
    assert (question.prompt, question.block) == ("Ship it?", "s")
    assert question.choices == (("Ship", "ship"), ("Hold", "hold"))
    engine.signal(instance, "human_input:s", {"value": "ship"})
    assert engine.wait_for(instance) == "completed"
    shown = engine.inspect.show(instance)
    assert shown.data["answer"] == "ship"
    assert calls.count("act") == 1
    first = next(output for block, output in outputs(engine, instance) if block == "s")
    assert first == {"value": "ship", "_human_gate": True}
    assert engine.inspect.approvals() == []


@pytest.mark.req("SEQ-BLK-1")
@anywhere
@pytest.mark.parametrize("payload", [None, {}, {"value": "sell"}, {"approved": True}, "ship", [1]])
def test_an_answer_that_is_none_of_the_choices_is_ignored_and_the_question_stays(
    engine, place, payload
):
    instance = engine.start(place(step("s", "noop", wait_for_input=ASK)))
    engine.advance(DAY_MS)
    engine.signal(instance, "human_input:s", payload)
    engine.signal(instance, "human_input:other", {"value": "ship"})
    assert state(engine, instance) == "waiting"
    assert len(engine.inspect.approvals()) == 1
    engine.signal(instance, "human_input:s", {"value": "hold"})
    assert engine.wait_for(instance) == "completed"


@pytest.mark.req("SEQ-BLK-1")
def test_without_choices_it_is_yes_or_no(engine):
    for value, accepted in (("yes", True), ("no", True), ("maybe", False)):
        definition = sequence(f"s-{value}", step("s", "noop", wait_for_input={"prompt": "?"}))
        instance = engine.start(definition)
        engine.signal(instance, "human_input:s", {"value": value})
        assert (state(engine, instance) == "completed") == accepted
        if accepted:
            assert engine.inspect.show(instance).data == {"s": value}


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_without_an_answer_in_time_the_step_fails_or_is_escalated(engine, calls, place):
    escalate = calls.handler("escalate", {"told": "boss"})
    act = calls.handler("act", {})
    engine.register([escalate, act])
    late = engine.start(place(step("s", act, wait_for_input={"timeout": "1h"})))
    assert engine.wait_for(late) == "failed"
    ask = {"timeout": "1h", "escalation_handler": escalate}
    wire = detent.definition.to_wire(place(step("s", act, wait_for_input=ask)))
    told = finished(engine, sequence("escalated", *wire["blocks"]))
    assert told.summary.state == "completed"
    assert calls.count("escalate") == 1
    assert calls.count("act") == 0
    assert told.outputs["s"]["_escalated"] is True
    assert told.outputs["s"]["_escalation_handler"] == "escalate"
    assert told.outputs["s"]["_timeout_seconds"] == 3600


@pytest.mark.req("SEQ-BLK-1")
def test_a_dry_run_calls_nothing_and_may_answer_for_the_person(engine, calls):
    act = calls.handler("act", {"real": 1})
    engine.register(act)
    definition = sequence(
        "s", step("s", act, params={"n": 1}, wait_for_input=ASK), step("after", "noop")
    )
    shown = finished(engine, definition, dry_run=True, auto_approve=True)
    assert shown.summary.state == "completed"
    assert shown.data["answer"] == "ship"
    assert shown.outputs["s"]["dry_run"] is True
    assert shown.outputs["s"]["would"] == {"n": 1}
    assert calls.made == ()


@pytest.mark.req("SEQ-BLK-1")
def test_steps_in_a_loop_over_people_ask_each_time(engine):
    definition = sequence(
        "s",
        for_each(
            "e", "people", step("ask", "noop", wait_for_input={"prompt": "?", "store_as": "last"})
        ),
    )
    instance = engine.start(definition, {"people": ["Ada", "Bob"]})
    for answer in ("yes", "no"):
        assert state(engine, instance) == "waiting"
        engine.signal(instance, "human_input:ask", {"value": answer})
    assert state(engine, instance) == "completed"
    assert engine.inspect.show(instance).data["last"] == "no"


@pytest.mark.req("SEQ-BLK-1")
def test_a_handler_beside_a_step_that_nobody_has_is_refused_at_the_start(engine):
    asking = {"prompt": "?", "timeout": 1000, "escalation_handler": "boss"}
    breach = {"handler": "alarm"}
    for options in ({"wait_for_input": asking}, {"deadline": 1000, "on_deadline_breach": breach}):
        with refused("handler.unknown"):
            engine.start(flat(step("a", "noop", **options)))
    known = {**asking, "escalation_handler": "noop"}
    made = engine.start(flat(step("a", "noop", wait_for_input=known)))
    engine.run_until_idle()
    assert state(engine, made) == "completed"
