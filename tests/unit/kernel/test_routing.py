"""Which of several routing rules counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.kernel.routing import RoutingRule, chosen


def rule(queue, **more):
    return RoutingRule(handler_name="h", queue_name=queue, **more)


def where(rules, queue=""):
    """Where an item goes whose step names this queue; None when no rule says so."""
    found = chosen([(str(n), each) for n, each in enumerate(rules)], queue)
    return None if found is None else found[1].queue


@pytest.mark.parametrize(
    ("rules", "named", "expected"),
    [
        ([], "", None),
        ([rule("a")], "", "a"),
        ([rule("a")], "z", "a"),
        ([rule("a", enabled=False)], "", None),
        ([rule("a"), rule("b")], "", "a"),
        ([rule("a"), rule("b", priority=1)], "", "b"),
        ([rule("a", priority=-1), rule("b", priority=-2)], "", "a"),
        ([rule("a", priority=9, enabled=False), rule("b")], "", "b"),
        ([rule("a", match_queue="z")], "z", "a"),
        ([rule("a", match_queue="z")], "", None),
        ([rule("a", match_queue="")], "", "a"),
        ([rule("a", match_queue="")], "z", None),
        ([rule("a"), rule("b", match_queue="z")], "z", "b"),
        ([rule("a", priority=1), rule("b", match_queue="z")], "z", "a"),
        ([rule("", queue_override="c")], "", "c"),
    ],
)
def test_the_highest_priority_then_the_nearest_then_the_oldest_counts(rules, named, expected):
    assert where(rules, named) == expected


RULES = st.builds(
    rule,
    st.sampled_from("abc"),
    priority=st.integers(-2, 2),
    enabled=st.booleans(),
    match_queue=st.sampled_from([None, "", "z"]),
)


@given(st.lists(RULES, max_size=6), st.sampled_from(["", "z", "y"]))
def test_the_rule_that_counts_fits_and_none_that_fits_has_a_higher_priority(rules, named):
    found = chosen([(str(n), each) for n, each in enumerate(rules)], named)
    fitting = [each for each in rules if each.enabled and each.match_queue in (None, named)]
    if found is None:
        assert fitting == []
    else:
        assert found[1] in fitting
        assert found[1].priority == max(each.priority for each in fitting)
