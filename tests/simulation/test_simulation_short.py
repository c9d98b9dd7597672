"""Seeded worlds crashed at their writes: the short form of `python -m detent.testing.simulate`."""

from __future__ import annotations

import pytest

from detent.testing import simulate as command
from detent.testing.driving import Drive, Progress
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore, opened
from detent.testing.outside import Deed, Outside, Wrong
from detent.testing.simulation import crash_at, new_database, run_through, simulate
from detent.testing.workload import world_of

PARTS = 5


@pytest.mark.req("CORE-REC-1", "CORE-EFF-1", "CORE-EFF-2", "CORE-EFF-4", "CORE-EFF-5", "CORE-EXP-1")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_at_any_write_changes_nothing_about_the_end(part):
    # Each world runs once without a crash; then again from many of its writes, with nothing left
    # but the store. Every run is audited: chain, replay, doubles, losses, stuck instances.
    for seed in range(1 + part, 31 + part, PARTS):
        report = simulate(seed, sample=20)
        assert report.failures == [], f"python -m detent.testing.simulate --seed {seed}"
        assert report.crashes > 0


@pytest.mark.req("CORE-REC-1")
def test_every_write_of_a_world_is_a_place_to_crash_at():
    report = simulate(3)
    assert report.crashes == len(MOMENTS) * report.writes
    assert report.failures == []


@pytest.mark.req("CORE-CLK-5")
def test_equal_seeds_give_equal_bytes():
    one, two = run_through(world_of(5)), run_through(world_of(5))
    assert [point.after for point in one.points] == [point.after for point in two.points]
    assert one.outside.deeds == two.outside.deeds


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_replayed_from_an_image_is_the_crash_itself(moment):
    # The simulator does not run to each crash anew; what it goes on from must be what a run that
    # really dies there leaves behind.
    world = world_of(4)
    first = run_through(world)
    for number in range(3, len(first.points), 5):
        connection, outside, progress = new_database(world.seed), Outside(), Progress()
        dying = FaultyStore(connection, Fault(number, moment, 2))
        with pytest.raises(Crash):
            Drive(world, dying, outside, progress).run()
        point = first.points[number - 1]
        image = point.after if moment == "after" else point.before
        assert rows(connection) == rows_of(image)
        assert outside.deeds == first.outside.deeds[: point.deeds]
        assert progress.acted == point.acted


def rows(connection):
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}


def rows_of(image):
    return rows(opened(image))


def test_a_dead_store_answers_nobody():
    store = FaultyStore(new_database(1), Fault(1, "before"))
    with pytest.raises(Crash):
        store.put_setting("a", "1")
    with pytest.raises(Crash):
        store.setting("a")
    assert FaultyStore(store.connection).setting("a") is None


# The auditor must be able to fail ----------------------------------------------------------------


def crashed(seed, change):
    """Crash a world at its writes, in a world whose record was changed before."""
    first = run_through(world_of(seed))
    for point in first.points:
        changed = first._replace(outside=change(first.outside.until(point.deeds)))
        try:
            crash_at(changed, point._replace(deeds=len(changed.outside.deeds)), "after")
        except Wrong as wrong:
            return str(wrong)
    return "nothing was found"


def test_an_effect_that_took_place_twice_is_found():
    def twice(outside):
        for deed in list(outside.deeds):
            if deed.what == "applied" and deed.doubt != "repeatable":
                outside.add(deed)
                break
        return outside

    assert crashed(1, twice).startswith("doubled")


def test_an_effect_that_took_place_unknown_to_the_engine_is_found():
    def unknown(outside):
        outside.add(Deed("call", "k", "x y", "pay", "once"))
        outside.add(Deed("applied", "k", "x y", "pay", "once", {}))
        return outside

    assert crashed(1, unknown).startswith("lost")


def test_the_command_reports_and_fails_with_the_command_that_repeats_it(capsys, monkeypatch):
    assert command.main(["--seed", "1", "--crash-points", "sample"]) == 0
    assert "0 failures" in capsys.readouterr().out

    def broken(seed, **options):
        return simulate(seed, **options)._replace(
            failures=[command.Failure(seed, "7:during", "Wrong: made up")]
        )

    monkeypatch.setattr(command, "simulate", broken)
    assert command.main(["--seed", "1", "--crash-points", "sample"]) == 1
    out = capsys.readouterr().out
    assert "python -m detent.testing.simulate --seed 1 --point 7:during" in out
