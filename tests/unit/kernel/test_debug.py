"""Stepping through a record, forward and back, with the context each node saw."""

from __future__ import annotations

import pytest

from detent.kernel.debug import Debugger, context_at
from detent.model import limits
from detent.model.errors import RequestError
from tests.unit.kernel.stories import tell_story
from tests.unit.kernel.worlds import World, a_program, a_step

TWO = [a_step("a"), a_step("t", "transform", params={"x": "{{ data.n }}"}), a_step("b")]


def a_world(blocks=None):
    world = World(a_program(blocks or TWO))
    world.start({"k": 1}, tick=1)
    world.apply({"n": 1}, tick=2)
    world.apply({"n": 2}, tick=3)
    return world


@pytest.mark.req("CORE-RPL-2")
def test_peek_shows_the_next_row_its_inputs_and_the_step_about_to_run():
    session = Debugger(a_world().recording)
    seen = session.peek()
    assert (seen.seq, seen.tick, seen.node) == (1, 1, "a")
    assert seen.inputs[0]["t"] == "started"
    assert seen.context.data == {"k": 1}
    session.step()
    seen = session.peek()
    assert (seen.seq, seen.node) == (2, "t")
    assert seen.inputs[0]["result"] == {"n": 1}
    assert seen.context.data == {"k": 1, "n": 1}
    assert seen.context.outputs == {"a": {"n": 1}}


@pytest.mark.req("CORE-RPL-2")
def test_peek_changes_nothing_and_step_moves_by_one_row():
    session = Debugger(a_world().recording)
    assert session.peek() == session.peek()
    assert session.position == 0
    left = session.step()
    assert (session.position, left.seq, left.state) == (1, 1, "running")


def test_back_undoes_a_row_and_the_way_forward_is_the_same_again():
    session = Debugger(a_world().recording)
    forward = [session.step(), session.step(), session.step()]
    assert session.back() == forward[1]
    assert session.back() == forward[0]
    assert session.back() is None
    assert session.back() is None
    assert [session.step(), session.step(), session.step()] == forward


def test_at_the_end_there_is_nothing_to_peek_at_and_nothing_to_step():
    session = Debugger(a_world().recording)
    while session.step() is not None:
        pass
    assert session.peek() is None
    assert session.position == 3
    assert session.context().state == "completed"


@pytest.mark.req("CORE-AUD-4", "CORE-STM-3")
def test_the_context_at_a_node_is_exactly_what_it_saw_even_within_one_row():
    world = a_world()
    assert context_at(world.recording, "a").data == {"k": 1}
    assert context_at(world.recording, "t").data == {"k": 1, "n": 1}
    seen = context_at(world.recording, "b")
    assert seen.outputs == {"a": {"n": 1}, "t": {"x": 1}}
    assert (seen.seq, seen.tick) == (2, 2)


def test_each_visit_of_a_node_has_its_own_context():
    retry = {"max_attempts": 1, "initial_backoff": 100, "max_backoff": 100}
    world = World(a_program([a_step("a", retry=retry)]))
    world.start({"k": 1}, tick=1)
    world.fail("no")
    world.signal("update_context", {"k": 2}, tick=2)
    world.command("retry", tick=2)
    assert context_at(world.recording, "a", visit=0).data == {"k": 1}
    assert context_at(world.recording, "a").data["k"] == 1
    with pytest.raises(RequestError):
        context_at(world.recording, "a", visit=2)


def test_a_node_that_was_never_entered_has_no_context():
    with pytest.raises(RequestError) as refused:
        context_at(a_world().recording, "nowhere")
    assert refused.value.code == "request.invalid"


def test_large_values_are_shown_whole():
    world = World(a_program([a_step("a"), a_step("b")]))
    text = "x" * (limits.BLOB_BYTES + 1)
    world.start({"text": text}, tick=1)
    world.apply({"n": 1})
    assert context_at(world.recording, "b").data["text"] == text


def test_any_story_can_be_walked_to_its_end_and_back():
    for seed in range(30):
        *_, world = tell_story(seed)
        session = Debugger(world.recording)
        seen = []
        while session.peek() is not None:
            seen.append(session.step())
        assert seen[-1].state == world.decision.state
        for expected in reversed(seen[:-1]):
            assert session.back() == expected
