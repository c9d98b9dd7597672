"""Journals recorded by an earlier version are replayed, and recorded again, to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from detent.testing import golden

HERE = Path(__file__).parent
NAMES = sorted(golden.STORIES)


def test_every_story_has_a_record_and_every_record_a_story():
    assert sorted(path.stem for path in HERE.glob("*.json")) == NAMES


@pytest.mark.req("CORE-RPL-1")
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_journal_replays_to_the_same_bytes(name):
    result = golden.replay_golden(golden.read(HERE / f"{name}.json"))
    assert result.identical, result.first_difference


@pytest.mark.req("CORE-CLK-5")
@pytest.mark.parametrize("name", NAMES)
def test_the_same_story_is_recorded_with_the_same_bytes_again(name):
    was, now = golden.read(HERE / f"{name}.json"), golden.record(name)
    for before, after in zip(was.rows, now.rows, strict=False):
        assert after == before
    assert now == was


@pytest.mark.req("CORE-RPL-1")
def test_a_changed_body_is_told_with_the_place_of_the_first_difference():
    record = golden.read(HERE / "flow.json")
    record.rows[1]["body"] = record.rows[1]["body"].replace("step.executed", "step.forgotten", 1)
    result = golden.replay_golden(record)
    assert not result.identical
    assert result.first_difference.seq == 2
