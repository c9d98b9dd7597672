"""What is known of the due index: whom to ask for, and when (CORE-SCH-1, SEQ-LIM-5)."""

from __future__ import annotations

import pytest

from detent.model.limits import DUE_STRETCHES, TENANT_QUANTUM
from detent.ports.due import DuePage, Ready, Stretch
from detent.runtime.dues import NEVER, Dues


def seeded(*stretches):
    dues = Dues()
    dues.seed([Stretch(*stretch) for stretch in stretches])
    return dues


def names(stretches):
    return [stretch.tenant for stretch in stretches]


def rows(*due):
    return [Ready(0, f"id-{tick}", 0, "acme", 1, tick) for tick in due]


class Asked:
    """A store that knows when each stretch is due next, and counts how often it is asked."""

    def __init__(self, **next_due):
        self.next_due = next_due
        self.asked = []
        self.rows = []

    def due(self, _owned, _tick, queries):
        self.asked += [query.tenant for query in queries]
        return [DuePage(self.rows, self.next_due[query.tenant]) for query in queries]


def test_nothing_known_means_look_now_and_no_line_means_never():
    dues = Dues()
    assert (dues.known, dues.next) == (False, 0)
    dues.seed([])
    assert (dues.known, dues.next) == (True, NEVER)
    dues.reset()
    assert (dues.known, dues.next) == (False, 0)


def test_only_lines_whose_tick_has_come_are_read_the_highest_priority_first():
    dues = seeded(("acme", 1, 5), ("beta", 3, 6), ("cyan", 1, 4), ("dodo", 2, 7))
    assert dues.next == 4
    assert dues.fallen_due(3, 10) == []
    assert names(dues.fallen_due(6, 10)) == ["beta", "cyan", "acme"]
    assert dues.next == 7


def test_so_many_lines_are_read_per_priority_and_the_rest_is_due_still():
    dues = seeded(*[(f"t{n:02}", 1, n) for n in range(9)], ("low", 0, 1))
    assert names(dues.fallen_due(20, 4)) == ["t00", "t01", "t02", "t03", "low"]
    assert dues.next == 4
    assert names(dues.fallen_due(20, 4)) == ["t04", "t05", "t06", "t07"]


def test_a_page_that_is_not_full_tells_when_the_line_is_due_next():
    dues = seeded(("acme", 1, 5))
    (stretch,) = dues.fallen_due(8, 10)
    dues.read(stretch, 3, DuePage(rows(5, 6), 12), 8)
    assert dues.next == 12
    assert stretch.after == (9, "")
    (stretch,) = dues.fallen_due(12, 10)
    dues.read(stretch, 3, DuePage([], None), 12)
    assert dues.next == NEVER
    assert dues._stretches == {}


def test_a_full_page_is_read_on_only_when_little_of_it_is_left():
    dues = seeded(("acme", 1, 5))
    (stretch,) = dues.fallen_due(8, 10)
    dues.read(stretch, 2, DuePage(rows(5, 6), 12), 8)
    stretch.open = 100 + TENANT_QUANTUM
    assert dues.next == 0
    assert dues.hungry(100) == []
    stretch.open -= 1
    ((stretch, limit),) = dues.hungry(100)
    assert stretch.after == (6, "id-6")
    assert limit > 100
    dues.read(stretch, limit, DuePage(rows(7), 12), 8)
    assert dues.hungry(100) == []
    assert dues.next == 12


def test_many_lines_with_a_backlog_are_held_short_and_no_turn_can_run_out_of_any():
    dues = seeded(*[(f"t{n:02}", 1, 1) for n in range(50)], ("high", 2, 1))
    for stretch in dues.fallen_due(1, 100):
        dues.read(stretch, 1, DuePage(rows(1), None), 1)
    limits = {stretch.tenant: limit for stretch, limit in dues.hungry(500)}
    share = 500 // 50 + TENANT_QUANTUM
    assert share <= limits["t00"] <= 5 * share
    assert limits["high"] >= 500


@pytest.mark.req("SEQ-LIM-5")
def test_the_lines_with_a_backlog_that_are_held_at_once_are_bounded():
    dues = seeded(*[(f"t{n:05}", 1, 1) for n in range(DUE_STRETCHES + 5)])
    first = dues.fallen_due(1, DUE_STRETCHES + 5)
    assert len(first) == DUE_STRETCHES
    for stretch in first:
        dues.read(stretch, 1, DuePage(rows(1), None), 1)
    assert dues.fallen_due(1, 10) == []
    dues.read(first[0], 1, DuePage([], None), 1)
    assert names(dues.fallen_due(1, 10)) == [f"t{DUE_STRETCHES:05}"]


def test_a_committed_row_brings_its_line_forward_and_only_its_own():
    dues = seeded(("acme", 1, 50), ("beta", 1, 60))
    dues.note("acme", 1, 70, 5)
    assert dues.next == 50
    dues.note("beta", 1, 20, 5)
    dues.note("cyan", 3, 30, 5)
    assert dues.next == 20
    assert names(dues.fallen_due(30, 10)) == ["cyan", "beta"]


def test_a_row_due_before_what_was_read_is_read_again_but_not_at_the_same_tick():
    dues = seeded(("acme", 1, 5))
    (stretch,) = dues.fallen_due(8, 10)
    dues.read(stretch, 3, DuePage(rows(5), None), 8)
    dues.note("acme", 1, 8, 8)
    assert dues.fallen_due(8, 10) == []
    (stretch,) = dues.fallen_due(9, 10)
    assert stretch.after == (8, "")


def test_rows_committed_before_anything_is_known_are_left_to_the_seed():
    dues = Dues()
    dues.note("acme", 1, 5, 1)
    assert dues.next == 0
    dues.seed([Stretch("acme", 1, 5)])
    assert names(dues.fallen_due(5, 10)) == ["acme"]


def test_bounds_that_are_outdated_do_not_pile_up():
    dues = seeded(("acme", 1, 10_000_000))
    for tick in range(5_000):
        dues.note("acme", 1, tick + 1, tick)
        (stretch,) = dues.fallen_due(tick + 1, 10)
        dues.read(stretch, 3, DuePage(rows(tick), 10_000_000), tick + 1)
    assert len(dues._bounds[1]) < 200
    assert dues.next == 10_000_000


def test_the_earliest_due_tick_is_exact_though_rows_of_an_earlier_bound_are_gone():
    dues = seeded(("acme", 1, 10), ("beta", 1, 20), ("cyan", 3, 30), ("dodo", 0, 40))
    store = Asked(acme=None, beta=35, cyan=30, dodo=40)
    assert dues.earliest(store, [0], 5) == 30
    assert store.asked == ["acme", "beta", "cyan"]
    assert dues.earliest(store, [0], 5) == 30
    assert store.asked[3:] == ["cyan"]
    assert dues.earliest(store, [0], 30) == 30
    dues.fallen_due(30, 10)
    assert dues.earliest(store, [0], 30) == 35


def test_a_row_that_was_committed_past_its_tick_is_the_next_tick_s_and_is_not_forgotten():
    dues = seeded(("acme", 1, 50))
    dues.note("acme", 1, 7, 8)
    store = Asked(acme=50)
    store.rows = rows(7)
    assert dues.earliest(store, [0], 8) == 9
    assert names(dues.fallen_due(9, 10)) == ["acme"]


def test_the_earliest_due_tick_is_now_while_nothing_is_known_or_more_is_due():
    dues = Dues()
    assert dues.earliest(Asked(), [0], 7) == 7
    dues.seed([Stretch("acme", 1, 5)])
    (stretch,) = dues.fallen_due(7, 10)
    dues.read(stretch, 1, DuePage(rows(5), 99), 7)
    assert dues.earliest(Asked(), [0], 7) == 7
    dues.read(stretch, 1, DuePage([], None), 7)
    assert dues.earliest(Asked(), [0], 7) is None
