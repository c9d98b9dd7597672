"""Kills of a real process: nothing is lost or doubled, and all ends as if nobody was killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.testing.auditing import compare
from detent.testing.kills import KILLS_PER_STORY, tell_story, undisturbed
from detent.testing.outside import Wrong


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4", "CORE-EFF-5")
def test_a_process_killed_again_and_again_ends_as_one_that_was_left_alone():
    with ThreadPoolExecutor(2) as pool:
        stories = list(pool.map(tell_story, (1, 2)))

    assert [story.failure for story in stories] == ["", ""]
    assert sum(sum(story.kills.values()) for story in stories) >= 2 * KILLS_PER_STORY


def test_another_end_than_the_undisturbed_one_is_found_out():
    right = undisturbed(3)
    compare(right, right)
    id, ending = next(iter(right.instances.items()))
    other = right._replace(instances={**right.instances, id: {**ending, "data": {"n": "other"}}})

    with pytest.raises(Wrong, match="instances end differently"):
        compare(right, other)


def test_an_effect_more_than_in_the_undisturbed_run_is_found_out():
    right = undisturbed(3)
    place = next(iter(right.applied))
    doubled = right._replace(applied={**right.applied, place: 2})

    with pytest.raises(Wrong, match="effects end differently"):
        compare(right, doubled)
