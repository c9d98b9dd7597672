"""The calendar against brute force: a seeded sample of what `make oracle` compares in full."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from detent.testing import oracle
from detent.testing.brute_time import Openings, Walk, changes_of, zone_groups
from detent.testing.comparing import Count

# Whole days, half hours, two hours, folds over midnight, rules that follow the moon.
ODD = [
    ("Pacific/Apia", (2011, 12, 30, 10)),
    ("Australia/Lord_Howe", (2026, 4, 4, 15)),
    ("Antarctica/Troll", (2026, 3, 29, 1)),
    ("America/St_Johns", (2010, 11, 7, 2, 31)),
    ("Africa/Cairo", (2026, 4, 23, 22)),
    ("Africa/Casablanca", (2026, 2, 15, 2)),
    ("Asia/Gaza", (2040, 10, 20)),
]


def minute(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp()) // 60


@pytest.mark.req("SEQ-TIM-1", "SEQ-TIM-2", "SEQ-TIM-3")
@pytest.mark.parametrize("seed", range(3))
def test_a_sample_of_zones_and_changes_has_no_differences(seed):
    total = oracle.sample(seed, zones=4, changes=3)
    assert total.differences == ()
    assert total.instants > 0


@pytest.mark.parametrize(("zone", "when"), ODD)
def test_odd_changes_have_no_differences(zone, when):
    assert minute(*when) in changes_of(zone, 1_440)
    total = oracle.compare_change([zone], minute(*when))
    assert total.differences == ()
    assert total.changes == 1


def test_brute_force_finds_the_changes_of_a_year():
    changes = list(changes_of("Europe/Berlin", 1_440))
    assert len(changes) == 82
    assert minute(2026, 3, 29, 1) in changes
    assert minute(2026, 10, 25, 1) in changes
    assert list(changes_of("Asia/Tokyo", 1_440)) == []


def test_brute_force_knows_a_gap_and_a_fold():
    gap = Walk("Europe/Berlin", minute(2026, 3, 29, 1))
    half_past = minute(2026, 3, 29, 2, 30)
    end = 60 * minute(2026, 3, 29, 1)
    assert gap.is_gap
    assert gap.second(half_past, "next", "first") == end
    assert gap.second(half_past, "shift", "first") == end + 30 * 60
    assert gap.second(half_past, "before", "first") == end - 1
    fold = Walk("Europe/Berlin", minute(2026, 10, 25, 1))
    half_past = minute(2026, 10, 25, 2, 30)
    assert not fold.is_gap
    assert fold.second(half_past, "next", "first") == 60 * minute(2026, 10, 25, 0, 30)
    assert fold.second(half_past, "next", "second") == 60 * minute(2026, 10, 25, 1, 30)


def test_brute_force_marks_openings_second_by_second_at_their_edges():
    walk = Walk("Europe/Berlin", minute(2026, 3, 29, 1))
    change = 60 * walk.change
    openings = Openings(walk)
    openings.open_between(change - 1, change + 120)
    openings.open_between(change + 600, change + 540)
    assert not openings.is_open(change - 60)
    assert openings.is_open(change - 1)
    assert openings.next_opening(change - 60) == change - 1
    assert openings.closing(change) == openings.last_closing(change + 600) == change + 120
    assert openings.closing(change + 120) is None


def test_a_difference_is_counted_and_told_and_equal_answers_are_not():
    count = Count()
    count.compare(1, 1, "right")
    count.compare(1, 2, "wrong")
    assert count.made == 2
    assert count.differences == ["('wrong',) gave 1, brute force 2"]


def test_every_name_of_the_data_is_in_one_group():
    names = [name for group in zone_groups() for name in group]
    assert len(names) == len(set(names)) > 590
    assert any({"Europe/Berlin", "Arctic/Longyearbyen"} <= set(group) for group in zone_groups())


def test_the_command_reports_what_it_compared(capsys):
    assert oracle.main(["--zone", "Asia/Tokyo", "--jobs", "1"]) == 0
    assert "1 zones, 0 changes of offset" in capsys.readouterr().out
