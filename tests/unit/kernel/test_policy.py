"""Policies: judged before every step and every retry, recorded, and closed when they fail."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import call, human, loop, noop, parallel, put, retry
from tests.unit.kernel.driver import World, run

USER = [{"handler": "guard"}]
ALLOWED = {"allowed": True}


def budget(most, action=None):
    params = {"max_effects": most} | ({"action": action} if action else {})
    return {"kind": "effect_budget", "params": params}


def refuse(action, **more):
    return {"allowed": False, "action": action, "reason": "because", **more}


@pytest.mark.req("CORE-POL-1", "CORE-STM-2")
def test_a_budget_pauses_by_default_and_only_a_manual_resume_releases_that_step():
    world = run(call("a"), call("b"), call("c"), policies=[budget(1)])
    world.apply("a")
    assert world.state == "paused"
    assert "budget" in world.snap().paused_reason
    assert not world.orders
    world.after(999_000)
    world.signal("custom:anything")
    assert world.state == "paused"
    world.signal("resume")
    assert world.nodes("policy.released") == ["b"]
    world.apply("b")
    assert world.state == "paused", "the next step is judged for itself"


@pytest.mark.req("CORE-POL-1", "CORE-STM-2")
def test_a_budget_may_fail_the_step():
    world = run(call("a"), call("b"), policies=[budget(1, "fail")])
    world.apply("a")
    assert (world.state, world.error["kind"]) == ("failed", "authorization")


@pytest.mark.req("CORE-POL-1", "CORE-STM-2")
def test_a_budget_may_pass_steps_over_with_a_log():
    world = run(call("a"), call("b"), noop("after"), policies=[budget(1, "skip_with_log")])
    world.apply("a")
    assert world.state == "completed"
    assert world.executed == ["a", "after"]
    assert world.entries("step.skipped")[0][2]["why"] == "policy"


@pytest.mark.req("CORE-POL-1")
def test_a_budget_is_no_concern_of_steps_that_only_compute():
    world = run(call("a"), put("b", 1), policies=[budget(1, "fail")])
    world.apply("a")
    assert world.state == "completed"


@pytest.mark.req("CORE-POL-1")
def test_every_step_of_any_kind_is_judged_by_data_policies_and_recorded():
    world = run(noop("n"), call("a"), policies=[budget(5)])
    assert world.nodes("policy.evaluated") == ["n", "a"]
    assert world.entries("policy.evaluated")[0][2] == {"policy": "effect_budget", "allowed": True}


@pytest.mark.req("CORE-POL-1")
def test_users_policies_apply_to_acting_steps_only():
    world = run(noop("n"), call("a"), policies=USER)
    assert [order.handler for order in world.history] == ["guard"]
    assert world.executed == ["n"]


@pytest.mark.req("CORE-POL-1", "CORE-POL-2")
def test_a_users_policy_is_asked_before_the_call_with_the_steps_snapshot():
    world = World(call("a", params={"x": 1}), policies=USER).start({"d": 1}, config={"c": 2})
    request = world.request("guard")
    assert (request["step"], request["handler"], request["attempt"]) == ("a", "a", 1)
    assert (request["data"], request["config"], request["params"]) == ({"d": 1}, {"c": 2}, {"x": 1})
    world.apply("guard", ALLOWED)
    assert world.has("a")
    assert world.entries("policy.evaluated")[0][2] == {"policy": "guard", "allowed": True}
    assert world.data == {"d": 1}, "a verdict is no result"


@pytest.mark.req("CORE-POL-1")
def test_all_policies_must_allow_in_their_order():
    world = run(call("a"), policies=[{"handler": "one"}, budget(9), {"handler": "two"}])
    world.apply("one", ALLOWED)
    assert not world.has("a")
    world.apply("two", ALLOWED)
    assert world.has("a")
    assert [e[2]["policy"] for e in world.entries("policy.evaluated")] == [
        "one",
        "effect_budget",
        "two",
    ]


@pytest.mark.req("CORE-POL-1")
def test_the_first_refusal_decides_and_later_policies_are_not_asked():
    world = run(call("a"), policies=[{"handler": "one"}, {"handler": "two"}])
    world.apply("one", refuse("fail"))
    assert (world.state, world.error["message"]) == ("failed", "because")
    assert len(world.history) == 1


@pytest.mark.req("CORE-POL-1", "CORE-STM-2")
def test_a_users_policy_may_pause_until_a_person_resumes():
    world = run(call("a"), policies=USER)
    world.apply("guard", refuse("pause"))
    assert (world.state, world.snap().paused_reason) == ("paused", "policy: because")
    world.signal("resume")
    assert world.has("a")


@pytest.mark.req("CORE-POL-1")
def test_a_users_policy_may_skip_with_a_log():
    world = run(call("a"), noop("after"), policies=USER)
    world.apply("guard", refuse("skip_with_log"))
    assert world.executed == ["after"]
    assert world.entries("step.skipped")[0][2] == {"why": "policy", "reason": "because"}


@pytest.mark.req("CORE-POL-1", "CORE-STM-1")
@pytest.mark.parametrize(
    ("verdict", "wait"),
    [({"for_ms": 1000}, 10), ({"until_ms": 2000}, 19), ({"for_ms": 0}, 1), ({"until_ms": 5}, 1)],
)
def test_a_users_policy_may_defer_and_everything_is_judged_anew_then(verdict, wait):
    world = run(call("a"), policies=[budget(1), {"handler": "guard"}])
    world.apply("guard", refuse("defer", **verdict))
    assert (world.state, world.decision.due) == ("scheduled", world.tick + wait)
    world.due()
    assert [e[2]["policy"] for e in world.entries("policy.evaluated")] == [
        "effect_budget",
        "guard",
        "effect_budget",
    ]
    assert not world.has("a")
    world.apply("guard", ALLOWED)
    assert world.has("a")


@pytest.mark.req("CORE-POL-2")
@pytest.mark.parametrize(
    "garbage",
    [
        None,
        {},
        [],
        "yes",
        1,
        True,
        {"allowed": "yes"},
        {"allowed": 1},
        {"allowed": None},
        {"allowed": False, "action": "explode"},
        {"allowed": False, "action": "defer"},
        {"allowed": False, "action": "defer", "for_ms": -1},
        {"allowed": False, "action": "defer", "until_ms": "soon"},
        {"allowed": False},
    ],
)
def test_whatever_is_no_clear_verdict_fails_closed(garbage):
    world = run(call("a"), policies=USER)
    world.apply("guard", garbage)
    assert (world.state, world.error["kind"]) == ("failed", "authorization")
    assert not world.has("a")


@pytest.mark.req("CORE-POL-2")
@pytest.mark.parametrize("how", ["permanent", "retryable", "timeout", "crashes", "deadline"])
def test_a_policy_that_cannot_be_asked_fails_closed(how):
    world = run(call("a", retry=retry(5)), policies=USER)
    match how:
        case "permanent":
            world.fail("guard", retryable=False)
        case "retryable":
            world.fail("guard", retryable=True)
        case "timeout":
            world.doubt("guard", "timed out")
        case "deadline":
            world.due()
        case _:
            for _ in range(6):
                world.doubt("guard", "died", crashed=True)
    assert (world.state, world.error["kind"]) == ("failed", "authorization")
    assert all(order.handler == "guard" for order in world.history)


@pytest.mark.req("CORE-POL-2")
def test_a_policy_of_unknown_kind_fails_closed():
    world = World(noop("a")).start(policies=({"kind": "astrology"},))
    assert (world.state, world.error["kind"]) == ("failed", "authorization")


@pytest.mark.req("CORE-POL-1")
def test_policies_are_judged_again_before_each_retry():
    world = run(call("a", retry=retry(3)), policies=[budget(2, "fail"), {"handler": "guard"}])
    world.apply("guard", ALLOWED)
    world.fail("a")
    world.due()
    assert world.request("guard")["attempt"] == 2
    world.apply("guard", ALLOWED)
    world.fail("a")
    world.due()
    assert (world.state, world.error["kind"]) == ("failed", "authorization"), "the budget is spent"


@pytest.mark.req("CORE-POL-1")
def test_asking_a_policy_spends_no_budget():
    world = run(call("a"), call("b"), policies=[budget(2, "fail"), {"handler": "guard"}])
    world.finish(result=ALLOWED)
    assert world.state == "completed"


@pytest.mark.req("CORE-POL-1")
def test_each_question_to_a_policy_has_its_own_key():
    world = run(loop(call("a", retry=retry(2)), max_iterations=2), policies=USER)
    world.apply("guard", ALLOWED)
    world.fail("a")
    world.due()
    world.apply("guard", ALLOWED)
    world.apply("a")
    world.apply("guard", ALLOWED)
    world.apply("a")
    keys = [order.key for order in world.history]
    assert len(keys) == len(set(keys)) == 6


@pytest.mark.req("CORE-POL-1")
def test_a_retry_of_the_instance_cannot_pass_round_the_policies():
    world = run(call("a"), policies=[budget(1, "fail")])
    world.fail("a", retryable=False)
    assert world.command("retry").ok
    assert (world.state, world.error["kind"]) == ("failed", "authorization")
    assert len(world.history) == 1


@pytest.mark.req("CORE-POL-1")
def test_policies_of_the_start_are_judged_after_those_of_the_definition():
    world = World(call("a"), policies=[{"handler": "mine"}]).start(
        policies=({"handler": "theirs"},)
    )
    world.apply("mine", ALLOWED)
    assert world.has("theirs")


@pytest.mark.req("CORE-POL-1")
def test_a_pause_by_a_policy_on_a_retry_does_not_ask_the_person_again():
    world = run(human("h", handler="h", retry=retry(3)), policies=[budget(1)])
    world.signal("custom:human_input:h", {"value": "yes"})
    world.fail("h")
    world.due()
    assert world.state == "paused"
    world.signal("resume")
    assert world.order("h").attempt == 2


@pytest.mark.req("CORE-POL-1", "SEQ-SIG-1")
def test_a_verdict_that_arrives_while_paused_is_kept_and_nothing_is_called():
    world = run(call("a"), policies=USER)
    world.signal("pause")
    world.apply("guard", ALLOWED)
    assert world.state == "paused"
    assert not world.has("a")
    world.signal("resume")
    assert world.has("a")
    assert len(world.entries("policy.evaluated")) == 1


@pytest.mark.req("CORE-POL-1")
def test_one_branch_paused_by_a_policy_holds_the_whole_instance():
    world = run(parallel([call("a"), call("b")], [call("c"), call("d")]), policies=[budget(2)])
    world.apply("a")
    assert world.state == "paused"
    world.apply("c")
    assert not world.orders
    world.signal("resume")
    assert [order.block for order in world.orders] == ["b"]
    assert world.state == "paused", "the other branch is over the budget too"
    world.signal("resume")
    assert [order.block for order in world.orders] == ["b", "d"]
