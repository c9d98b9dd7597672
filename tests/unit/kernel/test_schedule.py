"""The schedule block: when it fires, what a fire starts, and what it does about the rest."""

from __future__ import annotations

import pytest

from detent.kernel.step import step
from detent.model.ids import derived_id
from detent.model.inputs import SignalReceived, encode_input
from tests.unit.kernel.schedules import DAY_MS, HOUR_MS, Scheduled, told

# one fire ----------------------------------------------------------------------------------------


def test_a_schedule_stands_until_its_fire_and_then_starts_one_instance():
    world = Scheduled(timezone="Europe/Paris", metadata={"team": "a"}, namespace="sales")
    assert (world.state, world.decision.due) == ("waiting", HOUR_MS // 100)
    world.at_ms(HOUR_MS - 100)
    assert world.children == []
    world.at_ms(HOUR_MS)
    (started,) = world.started()
    assert started.instance == derived_id("default", "cron", f"s1:{HOUR_MS}")
    assert (started.namespace, started.timezone, started.priority) == ("sales", "Europe/Paris", 1)
    assert started.metadata == {"team": "a", "cron_schedule_id": "s1"}
    assert (started.definition, started.data, started.parent.instance) == (
        world.work.hash,
        None,
        "i1",
    )
    assert (world.state, world.decision.due) == ("waiting", 2 * HOUR_MS // 100)
    assert (world.kept["fires"], world.kept["last_triggered_at"]) == (1, HOUR_MS)


def test_a_turn_between_two_fires_changes_nothing():
    world = Scheduled()
    before = world.actors["i1"].body
    assert world.at_ms(HOUR_MS // 2).journal == b""
    assert world.actors["i1"].body == before


def test_a_fire_between_two_ticks_happens_at_the_first_one_after_it():
    world = Scheduled(epoch_ms=30)
    assert world.decision.due == HOUR_MS // 100
    world.at(world.decision.due)
    assert world.fires() == [HOUR_MS]
    assert world.kept["last_triggered_at"] == HOUR_MS + 30
    assert world.skipped() == []


def test_data_and_config_of_a_schedule_reach_what_it_starts():
    world = Scheduled(data={"n": 1}, config={"c": 2}, priority=3)
    world.at_ms(HOUR_MS)
    (started,) = world.started()
    assert (started.data, started.config, started.priority) == ({"n": 1}, {"c": 2}, 3)


def test_a_name_starts_its_highest_version_and_a_hash_that_very_one():
    newest, pinned = Scheduled(), Scheduled()
    first = pinned.work.hash
    assert pinned.change(version=1, definition=first).ok
    for world in (newest, pinned):
        world.define("work", [{"type": "wait", "id": "other", "signal": "go"}], version=2)
        world.at_ms(HOUR_MS)
    assert newest.started()[0].definition == newest.names["work"][2] != first
    assert pinned.started()[0].definition == first


def test_an_unknown_sequence_is_counted_and_the_schedule_goes_on():
    world = Scheduled(sequence="nobody")
    world.at_ms(HOUR_MS)
    assert world.children == []
    assert (world.kept["failed_fires"], world.state) == (1, "waiting")
    assert world.kept["last_error"] == "there is no sequence named 'nobody'"
    world.define("nobody", [{"type": "wait", "id": "w", "signal": "go"}])
    world.at_ms(2 * HOUR_MS)
    assert world.fires() == [2 * HOUR_MS]


def test_a_schedule_whose_times_are_over_stands_for_ever():
    world = Scheduled("0 0 1 1 1 ? 1970")
    world.at_ms(HOUR_MS)
    assert (world.fires(), world.decision.due, world.state) == ([HOUR_MS], None, "waiting")
    assert told(world).summary.startswith("Schedule 's1' has no time left at which it fires")


def test_a_start_with_an_impossible_schedule_fails_and_does_not_break():
    world = Scheduled("0 0 30 2 *")
    assert (world.state, world.error["code"]) == ("failed", "calendar.cron")


# facts -------------------------------------------------------------------------------------------


def test_the_next_fire_is_a_fact_with_zone_and_data_and_replay_keeps_to_it():
    world = Scheduled(timezone="Europe/Paris")
    (fact,) = world.actors["i1"].facts[0].values()
    assert (fact["ms"], fact["zone"]) == (HOUR_MS, "Europe/Paris")
    assert fact["tzdata"]
    actor = world.actors["i1"]
    program = world.programs[actor.definition]
    body = actor.body
    world.at_ms(HOUR_MS)
    recorded = actor.facts[-1]
    moved = {
        key: {**each, "ms": 5 * HOUR_MS} if isinstance(each, dict) else each
        for key, each in recorded.items()
    }
    same = step(program, body, [], world.tick, world._facts(dict(recorded)))
    other = step(program, body, [], world.tick, world._facts(moved))
    assert same.snapshot == world.decision.snapshot
    assert (same.due, other.due) == (2 * HOUR_MS // 100, 5 * HOUR_MS // 100)


def test_explain_names_the_instant_and_at_that_instant_it_moves():
    world = Scheduled()
    said = told(world)
    assert (said.earliest, said.earliest_ms) == (HOUR_MS // 100, HOUR_MS)
    assert "waits for its next fire" in said.summary
    before = world.decision.version
    world.at(said.earliest)
    assert world.decision.version == before + 1


# overlaps ----------------------------------------------------------------------------------------


def test_allow_starts_one_whatever_runs():
    world = Scheduled()
    for hour in (1, 2, 3):
        world.at_ms(hour * HOUR_MS)
    assert (world.fires(), len(world.kept["running"])) == ([HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS], 3)


def test_skip_starts_none_while_one_runs_and_counts_it():
    world = Scheduled(overlap_policy="skip")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    assert (world.fires(), world.skipped()) == ([HOUR_MS], [("overlap", 1)])
    assert (world.kept["skipped_fires"], world.kept["last_skipped_at"]) == (1, 2 * HOUR_MS)
    world.end(world.children[0])
    world.at_ms(3 * HOUR_MS)
    assert (world.fires(), world.kept["skipped_fires"]) == ([HOUR_MS, 3 * HOUR_MS], 1)


def test_buffer_one_holds_one_fire_and_starts_it_when_the_running_one_ends():
    world = Scheduled(overlap_policy="buffer_one")
    for hour in (1, 2, 3, 4):
        world.at_ms(hour * HOUR_MS)
    assert (world.fires(), world.kept["held_fire_at"]) == ([HOUR_MS], 2 * HOUR_MS)
    assert world.skipped() == [("overlap", 1), ("overlap", 1)]
    world.end(world.children[0])
    assert world.fires() == [HOUR_MS, 2 * HOUR_MS]
    assert "held_fire_at" not in world.kept
    world.end(world.children[1])
    assert (world.fires(), world.kept.get("running", [])) == ([HOUR_MS, 2 * HOUR_MS], [])


def test_cancel_previous_cancels_what_runs_and_then_starts():
    world = Scheduled(overlap_policy="cancel_previous")
    world.at_ms(HOUR_MS)
    decision = world.at_ms(2 * HOUR_MS)
    first, second = world.children
    assert [message.id for message in decision.messages] == [
        f"cancel:{first}:{2 * HOUR_MS}",
        f"start:{second}",
    ]
    assert (world.snap(first).state, world.snap(second).state) == ("cancelled", "waiting")
    assert world.kept["running"] == [second]
    assert "skipped_fires" not in world.kept


def test_cancel_previous_cancels_nothing_when_there_is_nothing_to_start():
    world = Scheduled(overlap_policy="cancel_previous")
    world.at_ms(HOUR_MS)
    world.names["work"].clear()
    world.at_ms(2 * HOUR_MS)
    assert world.snap(world.children[0]).state == "waiting"
    assert world.kept["failed_fires"] == 1


def test_a_failed_instance_no_longer_runs_for_its_schedule():
    world = Scheduled(overlap_policy="skip")
    world.at_ms(HOUR_MS)
    (child,) = world.children
    world.command("cancel", to=child)
    assert world.kept.get("running", []) == []
    (ended,) = world.entries("cron.ended")
    assert ended[2] == {"child": child, "state": "cancelled"}


def test_only_the_newest_hundred_are_tracked():
    world = Scheduled("* * * * *")
    for minute in range(1, 104):
        world.at_ms(minute * 60_000)
    assert (len(world.children), len(world.kept["running"])) == (103, 100)
    before = world.kept
    world.end(world.children[0])
    assert world.kept == before
    assert world.entries("event.ignored")


def test_what_a_schedule_started_tells_its_end_without_its_data():
    world = Scheduled(data={"large": "x" * 1_000})
    world.at_ms(HOUR_MS)
    (child,) = world.children
    (message,) = world.tell(encode_input(SignalReceived(name="custom:go")), to=child).messages
    assert b"xxx" not in message.body


# missed fires ------------------------------------------------------------------------------------


def test_of_missed_fires_only_the_latest_is_made_up_for():
    world = Scheduled()
    world.at_ms(5 * HOUR_MS + 60_000)
    assert (world.fires(), world.skipped()) == ([5 * HOUR_MS], [("missed", 4)])
    assert world.kept["next_fire_at"] == 6 * HOUR_MS


def test_a_fire_at_the_very_tick_is_not_missed():
    world = Scheduled()
    world.at_ms(5 * HOUR_MS)
    assert (world.fires(), world.skipped()) == ([4 * HOUR_MS, 5 * HOUR_MS], [("missed", 3)])


def test_all_makes_up_for_the_latest_up_to_its_limit():
    world = Scheduled(missed_policy="all", missed_limit=3)
    world.at_ms(5 * HOUR_MS + 60_000)
    assert world.fires() == [3 * HOUR_MS, 4 * HOUR_MS, 5 * HOUR_MS]
    assert (world.kept["skipped_fires"], world.skipped()) == (2, [("missed", 2)])
    few = Scheduled(missed_policy="all", missed_limit=3)
    few.at_ms(2 * HOUR_MS + 60_000)
    assert (few.fires(), few.skipped()) == ([HOUR_MS, 2 * HOUR_MS], [])


def test_none_goes_on_with_the_next_one_to_come():
    world = Scheduled(missed_policy="none")
    world.at_ms(5 * HOUR_MS + 60_000)
    assert (world.fires(), world.skipped()) == ([], [("missed", 5)])
    world.at_ms(6 * HOUR_MS)
    assert world.fires() == [6 * HOUR_MS]


@pytest.mark.parametrize(("late_ms", "fired"), [(5_000, True), (5_100, False)])
def test_a_busy_engine_may_be_five_seconds_late(late_ms, fired):
    world = Scheduled(missed_policy="none")
    world.at_ms(HOUR_MS + late_ms)
    assert world.fires() == ([HOUR_MS] if fired else [])


def test_missed_fires_meet_the_policy_for_overlaps_one_by_one():
    policies = {
        "skip": ([3 * HOUR_MS], 2),
        "buffer_one": ([3 * HOUR_MS], 1),
        "cancel_previous": ([5 * HOUR_MS], 2),
        "allow": ([3 * HOUR_MS, 4 * HOUR_MS, 5 * HOUR_MS], 0),
    }
    for policy, (fires, skipped) in policies.items():
        world = Scheduled(missed_policy="all", missed_limit=3, overlap_policy=policy)
        world.at_ms(5 * HOUR_MS + 60_000)
        assert (world.fires(), world.kept["skipped_fires"]) == (fires, 2 + skipped), policy


def test_a_year_of_missed_fires_costs_no_more_than_a_thousand():
    world = Scheduled("* * * * * *", missed_policy="all", missed_limit=3)
    world.at_ms(365 * DAY_MS + 50)
    last = 365 * DAY_MS
    assert world.fires() == [last - 2_000, last - 1_000, last]
    assert world.kept["skipped_fires"] == 997
