"""wait_for_input: the gate before the handler, its answers, its time-out and its escalation."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import call, human, loop, noop, parallel, put, retry, wait
from tests.unit.kernel.driver import World, run

CHOICES = [{"label": "Ship it", "value": "ship"}, {"label": "Hold", "value": "hold"}]


def answer(world, value, block="h", **more):
    return world.signal(f"custom:human_input:{block}", {"value": value, **more}, id="s")


@pytest.mark.req("SEQ-BLK-1", "CORE-STM-1")
def test_the_gate_comes_before_the_handler_and_an_answer_lets_it_run():
    world = run(human("h", handler="act"), put("p", "{{data.h}}"))
    assert (world.state, world.decision.due) == ("waiting", None)
    assert not world.history
    answer(world, "yes")
    assert world.has("act")
    assert world.outputs["h"] == {"value": "yes", "_human_gate": True}
    world.apply("act", {"done": 1})
    assert world.outputs["h"] == {"done": 1}
    assert world.outputs["p"] == "yes"


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("value", ["yes", "no"])
def test_without_choices_the_answers_are_yes_and_no(value):
    world = run(human("h"))
    answer(world, value)
    assert world.data == {"h": value}
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-1")
def test_named_choices_are_the_only_answers_and_store_as_names_the_place():
    world = run(human("h", choices=CHOICES, store_as="verdict"))
    answer(world, "yes")
    assert world.state == "waiting"
    answer(world, "hold")
    assert world.data == {"verdict": "hold"}


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"approved": True},
        {"value": "maybe"},
        {"value": None},
        {"value": ["yes"]},
        "yes",
        {"value": {"value": "yes"}},
        {"value": True},
    ],
)
def test_what_is_no_answer_is_consumed_and_ignored(payload):
    world = run(human("h"))
    decision = world.signal("custom:human_input:h", payload, id="s")
    assert decision.verdicts[0].ok
    assert world.state == "waiting"
    assert world.snap().signals == []
    assert world.entries("event.ignored")[-1][2]["why"] == "not one of the choices"
    answer(world, "yes")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize(("allowed", "kept"), [(True, True), (False, False)])
def test_a_comment_is_kept_where_it_is_allowed(allowed, kept):
    world = run(human("h", handler="act", allow_comment=allowed))
    answer(world, "yes", comment="fine")
    assert ("comment" in world.outputs["h"]) is kept


@pytest.mark.req("SEQ-SIG-2")
def test_an_answer_before_the_question_is_kept_and_a_wrong_one_is_dropped_then():
    world = run(wait(signal="x"), human("h"), noop("after"))
    answer(world, "perhaps")
    answer(world, "no")
    answer(world, "yes")
    world.signal("custom:x")
    assert world.state == "completed"
    assert world.data == {"h": "no"}


@pytest.mark.req("SEQ-SIG-2")
def test_a_wrong_early_answer_alone_leaves_the_question_open():
    world = run(wait(signal="x"), human("h"))
    answer(world, "perhaps")
    world.signal("custom:x")
    assert world.state == "waiting"
    assert world.snap().signals == []


@pytest.mark.req("SEQ-BLK-1")
def test_each_question_takes_its_own_answer():
    world = run(parallel([human("h1")], [human("h2")]))
    answer(world, "no", "h2")
    answer(world, "yes", "h1")
    assert world.data == {"h2": "no", "h1": "yes"}


@pytest.mark.req("SEQ-BLK-1")
def test_a_question_in_a_loop_is_asked_anew_each_round():
    world = run(loop(human("h"), max_iterations=2))
    answer(world, "yes")
    assert world.state == "waiting"
    answer(world, "no")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-1", "CORE-CLK-3")
def test_nobody_answering_in_time_fails_the_step():
    world = run(human("h", handler="act", timeout=5000, retry=retry(3)))
    world.after(4900)
    assert world.state == "waiting"
    world.after(100)
    assert (world.state, world.error["kind"]) == ("failed", "timeout")
    assert not world.history


@pytest.mark.req("SEQ-BLK-1")
def test_an_escalation_really_runs_instead_of_the_handler_and_the_flow_goes_on():
    world = run(
        human("h", handler="act", prompt="Ship?", timeout=5000, escalation_handler="boss"),
        noop("after"),
    )
    world.after(5000)
    request = world.request("boss")
    assert (request["block_id"], request["prompt"], request["choices"]) == (
        "h",
        "Ship?",
        ["yes", "no"],
    )
    world.apply("boss", {"told": "her"})
    assert world.state == "completed"
    assert world.outputs["h"] == {
        "_escalated": True,
        "_escalation_handler": "boss",
        "_timeout_seconds": 5,
        "result": {"told": "her"},
    }
    assert [order.handler for order in world.history] == ["boss"]


@pytest.mark.req("SEQ-BLK-1")
def test_the_output_of_an_escalation_is_not_held_against_the_schema_of_the_handler():
    schema = {"type": "object", "required": ["n"]}
    world = run(
        human("h", handler="act", timeout=100, escalation_handler="boss", output_schema=schema)
    )
    world.after(100)
    world.apply("boss")
    assert world.state == "completed"


@pytest.mark.req("CORE-STM-2")
@pytest.mark.parametrize("retryable", [True, False])
def test_an_escalation_that_fails_fails_the_step_and_never_runs_its_handler(retryable):
    world = run(human("h", handler="act", timeout=100, escalation_handler="boss", retry=retry(5)))
    world.after(100)
    world.fail("boss", "on holiday", retryable=retryable)
    assert (world.state, world.error["message"]) == ("failed", "on holiday")
    world.after(999_999)
    assert [order.handler for order in world.history] == ["boss"]


@pytest.mark.req("SEQ-BLK-1")
def test_an_answer_after_the_time_out_comes_too_late():
    world = run(human("h", handler="act", timeout=100, escalation_handler="boss"), wait(signal="x"))
    world.after(100)
    answer(world, "yes")
    assert not world.has("act")
    world.apply("boss")
    assert world.outputs["h"]["_escalated"] is True


@pytest.mark.req("SEQ-BLK-1")
def test_a_dry_run_that_approves_by_itself_takes_the_first_choice_at_once():
    world = World(human("h", choices=CHOICES)).start(dry_run=True, auto_approve=True)
    assert world.state == "completed"
    assert world.data == {"h": "ship"}
    world = World(human("h")).start(dry_run=True)
    assert world.state == "waiting"
    world = World(human("h")).start(auto_approve=True)
    assert world.state == "waiting", "only a dry run approves by itself"


@pytest.mark.req("SEQ-BLK-1")
def test_a_retry_of_the_handler_does_not_ask_again():
    world = run(human("h", handler="act", retry=retry(2)))
    answer(world, "yes")
    world.fail("act")
    world.due()
    assert world.order("act").attempt == 2


@pytest.mark.req("SEQ-BLK-1", "CORE-EFF-2")
def test_a_persons_gate_does_not_change_the_attempt_of_the_call():
    world = run(human("h", handler="act"), call("b"))
    answer(world, "yes")
    assert world.order("act").attempt == 1


@pytest.mark.req("SEQ-HND-1")
def test_human_review_tells_what_is_to_be_reviewed():
    step = human("h", handler="human_review", choices=CHOICES, allow_comment=True)
    step["params"] = {"reviewer": "ada", "instructions": "look", "review_data": {"n": 1}}
    world = run(step)
    answer(world, "ship")
    assert world.outputs["h"] == {
        "type": "human_review",
        "status": "pending",
        "reviewer": "ada",
        "instructions": "look",
        "review_data": {"n": 1},
        "instance_id": "i1",
        "block_id": "h",
        "choices": CHOICES,
        "allow_comment": True,
    }


@pytest.mark.req("SEQ-HND-1")
def test_human_review_has_defaults():
    output = run(call("r", "human_review")).outputs["r"]
    assert (output["reviewer"], output["instructions"], output["review_data"]) == (
        "unassigned",
        None,
        None,
    )
    assert [choice["value"] for choice in output["choices"]] == ["yes", "no"]
    assert output["allow_comment"] is False


@pytest.mark.req("SEQ-BLK-1")
def test_a_built_in_escalation_is_made_at_once_and_one_that_fails_fails_the_step():
    world = run(human("h", handler="act", timeout=100, escalation_handler="noop"), noop("after"))
    world.after(100)
    assert world.state == "completed"
    assert (world.outputs["h"]["_escalated"], world.outputs["h"]["result"]) == (True, {})
    assert not world.history
    world = run(human("h", handler="act", timeout=100, escalation_handler="fail"))
    world.after(100)
    assert (world.state, world.error["message"]) == ("failed", "forced failure")


@pytest.mark.req("SEQ-BLK-1")
def test_nobody_waits_for_a_worker_to_whom_a_question_was_escalated():
    handlers = {"*": {"worker": True}, "act": {}}
    asking = human("h", handler="act", timeout=100, escalation_handler="boss")
    world = run(asking, noop("after"), handlers=handlers)
    world.after(100)
    assert world.state == "completed"
    assert world.outputs["h"]["_escalated"] is True
    (effect,) = world.snap().effects
    assert (effect.handler, effect.worker, effect.kind) == ("boss", True, "escalation")
    held = World(asking, handlers=handlers).start(dry_run=True)
    held.after(100)
    assert not any(each.worker for each in held.snap().effects)
