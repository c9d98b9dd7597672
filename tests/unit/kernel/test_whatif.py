"""What would have happened with other inputs, or another definition; nothing is called."""

from __future__ import annotations

import pytest
from msgspec import Raw

from detent.kernel.whatif import Changes, InputChange, what_if
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied, SignalReceived, encode_input
from tests.unit.kernel.stories import tell_story
from tests.unit.kernel.worlds import World, a_program, a_step

CHOICE = {
    "type": "router",
    "id": "r",
    "default": [a_step("no")],
    "routes": [{"condition": "data.ok", "blocks": [a_step("yes")]}],
}


def a_world(*blocks):
    world = World(a_program(list(blocks)))
    world.start({"k": 1}, tick=1)
    return world


def change(seq, verb, told=None, index=0):
    body = Raw(b"null" if told is None else encode_input(told))
    return Changes(inputs=(InputChange(seq=seq, index=index, verb=verb, body=body),))


@pytest.mark.req("CORE-RPL-2")
@pytest.mark.parametrize("part", range(3))
def test_with_no_change_every_story_goes_as_it_went(part):
    for seed in range(part * 40, part * 40 + 40):
        *_, world = tell_story(seed)
        told = what_if(world.recording, Changes())
        assert told.same, f"seed {seed}: {told.changes[:2]}"
        assert told.state == world.decision.state


@pytest.mark.req("CORE-RPL-2")
def test_another_result_takes_the_other_route_and_stops_where_nothing_is_recorded():
    world = a_world(a_step("ask"), CHOICE)
    first = world.orders.copy()
    world.apply({"ok": True})
    world.finish()
    key = next(iter(first))
    told = what_if(
        world.recording, change(2, "replace", EffectApplied(key=key, result={"ok": False}))
    )
    assert not told.same
    assert told.stopped.startswith("no outcome is recorded for the call of work by r/no")
    added = [each.node for each in told.changes if each.kind == "added"]
    removed = [each.node for each in told.changes if each.kind == "removed"]
    assert "r/no" in added
    assert "r/yes" in removed
    assert world.decision.state == "completed"


def test_a_dropped_signal_lets_the_time_out_decide():
    world = a_world(
        {"type": "wait", "id": "w", "signal": "go", "duration": 1_000}, a_step("n", "noop")
    )
    world.signal("custom:go", {"x": 1}, tick=4)
    assert world.decision.state == "completed"
    told = what_if(world.recording, change(2, "drop"))
    assert told.state == "completed"
    assert told.outputs["w"] == {"timed_out": True}
    assert told.tick == 11


def test_an_inserted_signal_comes_where_it_is_put():
    world = a_world(
        {"type": "wait", "id": "w", "signal": "go", "duration": 1_000}, a_step("n", "noop")
    )
    world.tell(tick=11)
    assert world.snapshot.outputs["w"] == {"timed_out": True}
    inserted = SignalReceived(name="custom:go", payload={"x": 2})
    told = what_if(world.recording, change(1, "insert", inserted, index=1))
    assert told.outputs["w"] == {"x": 2}


def test_another_definition_uses_the_recorded_outcomes_by_node_and_attempt():
    world = a_world(a_step("a"), a_step("b"))
    world.apply({"n": 1})
    world.apply({"n": 2})
    other = a_program([a_step("a"), a_step("mid", "noop"), a_step("b")])
    world.programs[other.hash] = other
    told = what_if(world.recording, Changes(definition=other.hash))
    assert told.state == "completed"
    assert told.data == {"k": 1, "n": 2}
    assert [e.node for e in told.changes if e.action == "step.executed"] == ["mid"]


def test_an_outcome_that_comes_before_its_effect_waits_for_it():
    """The other version puts a delay before b, so the recorded outcome of b comes too early."""
    world = a_world(a_step("a"), a_step("b"))
    world.apply({"n": 1}, tick=2)
    world.apply({"n": 2}, tick=3)
    other = a_program([a_step("a"), a_step("b", delay={"duration": 1_000})])
    world.programs[other.hash] = other
    told = what_if(world.recording, Changes(definition=other.hash))
    assert told.state == "completed"
    assert told.tick == 12
    assert told.unused == 0


def test_an_outcome_nobody_asks_for_is_counted():
    world = a_world(a_step("a"), a_step("b"))
    world.apply({"n": 1})
    world.apply({"n": 2})
    other = a_program([a_step("a")])
    world.programs[other.hash] = other
    told = what_if(world.recording, Changes(definition=other.hash))
    assert (told.state, told.unused) == ("completed", 1)


@pytest.mark.parametrize(
    "changes",
    [
        change(9, "drop"),
        change(1, "drop", index=3),
        change(1, "replace", SignalReceived(name="pause"), index=1),
    ],
)
def test_a_change_of_what_is_not_there_is_refused(changes):
    world = a_world(a_step("a")).finish()
    with pytest.raises(RequestError) as refused:
        what_if(world.recording, changes)
    assert refused.value.code == "request.invalid"


def test_a_live_record_unchanged_ends_where_it_stands():
    world = a_world({"type": "wait", "id": "w", "duration": 1_000})
    told = what_if(world.recording, Changes())
    assert told.same
    assert told.stopped == "the record ends here"


def test_a_run_that_never_ends_is_stopped_and_says_so(monkeypatch):
    monkeypatch.setattr(limits, "WHAT_IF_STEPS", 5)
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "poll_interval": 1,
        "body": [a_step("n", "noop")],
    }
    world = a_world({"type": "wait", "id": "w", "signal": "go"}, loop)
    inserted = SignalReceived(name="custom:go")
    told = what_if(world.recording, change(1, "insert", inserted, index=1))
    assert told.stopped == "more than 5 turns; the rest is left out"


def test_runs_too_long_to_align_are_told_apart_as_two_blocks(monkeypatch):
    world = a_world(a_step("a"), a_step("b"))
    world.apply({"n": 1})
    world.apply({"n": 2})
    other = a_program([a_step("a"), a_step("mid", "noop"), a_step("b")])
    world.programs[other.hash] = other
    aligned = what_if(world.recording, Changes(definition=other.hash)).changes
    monkeypatch.setattr(limits, "ENTRIES_COMPARED", 1)
    apart = what_if(world.recording, Changes(definition=other.hash)).changes
    assert len(apart) > len(aligned)
    kinds = [each.kind for each in apart]
    assert kinds == sorted(kinds, reverse=True)
