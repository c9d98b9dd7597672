"""A fork goes on from a row of another instance, and nothing is called again."""

from __future__ import annotations

import pytest

from detent.kernel.fork import ForkRequest, entered_at, fork
from detent.kernel.replay import replay
from detent.kernel.views import audit, outputs
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.inputs import ChildEnded, EffectDoubted
from tests.unit.kernel.stories import HANDLERS, tell_story
from tests.unit.kernel.worlds import World, a_program, a_step


def forked(world, seq, tick=1_000, **more):
    """The world of a fork, after its first turn."""
    told = fork(world.recording, ForkRequest(instance="fork", seq=seq, **more))
    other = World(world.program, handlers=world.handlers, id="fork")
    other.tell(told, tick=tick)
    return other


def forked_if_possible(world, seq):
    """A fork, or None where it is refused for one of the two reasons there are."""
    try:
        return forked(world, seq)
    except RequestError as refused:
        if refused.code not in ("fork.refused", "effect.unsettled"):
            raise
        return None


def three_steps():
    world = World(a_program([a_step("a"), a_step("b"), a_step("c")]))
    world.start({"k": 1}, tick=1)
    for n in range(1, 4):
        world.apply({"n": n}, tick=n + 1)
    return world


def planned(world):
    return [e.detail["key"] for e in audit(world.rows, world.blobs) if e.action == "effect.planned"]


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_takes_what_was_under_way_from_the_record_and_calls_only_what_is_new():
    origin = three_steps()
    other = forked(origin, 2)
    assert [order.node for order in other.orders.values()] == ["c"]
    assert not set(other.orders) & set(planned(origin))
    assert other.snapshot.data == {"k": 1, "n": 2}
    assert other.snapshot.id == "fork"
    other.apply({"n": 30})
    assert other.decision.state == "completed"
    assert other.snapshot.data == {"k": 1, "n": 30}
    assert origin.snapshot.data == {"k": 1, "n": 3}


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_is_an_instance_like_any_other_it_replays():
    other = forked(three_steps(), 2)
    other.apply({"n": 30})
    assert replay(other.recording).identical


def test_outputs_taken_from_the_origin_are_outputs_of_the_fork():
    other = forked(three_steps(), 2)
    done, under_way = outputs(other.rows, other.program, other.blobs)
    assert (done.block, done.output) == ("a", {"n": 1})
    assert (under_way.block, under_way.output) == ("b", {"n": 2})


def test_data_given_to_a_fork_is_merged_before_it_goes_on():
    other = forked(three_steps(), 1, data={"k": 9, "extra": True}, dry_run=True)
    assert other.snapshot.data == {"k": 9, "extra": True}
    assert other.snapshot.dry_run


def test_a_fork_before_a_node_runs_that_node_itself():
    """Row 2 applies a and enters b; forked before b, the fork plans a call of b of its own."""
    origin = three_steps()
    assert entered_at(origin.recording, "b") == 2
    other = forked(origin, 2, before="b")
    assert [order.node for order in other.orders.values()] == ["b"]
    assert not set(other.orders) & set(planned(origin))
    assert other.snapshot.data == {"k": 1, "n": 1}
    assert other.snapshot.outputs == {"a": {"n": 1}}


def test_a_fork_before_the_first_node_starts_over():
    other = forked(three_steps(), 1, before="a")
    assert [order.node for order in other.orders.values()] == ["a"]


def test_a_node_that_was_not_entered_cannot_be_forked_before():
    with pytest.raises(RequestError) as refused:
        entered_at(three_steps().recording, "z")
    assert refused.value.code == "fork.refused"


def test_a_timer_has_as_long_to_run_as_it_had_at_the_row():
    world = World(a_program([{"type": "wait", "id": "w", "duration": 1_000}, a_step("n", "noop")]))
    world.start(tick=1)
    world.signal("update_context", {"x": 1}, tick=5)
    world.tell(tick=11)
    assert world.decision.state == "completed"
    other = forked(world, 2, tick=1_000)
    assert other.decision.due == 1_006
    assert other.snapshot.state == "waiting"
    other.tell(tick=1_006)
    assert other.decision.state == "completed"


def test_a_failed_call_stays_failed_in_the_fork_and_is_retried_under_its_own_key():
    retry = {"max_attempts": 2, "initial_backoff": 1_000, "max_backoff": 1_000}
    world = World(a_program([a_step("a", retry=retry)]))
    world.start(tick=1)
    world.fail("busy", tick=2)
    other = forked(world, 1, tick=100)
    assert other.orders == {}
    assert other.decision.due == 110
    other.tell(tick=110)
    [order] = other.orders.values()
    assert order.attempt == 2
    assert order.key not in planned(world)


def test_a_skipped_effect_is_skipped_in_the_fork():
    world = World(a_program([a_step("a", "pay"), a_step("b")]), handlers=HANDLERS)
    world.start(tick=1)
    key = next(iter(world.orders))
    world.tell(EffectDoubted(key=key, reason="lost"), tick=2)
    world.command("resolve", {"key": key, "action": "skip"}, tick=3)
    for seq in (1, 2):
        other = forked(world, seq)
        assert [order.node for order in other.orders.values()] == ["b"]
        assert other.snapshot.effects[0].node == "b"


def test_a_decision_of_a_person_counts_in_the_fork():
    world = World(a_program([a_step("a", "pay"), a_step("b")]), handlers=HANDLERS)
    world.start(tick=1)
    key = next(iter(world.orders))
    world.tell(EffectDoubted(key=key, reason="lost"), tick=2)
    world.command("resolve", {"key": key, "action": "happened", "result": {"n": 7}}, tick=3)
    other = forked(world, 1)
    assert other.snapshot.outputs["a"] == {"n": 7}


@pytest.mark.req("CORE-RPL-2")
def test_an_open_effect_without_a_recorded_outcome_refuses_the_fork():
    world = World(a_program([a_step("a"), a_step("b")]))
    world.start(tick=1)
    with pytest.raises(RequestError) as refused:
        fork(world.recording, ForkRequest(instance="fork", seq=1))
    assert refused.value.code == "effect.unsettled"


def test_a_row_that_does_not_exist_and_an_instance_that_has_ended_are_refused():
    world = three_steps()
    for seq, words in ((9, "no journal row 9"), (4, "completed")):
        with pytest.raises(RequestError) as refused:
            fork(world.recording, ForkRequest(instance="fork", seq=seq))
        assert refused.value.code == "fork.refused"
        assert words in refused.value.message


def test_a_failed_instance_can_be_forked_and_retried():
    world = World(a_program([a_step("a"), a_step("b")]))
    world.start(tick=1)
    world.apply({"n": 1})
    world.fail("no", retryable=False)
    other = forked(world, 3)
    assert other.snapshot.state == "failed"
    other.command("retry")
    [order] = other.orders.values()
    assert order.node == "b"
    assert order.key not in planned(world)


def test_a_child_that_ended_is_taken_from_the_record_and_one_that_did_not_refuses_the_fork():
    child = a_program([a_step("x")])
    program = a_program(
        [
            {"type": "sub_sequence", "id": "s", "sequence_name": "story"},
            a_step("b"),
        ]
    )
    world = World(program, child, children={"story": child.hash})
    world.start(tick=1)
    with pytest.raises(RequestError) as refused:
        fork(world.recording, ForkRequest(instance="fork", seq=1))
    assert refused.value.code == "fork.refused"
    wait = world.snapshot.root.lanes[0].open.wait
    world.tell(ChildEnded(child=wait.name, token=wait.token, state="completed", data={"c": 1}))
    other = forked(world, 1)
    assert other.snapshot.data == {"c": 1}
    assert [order.node for order in other.orders.values()] == ["b"]


def test_large_values_travel_whole_into_the_fork():
    world = World(a_program([a_step("a"), a_step("b"), a_step("c")]))
    text = "x" * (limits.BLOB_BYTES + 1)
    world.start({"text": text}, tick=1)
    world.apply({"n": 1})
    world.apply({"n": 2})
    other = forked(world, 2)
    other.apply({"n": 3})
    assert other.decision.state == "completed"
    assert replay(other.recording).identical


@pytest.mark.parametrize("part", range(3))
def test_no_fork_of_any_story_calls_recalls_or_withdraws_a_call_of_its_origin(part):
    made = 0
    for seed in range(part * 30, part * 30 + 30):
        *_, world = tell_story(seed)
        calls = set(planned(world))
        for row in world.rows:
            other = forked_if_possible(world, row.seq)
            if other is None:
                continue
            made += 1
            done = other.decision
            touched = [*done.recalled, *done.settled, *done.withdrawn, *other.orders]
            assert not calls & set(touched), f"seed {seed}, row {row.seq}"
            assert not calls & {effect.key for effect in other.snapshot.effects}
            assert replay(other.recording).identical
    assert made > 100


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_finds_the_signals_it_is_given_and_replays():
    waits = {"type": "wait", "id": "w", "signal": "go"}
    world = World(a_program([waits, a_step("b", params={"n": "{{ data.n }}"})]))
    world.start({"k": 1}, tick=1)
    given = (("custom:go", {"x": 1}), ("update_context", {"data": {"n": 2}}))
    other = forked(world, 1, before="w", signals=given)
    assert [row.output for row in outputs(other.rows, other.program, other.blobs)] == [{"x": 1}]
    assert other.snapshot.data == {"k": 1, "n": 2}
    assert [order.node for order in other.orders.values()] == ["b"]
    assert replay(other.recording).identical
    assert not forked(world, 1, before="w").orders
