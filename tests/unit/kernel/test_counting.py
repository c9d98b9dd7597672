"""What journal entries count as."""

from __future__ import annotations

import pytest

from detent.kernel.counting import counted
from detent.model.figures import EDGES, Times, add_counts, note_time, times_of


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        (("step.entered", "a"), ["step.entered"]),
        (("error.occurred", "a", {"message": "no"}), ["error.occurred"]),
        (("error.occurred", "a", {"final": True}), ["error.final"]),
        (
            ("error.occurred", "a", {"final": True, "code": "step.deadline"}),
            ["error.final", "sla.breached"],
        ),
        (("wait.started", "a", {"kind": "retry"}), ["wait.started"]),
        (("wait.started", "a", {"kind": "gate"}), ["wait.started", "wait.gate"]),
        (("cron.skipped", "c", {"fire_ms": 1}), ["cron.skipped"]),
        (("cron.skipped", "c", {"fire_ms": 1, "count": 3}), ["cron.skipped"] * 3),
    ],
)
def test_an_entry_counts_as_what_it_says(entry, names):
    assert list(counted([entry])) == names
    assert list(counted([("run.started", ""), entry])) == ["run.started", *names]


@pytest.mark.parametrize("name", sorted(EDGES))
def test_a_time_falls_into_the_first_bucket_that_holds_it(name):
    edges, counts, times = EDGES[name], {}, Times(name)
    given = [0, edges[0], edges[0] + 1, edges[-1], edges[-1] + 1]
    for us in given:
        note_time(counts, name, us)
        times.note(us)
    buckets = [2, 1, *[0] * (len(edges) - 3), 1, 1]
    assert times.counts == buckets
    assert times.total_us == sum(given)
    totals = {}
    add_counts(totals, counts)
    add_counts(totals, {})
    assert (times_of(totals, name).counts, times_of(totals, name).total_us) == (buckets, sum(given))
    assert list(edges) == sorted(set(edges))
