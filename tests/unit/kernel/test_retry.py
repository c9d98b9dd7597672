"""Retries: the step's own, with their numbers, and the operator's retry of a failed instance."""

from __future__ import annotations

import pytest

from detent.model import limits
from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    for_each,
    graph,
    loop,
    noop,
    parallel,
    retry,
    router,
    saga,
    scope,
)
from tests.unit.kernel.driver import World, run, ticks


def pauses_of(world, most):
    """Fail the call until the instance fails; gives the pauses between attempts, in ticks."""
    pauses = []
    for _ in range(most + 1):
        world.fail("a")
        if world.state == "failed":
            return pauses
        assert world.state == "scheduled"
        pauses.append(world.decision.due - world.tick)
        world.due()
    raise AssertionError("it was retried too often")


@pytest.mark.req("CORE-EFF-7", "SEQ-BLK-1")
@pytest.mark.parametrize("most", [1, 2, 5])
def test_max_attempts_is_the_number_of_executions(most):
    world = run(call("a", retry=retry(most)))
    assert len(pauses_of(world, most)) == most - 1
    assert [attempt for _, attempt in world.planned()] == list(range(1, most + 1))


@pytest.mark.req("CORE-EFF-7")
def test_without_a_policy_the_first_failure_is_final():
    assert pauses_of(run(call("a")), 1) == []


@pytest.mark.req("CORE-EFF-7")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (retry(6, 1000, 60_000), [1000, 2000, 4000, 8000, 16_000]),
        (retry(6, 1000, 5000), [1000, 2000, 4000, 5000, 5000]),
        (retry(5, 1000, 60_000, backoff_multiplier=3), [1000, 3000, 9000, 27_000]),
        (retry(4, 1000, 60_000, backoff_multiplier=1), [1000, 1000, 1000]),
        (retry(4, 1000, 60_000, backoff_multiplier=1.5), [1000, 1500, 2250]),
        (retry(4, 1000, 60_000, backoff_multiplier=0.5), [1000, 500, 250]),
        (retry(3, 0, 0), [0, 0]),
    ],
)
def test_backoff_is_initial_then_initial_times_multiplier_to_the_n_up_to_the_cap(policy, expected):
    world = run(call("a", retry=policy))
    if expected[0] == 0:
        world.fail("a")
        assert world.order("a").attempt == 2, "a backoff of nothing ends in the same turn"
        return
    assert pauses_of(world, 9) == [ticks(ms) for ms in expected]


@pytest.mark.req("CORE-EFF-7", "CORE-REC-3")
@pytest.mark.parametrize("multiplier", [10.0, 1e300, 1e-300])
def test_thousands_of_attempts_never_overflow(multiplier):
    policy = retry(2000, 1000, 2000, backoff_multiplier=multiplier)
    world = run(fails("f", retryable=True, retry=policy)).finish(most=3000)
    assert world.state == "failed"
    assert len(world.entries("error.retried")) == 1999


@pytest.mark.req("CORE-EFF-7")
def test_jitter_stays_within_its_bounds_is_reproducible_and_differs_between_instances():
    def first_pause(id, jitter):
        world = World(call("a", retry=retry(3, 10_000, 20_000, jitter=jitter))).start(id=id)
        world.fail("a")
        due = world.actors[id].decision.due
        return due - world.tick

    pauses = [first_pause(f"i{n}", 5000) for n in range(40)]
    assert all(50 <= pause <= 150 for pause in pauses)
    assert len(set(pauses)) > 10
    assert pauses == [first_pause(f"i{n}", 5000) for n in range(40)]
    assert {first_pause(f"i{n}", 0) for n in range(5)} == {100}


@pytest.mark.req("CORE-EFF-7")
def test_jitter_never_makes_a_pause_negative():
    world = World(call("a", retry=retry(40, 100, 100, jitter=60_000))).start()
    for _ in range(39):
        world.fail("a")
        assert world.has("a") or world.decision.due > world.tick
        if not world.has("a"):
            world.due()


@pytest.mark.req("CORE-EFF-7", "CORE-EFF-8")
@pytest.mark.parametrize(
    ("condition", "again"),
    [
        ("_error.message == 'busy'", True),
        ("_error.message == 'other'", False),
        ("_error.details.code == 7", True),
        ("data.n == 1", True),
        ("data.n == 2", False),
        ("contains(_error.message, 'us')", True),
        ("_error.message ==", False),
    ],
)
def test_retry_if_decides_with_the_error_in_sight(condition, again):
    world = run(call("a", retry=retry(3, retry_if=condition)), data={"n": 1})
    world.fail("a", "busy", details={"code": 7})
    assert world.state == ("scheduled" if again else "failed")
    assert world.data == {"n": 1}, "the error is seen by the condition alone"


@pytest.mark.req("CORE-EFF-7", "CORE-EFF-8")
@pytest.mark.parametrize(
    ("details", "again"),
    [
        ({"status": 404}, False),
        ({"code": "E1"}, False),
        ({"error_code": "E1"}, False),
        ({"status": 500}, True),
        ({"code": "E2"}, True),
        (None, True),
        ("E1", True),
    ],
)
def test_named_codes_are_final(details, again):
    world = run(call("a", retry=retry(3, non_retryable_codes=["404", "E1"])))
    world.fail("a", details=details)
    assert world.state == ("scheduled" if again else "failed")


@pytest.mark.req("CORE-EFF-7", "CORE-EFF-8")
def test_a_permanent_failure_is_never_retried_whatever_the_policy_says():
    world = run(call("a", retry=retry(9, retry_if="true")))
    world.fail("a", retryable=False)
    assert world.state == "failed"


@pytest.mark.req("CORE-EFF-7")
def test_a_built_in_that_fails_retryably_is_retried_like_any_other():
    world = run(fails("f", retryable=True, message="again", retry=retry(3)))
    assert world.state == "scheduled"
    world.due()
    world.due()
    assert (world.state, world.error["message"]) == ("failed", "again")


@pytest.mark.req("CORE-EFF-7")
def test_the_failure_and_the_next_attempt_are_in_the_journal():
    world = run(call("a", retry=retry(2)))
    world.fail("a", "busy")
    assert world.entries("error.occurred")[0][2] == {"message": "busy", "kind": "transport"}
    assert world.entries("error.retried")[0][2] == {"attempt": 2}
    wait = world.snap().root.lanes[0].open.wait
    assert (wait.kind, wait.name) == ("retry", "busy")
    token = wait.token
    world.due()
    world.fail("a", "worse")
    assert world.entries("error.occurred")[1][2]["final"] is True
    assert world.snap().tokens > token


@pytest.mark.req("CORE-EFF-7")
def test_params_are_rendered_anew_for_each_attempt():
    world = run(call("a", params="{{data.n}}", retry=retry(2)), data={"n": 1})
    world.fail("a")
    world.signal("update_context", {"n": 2})
    world.due()
    assert world.request("a") == 2


@pytest.mark.req("CORE-STM-1", "CORE-EFF-2")
def test_a_retry_repeats_nothing_completed_and_counts_attempts_anew():
    world = run(call("a"), call("b", retry=retry(2)), call("c"))
    world.apply("a", {"n": 1})
    world.fail("b")
    world.due()
    world.fail("b")
    assert world.state == "failed"
    assert world.command("retry").result == {"state": "running"}
    assert (world.order("b").attempt, world.data) == (1, {"n": 1})
    world.apply("b")
    world.apply("c")
    assert world.state == "completed"
    assert world.error is None
    assert world.executed == ["a", "b", "c"]


@pytest.mark.req("CORE-STM-1", "CORE-EFF-2")
@pytest.mark.parametrize(
    "around",
    [
        lambda body: parallel(body, [noop("other")]),
        lambda body: loop(*body, max_iterations=1),
        lambda body: for_each(*body),
        lambda body: router(("true", body)),
        lambda body: scope(*body),
        lambda body: graph({"n": body}),
    ],
    ids=["parallel", "loop", "for_each", "router", "scope", "graph"],
)
def test_a_retry_within_any_block_goes_on_at_the_failed_node(around):
    world = run(around([call("a"), call("b")]), data={"items": [1]})
    world.apply("a")
    world.fail("b", retryable=False)
    assert world.state == "failed"
    world.command("retry")
    names = [node.rpartition("/")[2] for node, _ in world.planned()]
    assert names == ["a", "b", "b"]
    world.apply("b")
    assert world.state == "completed"


@pytest.mark.req("CORE-EFF-2")
def test_a_retry_five_blocks_deep_repeats_nothing_around_it():
    deep = parallel(
        [
            loop(
                router(("true", [attempt([noop("t1")], [], [scope(call("x"), call("y"))])])),
                call("z"),
                max_iterations=2,
            )
        ],
        [call("side")],
    )
    world = run(call("first"), deep, call("last"))
    world.apply("first")
    world.apply("side")
    world.apply("x")
    world.fail("y", retryable=False)
    assert world.state == "failed"
    world.command("retry")
    assert [order.node for order in world.orders] == ["p/l[0]/ro/t/sc/y"]
    world.finish()
    assert world.state == "completed"
    counted = {node: 0 for node, _ in world.planned()}
    for node, _ in world.planned():
        counted[node] += 1
    assert [node for node, n in counted.items() if n > 1] == ["p/l[0]/ro/t/sc/y"]


@pytest.mark.req("CORE-STM-1")
def test_a_failed_instance_may_be_retried_any_number_of_times():
    world = run(call("a"))
    for generation in range(5):
        world.fail("a", retryable=False)
        assert (world.state, world.snap().generation) == ("failed", generation)
        assert world.command("retry").ok
    world.apply("a")
    assert world.state == "completed"
    assert len({order.key for order in world.history}) == 6


@pytest.mark.req("CORE-EFF-3")
def test_a_retry_is_not_held_up_by_an_unsettled_effect_of_another_block():
    world = run(attempt([call("a", deadline=100)]), call("b"), handlers={"a": {"doubt": "once"}})
    world.mark("a")
    world.after(100)
    world.fail("b", retryable=False)
    assert world.snap().effects[0].unwanted
    assert world.command("retry").ok
    assert world.has("b")


@pytest.mark.req("CORE-EFF-3", "SEQ-BLK-5")
def test_a_retry_is_refused_while_a_saga_to_be_repeated_has_an_effect_in_doubt():
    world = run(
        saga((call("a"), None), (call("b", deadline=100), None)), handlers={"b": {"doubt": "once"}}
    )
    world.apply("a")
    world.mark("b")
    world.after(100)
    world.doubt("b")
    assert world.state == "failed"
    verdict = world.command("retry")
    assert (verdict.ok, verdict.code) == (False, "effect.unsettled")
    assert (world.state, world.snap().generation) == ("failed", 0)
    world.resolve(world.snap().effects[0].key, "skip")
    assert world.command("retry").ok


@pytest.mark.req("CORE-EFF-7")
def test_the_message_of_a_failure_in_a_wait_is_short():
    world = run(call("a", retry=retry(2)))
    world.fail("a", "x" * limits.MESSAGE_CHARS)
    assert len(world.snap().root.lanes[0].open.wait.name) <= 200
