"""A short storm over three schedulers; `make chaos MINUTES=…` is the long one."""

from __future__ import annotations

import pytest

from detent.testing.chaos import late_keys, run
from detent.testing.outside import Deed, Outside

STORM_S = 12.0


@pytest.mark.req("CORE-REC-1", "CORE-REC-2", "CORE-SCH-4", "CORE-SCH-5", "CORE-EFF-4")
def test_a_storm_of_kills_and_pauses_loses_and_doubles_nothing(postgres_url):
    report = run(postgres_url, seed=7, seconds=STORM_S)
    assert not report.failed, "\n".join(report.lines())
    assert report.kills + report.pauses >= 4
    assert report.instances > 20


def deeds(*lines):
    return Outside(Deed(what, key, "place", "pay", "once") for what, key in lines)


def test_an_effect_is_late_when_its_call_began_before_somebody_asked():
    late = deeds(("begun", "k"), ("asked", "resolve:k:0"), ("applied", "k"))
    assert late_keys(late) == {"k"}
    both = deeds(("begun", "k"), ("query", "k"), ("begun", "k"), ("applied", "k"), ("applied", "k"))
    assert late_keys(both) == {"k"}


def test_an_effect_of_a_call_begun_after_the_question_is_not_late():
    again = deeds(("begun", "k"), ("asked", "resolve:k:0"), ("begun", "k"), ("applied", "k"))
    assert late_keys(again) == set()
    assert late_keys(deeds(("begun", "k"), ("applied", "k"), ("query", "k"))) == set()
