"""The schedule block: changes asked of it, pauses, and its end."""

from __future__ import annotations

import pytest

from detent.model.inputs import Configured
from detent.model.snapshot import decode_snapshot
from tests.unit.kernel.schedules import HOUR_MS, Scheduled, told


def test_a_change_counts_the_next_fire_from_now():
    world = Scheduled()
    world.at_ms(HOUR_MS // 2)
    verdict = world.change(cron_expr="45 * * * *", timezone="Asia/Kolkata")
    assert verdict.result == {"next_fire_at": HOUR_MS // 2 + 45 * 60_000}
    assert world.decision.due == (HOUR_MS // 2 + 45 * 60_000) // 100
    assert world.state == "waiting"


def test_a_disabled_schedule_fires_nothing_and_never_makes_up_for_it():
    world = Scheduled()
    assert world.change(enabled=False).result == {"next_fire_at": None}
    assert world.decision.due is None
    assert told(world).summary.startswith("Schedule 's1' is disabled and fires nothing")
    world.at_ms(5 * HOUR_MS + 1_000)
    assert world.change(enabled=True).result == {"next_fire_at": 6 * HOUR_MS}
    assert (world.fires(), world.skipped()) == ([], [])
    world.at_ms(6 * HOUR_MS)
    assert world.fires() == [6 * HOUR_MS]


def test_a_change_at_the_tick_of_a_fire_does_not_lose_it():
    world = Scheduled()
    world.tick = HOUR_MS // 100
    assert world.change(metadata={"a": 1}).result == {"next_fire_at": 2 * HOUR_MS}
    assert world.fires() == [HOUR_MS]
    assert world.started()[0].metadata == {"cron_schedule_id": "s1"}


def test_leaving_buffer_one_drops_the_fire_that_is_held():
    for change in ({"overlap_policy": "allow"}, {"enabled": False}):
        world = Scheduled(overlap_policy="buffer_one")
        world.at_ms(HOUR_MS)
        world.at_ms(2 * HOUR_MS)
        assert world.change(**change).ok
        assert ("held_fire_at" in world.kept, world.skipped()) == (False, [("changed", 1)])
        world.end(world.children[0])
        assert world.fires() == [HOUR_MS]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cron_expr": "0 0 30 2 *"}, "calendar.cron"),
        ({"cron_expr": ""}, "request.invalid"),
        ({"timezone": "Mars/Base"}, "calendar.zone"),
        ({"overlap_policy": "queue"}, "request.invalid"),
        ({"missed_policy": 1}, "request.invalid"),
        ({"missed_limit": 0}, "request.invalid"),
        ({"missed_limit": 101}, "request.invalid"),
        ({"priority": 4}, "request.invalid"),
        ({"enabled": 1}, "request.invalid"),
        ({"metadata": [1]}, "request.invalid"),
        ({"sequence": None}, "request.invalid"),
        ({"version": -1}, "request.invalid"),
        ({"definition": 7}, "request.invalid"),
        ({"fires": 7}, "request.invalid"),
        ({"id": "other"}, "request.invalid"),
    ],
)
def test_a_bad_change_is_refused_and_changes_nothing(change, code):
    world = Scheduled()
    before = world.snap()
    verdict = world.change(**{"timezone": "Europe/Paris", **change})
    assert (verdict.ok, verdict.code) == (False, code)
    assert (world.snap().kv, world.snap().root) == (before.kv, before.root)


def test_the_limit_of_missed_fires_holds_at_its_edge():
    world = Scheduled()
    assert world.change(missed_limit=1).ok
    assert world.change(missed_limit=100).ok


def test_a_schedule_knows_only_its_own_change():
    world = Scheduled()
    (verdict,) = world.tell(Configured(verb="limit.set", id="x", args={})).verdicts
    assert (verdict.ok, verdict.code) == (False, "request.invalid")


def test_no_signal_reaches_the_schedule():
    world = Scheduled()
    world.signal("update_context", {"cron_expr": "* * * * *", "enabled": False})
    world.at_ms(HOUR_MS)
    assert (world.fires(), world.kept["cron_expr"]) == ([HOUR_MS], "0 * * * *")


# end and pause -----------------------------------------------------------------------------------


def test_a_cancelled_schedule_ends_and_what_it_started_goes_on():
    world = Scheduled()
    world.at_ms(HOUR_MS)
    assert world.command("cancel").ok
    assert (world.state, world.decision.due) == ("cancelled", None)
    (child,) = world.children
    assert world.snap(child).state == "waiting"
    world.end(child)
    assert world.snap(child).state == "completed"
    assert world.change(enabled=True).code == "instance.terminal"


def test_a_paused_schedule_fires_nothing_until_it_is_resumed():
    world = Scheduled()
    world.command("pause")
    world.at_ms(HOUR_MS)
    assert (world.state, world.fires()) == ("paused", [])
    assert world.decision.due is None
    world.tick = 3 * HOUR_MS // 100 + 10
    world.command("resume")
    assert (world.state, world.fires()) == ("waiting", [3 * HOUR_MS])
    assert world.skipped() == [("missed", 2)]


def test_a_held_fire_waits_for_a_pause_to_end():
    world = Scheduled(overlap_policy="buffer_one")
    world.at_ms(HOUR_MS)
    world.at_ms(2 * HOUR_MS)
    world.command("pause")
    world.end(world.children[0])
    assert world.fires() == [HOUR_MS]
    world.at_ms(3 * HOUR_MS)
    world.command("resume")
    assert world.fires() == [HOUR_MS, 2 * HOUR_MS]
    assert world.kept["held_fire_at"] == 3 * HOUR_MS


def test_the_snapshot_of_a_schedule_decodes_as_any_other():
    world = Scheduled()
    assert decode_snapshot(world.actors["i1"].body).data is None
