"""The schedule block after a stand-still, in a pause, and what it started: nothing is lost."""

from __future__ import annotations

import pytest

from detent.model.inputs import Commanded, Configured, SignalReceived
from tests.unit.kernel.blocks import call
from tests.unit.kernel.schedules import HOUR_MS, WAITING, Scheduled, told

LATE_MS = 3 * HOUR_MS + 1_000
GUARDED = {"type": "cancellation_scope", "id": "keep", "blocks": [WAITING]}


def later(ms=LATE_MS, **settings):
    """A schedule whose engine stood still over three fires."""
    world = Scheduled(missed_policy="all", **settings)
    world.tick = ms // 100
    return world


def change(**args):
    return Configured(verb="cron.update", id="c", args=args)


# a stop after a stand-still ----------------------------------------------------------------------


@pytest.mark.parametrize("ms", [LATE_MS, 3 * HOUR_MS])
def test_disabling_after_a_stand_still_starts_nothing_and_counts_what_was_missed(ms):
    world = later(ms)
    assert world.change(enabled=False).result == {"next_fire_at": None}
    assert (world.fires(), world.skipped()) == ([], [("disabled", 3)])
    assert (world.kept["skipped_fires"], world.children) == (3, [])


@pytest.mark.parametrize("ms", [LATE_MS, 3 * HOUR_MS])
@pytest.mark.parametrize(
    "stop", [Commanded(verb="cancel", id="c"), SignalReceived(name="cancel", id="c")]
)
def test_deleting_after_a_stand_still_starts_nothing_and_counts_what_was_missed(stop, ms):
    world = later(ms)
    world.tell(stop)
    assert (world.state, world.children) == ("cancelled", [])
    assert (world.fires(), world.skipped()) == ([], [("deleted", 3)])
    assert "next_fire_at" not in world.kept or world.kept["next_fire_at"] is None


def test_pausing_after_a_stand_still_starts_nothing_before_it_is_resumed():
    world = later()
    world.command("pause")
    assert (world.state, world.fires(), world.skipped()) == ("paused", [], [])
    world.command("resume")
    assert world.fires() == [HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]


def test_a_stop_that_is_refused_or_withdrawn_in_the_turn_loses_no_fire():
    refused, withdrawn = later(), later()
    assert not refused.change(enabled=False, timezone="Mars/Base").ok
    withdrawn.tell(Commanded(verb="pause", id="a"), Commanded(verb="resume", id="b"))
    for world in (refused, withdrawn):
        assert (world.fires(), world.skipped()) == ([HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS], [])


def test_another_change_after_a_stand_still_makes_up_for_what_was_missed_before():
    world = later()
    assert world.change(cron_expr="30 * * * *").ok
    assert world.fires() == [HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]
    assert world.kept["next_fire_at"] == 3 * HOUR_MS + HOUR_MS // 2


def test_a_held_fire_does_not_start_when_the_turn_that_frees_it_disables_the_schedule():
    world = Scheduled(overlap_policy="buffer_one")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    (child,) = world.children
    ended = []
    world._deliver = ended.append
    world.end(child)
    del world._deliver
    world.tell(ended[0].body, change(enabled=False))
    assert (world.fires(), world.skipped()) == ([HOUR_MS], [("changed", 1)])


def test_a_held_fire_starts_in_the_turn_that_frees_it_whatever_else_is_changed():
    world = Scheduled(overlap_policy="buffer_one")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    ended = []
    world._deliver = ended.append
    world.end(world.children[0])
    del world._deliver
    world.tell(ended[0].body, change(metadata={"a": 1}))
    assert (world.fires(), world.kept["next_fire_at"]) == ([HOUR_MS, 2 * HOUR_MS], 3 * HOUR_MS)


def test_deleting_a_schedule_counts_the_fire_that_it_holds():
    world = Scheduled(overlap_policy="buffer_one")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    world.command("cancel")
    assert (world.skipped(), "held_fire_at" in world.kept) == ([("deleted", 1)], False)


# pauses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ms", [HOUR_MS, LATE_MS])
def test_changing_a_paused_schedule_loses_no_missed_fire(ms):
    world = Scheduled(missed_policy="all")
    world.command("pause")
    world.at_ms(HOUR_MS - 100)
    world.tick = ms // 100
    assert world.change(metadata={"team": "ops"}, timezone="UTC", enabled=True).ok
    assert (world.state, world.fires()) == ("paused", [])
    world.tick = LATE_MS // 100
    world.command("resume")
    assert world.fires() == [HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]
    assert (world.state, world.kept["next_fire_at"]) == ("waiting", 4 * HOUR_MS)


def test_new_times_for_a_paused_schedule_count_what_the_old_ones_missed():
    world = Scheduled(missed_policy="all")
    world.command("pause")
    world.at_ms(LATE_MS)
    assert world.change(cron_expr="30 * * * *").result == {
        "next_fire_at": 3 * HOUR_MS + HOUR_MS // 2
    }
    assert (world.fires(), world.skipped()) == ([], [("changed", 3)])
    world.tick = 5 * HOUR_MS // 100
    world.command("resume")
    assert world.fires() == [3 * HOUR_MS + HOUR_MS // 2, 4 * HOUR_MS + HOUR_MS // 2]


def test_disabling_a_paused_schedule_counts_what_it_missed():
    world = Scheduled()
    world.command("pause")
    world.at_ms(LATE_MS)
    assert world.change(enabled=False).ok
    assert (world.fires(), world.skipped()) == ([], [("disabled", 3)])


# what it started ---------------------------------------------------------------------------------


def failing(**settings):
    """A schedule whose first instance has failed, and stands again after a retry."""
    world = Scheduled(**settings)
    world.define("work", [call("x", "flaky"), WAITING], version=2)
    world.at_ms(HOUR_MS)
    (child,) = world.children
    world.fail("flaky", retryable=False)
    assert (world.snap(child).state, world.kept.get("running", [])) == ("failed", [])
    world.command("retry", to=child)
    world.apply("flaky", {})
    return world, child


def test_a_retried_instance_counts_again_until_it_ends_again():
    world, child = failing(overlap_policy="skip")
    assert world.kept["running"] == [child]
    (noted,) = world.entries("cron.retried")
    assert noted[2] == {"child": child}
    world.at_ms(2 * HOUR_MS)
    assert (world.fires(), world.skipped()) == ([HOUR_MS], [("overlap", 1)])
    world.end(child)
    assert world.kept.get("running", []) == []


def test_a_retried_instance_holds_a_fire_back_and_is_cancelled_by_the_next_one():
    held, _ = failing(overlap_policy="buffer_one")
    held.at_ms(2 * HOUR_MS)
    assert (held.fires(), held.kept["held_fire_at"]) == ([HOUR_MS], 2 * HOUR_MS)
    cancelled, child = failing(overlap_policy="cancel_previous")
    cancelled.at_ms(2 * HOUR_MS)
    assert cancelled.snap(child).state == "cancelled"


def test_a_retry_after_the_schedule_has_ended_changes_nothing_there():
    world = Scheduled()
    world.define("work", [call("x", "flaky"), WAITING], version=2)
    world.at_ms(HOUR_MS)
    world.fail("flaky", retryable=False)
    world.command("cancel")
    before = world.kept
    assert world.command("retry", to=world.children[0]).ok
    assert (world.kept, world.state) == (before, "cancelled")


def test_cancel_previous_follows_what_may_not_be_stopped_to_its_end():
    world = Scheduled(overlap_policy="cancel_previous")
    world.define("work", [GUARDED], version=2)
    for hour in (1, 2, 3):
        world.at_ms(hour * HOUR_MS)
    first, second, third = world.children
    assert world.kept["running"] == [first, second, third]
    asked = [each for each in world.actors[first].entries if each[0] == "run.cancel_requested"]
    received = [each for each in world.actors[first].entries if each[0] == "event.received"]
    assert (len(asked), len(received)) == (1, 1)
    world.end(first)
    assert (world.kept["running"], world.kept["stopping"]) == ([second, third], [second])
    world.change(overlap_policy="skip")
    world.at_ms(4 * HOUR_MS)
    assert len(world.children) == 3


# explain -----------------------------------------------------------------------------------------


def test_explain_names_the_schedule_and_the_fire_that_it_holds():
    world = Scheduled(overlap_policy="buffer_one")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    (wait,) = told(world).waits
    assert wait.text.startswith(
        "schedule 's1' holds its fire of 1970-01-01T02:00:00.000Z while an earlier one runs, "
        "and waits for its next fire since"
    )
    assert wait.released_by[0] == "the end of what it has started"
