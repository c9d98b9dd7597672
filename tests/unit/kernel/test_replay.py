"""Replay gives the same bytes, or names the first difference."""

from __future__ import annotations

import msgspec
import pytest

from detent.kernel.observe import observe
from detent.kernel.recording import facts_of, inputs_of, read_body
from detent.kernel.replay import UNKNOWN, Player, definition_of, recompute, replay
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.snapshot import encode_snapshot
from tests.unit.kernel.stories import HANDLERS, tell_story
from tests.unit.kernel.worlds import World, a_program, a_step


def a_world(*blocks, **more):
    world = World(a_program(list(blocks) or [a_step("a"), a_step("b")]), handlers=HANDLERS, **more)
    world.start({"k": 1}, tick=3)
    return world.finish()


def with_body(world, seq, change):
    """The recording with one row's body changed."""
    rows = [row._replace(body=change(row.body)) if row.seq == seq else row for row in world.rows]
    return msgspec.structs.replace(world.recording, rows=rows)


@pytest.mark.req("CORE-RPL-1")
@pytest.mark.parametrize("part", range(4))
def test_any_story_replays_to_the_same_bytes(part):
    for seed in range(part * 50, part * 50 + 50):
        *_, world = tell_story(seed)
        told = replay(world.recording)
        assert told.identical, f"seed {seed}: {told.first_difference}"
        assert told.rows == len(world.rows)


@pytest.mark.req("CORE-RPL-1")
def test_a_changed_entry_is_named_with_its_field_and_both_sides():
    world = a_world()
    changed = with_body(world, 2, lambda body: body.replace(b'"step.executed"', b'"step.skipped"'))
    found = replay(changed).first_difference
    assert (found.seq, found.entry, found.field) == (2, 1, "entries.action")
    assert (found.expected, found.actual) == ("step.skipped", "step.executed")
    assert found.cause


def test_a_changed_detail_is_named_by_its_path():
    world = a_world()
    changed = with_body(world, 1, lambda body: body.replace(b'"attempt":1', b'"attempt":7'))
    found = replay(changed).first_difference
    assert (found.seq, found.field) == (1, "entries.detail.attempt")
    assert (found.expected, found.actual) == (7, 1)


def test_a_changed_input_shows_in_what_follows_from_it():
    world = a_world(
        a_step("a"),
        {
            "type": "router",
            "id": "r",
            "routes": [{"condition": "data.n == 1", "blocks": [a_step("x")]}],
            "default": [a_step("y")],
        },
    )
    changed = with_body(
        world, 2, lambda body: body.replace(b'"result":{"n":1}', b'"result":{"n":2}')
    )
    found = replay(changed).first_difference
    assert found.seq == 2
    assert (found.expected, found.actual) == (0, 1)


def test_another_snapshot_digest_is_a_difference_of_its_own():
    world = a_world()
    rows = [row._replace(snapshot_digest=bytes(32)) if row.seq == 3 else row for row in world.rows]
    told = replay(msgspec.structs.replace(world.recording, rows=rows))
    assert (told.identical, told.rows) == (False, 2)
    assert told.first_difference.field == "snapshot"


def test_another_definition_under_the_same_hash_is_found():
    world = a_world()
    other = a_program([a_step("a"), a_step("c")])
    other.hash = world.program.hash
    told = replay(msgspec.structs.replace(world.recording, programs={world.program.hash: other}))
    assert told.first_difference.seq == 2
    assert told.first_difference.field == "entries.node"


def test_an_unknown_definition_is_refused():
    world = a_world()
    with pytest.raises(RequestError) as refused:
        replay(msgspec.structs.replace(world.recording, programs={}))
    assert refused.value.code == "definition.unknown"


@pytest.mark.req("CORE-RPL-1")
def test_an_erased_row_answers_that_it_is_erased():
    world = a_world()
    rows = [row._replace(body=None) if row.seq == 2 else row for row in world.rows]
    with pytest.raises(RequestError) as refused:
        replay(msgspec.structs.replace(world.recording, rows=rows))
    assert refused.value.code == "replay.erased"


def test_large_inputs_and_values_replay_from_their_blobs():
    world = World(a_program([a_step("a"), a_step("b")]))
    world.start({"text": "x" * (limits.BLOB_BYTES + 1)}, tick=1)
    world.finish(result={"more": "y" * (limits.BLOB_BYTES + 1)})
    assert b'{"$blob":' in world.rows[0].body
    assert replay(world.recording).identical


def test_a_fact_that_was_not_recorded_is_a_difference():
    other = a_program([a_step("x")])
    program = a_program([{"type": "sub_sequence", "id": "s", "sequence_name": "story"}])
    world = World(program, other, children={"story": other.hash})
    world.start(tick=1)
    assert replay(world.recording).identical
    bare = with_body(
        world, 1, lambda body: body.replace(b'"child:story:":"%b"' % other.hash.encode(), b"")
    )
    found = replay(bare).first_difference
    assert found.field.startswith("facts.child:story")


@pytest.mark.req("CORE-RPL-1")
def test_recompute_lists_the_facts_that_differ_today_and_no_others():
    other = a_program([a_step("x")])
    program = a_program([{"type": "sub_sequence", "id": "s", "sequence_name": "story"}])
    world = World(program, other, children={"story": other.hash})
    world.start(tick=1)
    same = recompute(world.recording, lambda *_need: other.hash)
    assert same == []
    [changed] = recompute(world.recording, lambda *_need: "another")
    assert (changed.seq, changed.fact) == (1, "child:story:")
    assert (changed.recorded, changed.now) == (other.hash, "another")
    assert recompute(world.recording, lambda *_need: UNKNOWN) == []


def test_a_row_that_set_the_instance_aside_replays_as_what_it_is():
    """The runtime writes such a row itself: inputs kept, nothing taken, state paused."""
    world = World(a_program([a_step("a")]))
    world.start(tick=1)
    snapshot = world.snapshot
    snapshot.version = 2
    snapshot.state, snapshot.paused_reason = "paused", "consistency"
    snapshot.error = {"code": "invariant.broken", "message": "it broke"}
    world.body = encode_snapshot(snapshot)
    world.decision.journal = (
        b'{"in":[{"t":"signal","name":"pause"}],"facts":{},"entries":[["run.paused","",'
        b'{"reason":"consistency","error":"it broke","from":"running","to":"paused",'
        b'"trigger":"quarantine"}]]}'
    )
    world.decision.version, world.decision.snapshot = 2, world.body
    world._keep(world.decision)
    world.tick = 2
    world.command("resume")
    world.apply({})
    assert replay(world.recording).identical


def test_looking_at_a_step_runs_it_as_the_step_itself_does():
    """`observe` follows `step`; were one changed without the other, entries would differ."""
    for seed in range(40):
        *_, world = tell_story(seed)
        player = Player(world.recording)
        for row in world.rows:
            body = read_body(row.body)
            inputs = inputs_of(body, world.blobs)
            program = world.programs[definition_of(player.snapshot, inputs)]
            facts = facts_of(body, world.recording.timing)
            run = observe(
                program, player.snapshot, inputs, (row.tick, limits.MOVES_PER_TURN), facts
            )
            made = msgspec.json.decode(msgspec.json.encode(run.entries))
            assert body.entries[: len(made)] == made
            assert all(entry[0].startswith("run.") for entry in body.entries[len(made) :])
            player.play(row)
