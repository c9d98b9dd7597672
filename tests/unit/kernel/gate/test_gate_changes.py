"""A gate through send windows, restarts and changes: who keeps a place, and what is forgotten."""

from __future__ import annotations

import pytest

from detent.kernel.gate.forecast import Forecast, forecast
from tests.unit.kernel.gate.brute import day_of, in_hours
from tests.unit.kernel.gate.hall import DAY, IN_HOURS, Hall, holding, limited, names, pooled


@pytest.mark.req("SEQ-TIM-1")
def test_who_is_kept_off_by_its_window_has_its_place_again_when_the_window_opens():
    hall = Hall(limits=limited(m=(1, 59)))
    hall.ask("sent", 0, limits=("m",))
    for name in ("early", "late"):
        hall.ask(name, 10, limits=("m",), **IN_HOURS)
    hall.ask("anytime", 20, limits=("m",))
    assert not in_hours(60)
    assert in_hours(120)
    told = {name: forecast(hall.restarted(20).gate, name, 20) for name in hall.gate._line.tickets}
    assert told["early:1"] == Forecast("limit:m", 120, "window:" + IN_HOURS["window"])
    assert names(hall.drain(most=3)) == ["anytime", "early", "late"]
    assert {name: each.at for name, each in told.items()} == {
        "anytime:1": 60,
        "early:1": 120,
        "late:1": DAY,  # by 180 the window is shut again
    }


def test_windows_are_stored_once_and_only_while_somebody_waits_with_them():
    hall = Hall(limits=limited(m=(1, 5)))
    for name in "abc":
        hall.ask(name, 0, limits=("m",), **IN_HOURS)
    hall.commit()
    assert [key[1] for key in hall.rows if key[0] == "hours"] == [IN_HOURS["window"]]
    assert all(b"spans" not in body for key, body in hall.rows.items() if key[0] == "ask")
    assert names(hall.restarted(0).drain()) == ["b", "c"]
    hall.drain()
    hall.commit()
    assert {key[0] for key in hall.rows} == {"use"}


def watching():
    """A low ticket of two rules among others: whether it watches one or the other matters."""
    hall = Hall(limits=limited(x=(1, 3), z=(1, 15)))
    asks = [(3, "z", 1), (6, "z", 2), (16, "z", 1), (17, "z", 1), (20, "xz", 0), (20, "z", 1)]
    asks += [(20, "z", 1), (20, "z", 1), (23, "x", 1), (23, "x", 1), (23, "z", 1), (23, "x", 1)]
    for n, (tick, keys, priority) in enumerate([*asks, (33, "z", 1)]):
        while (due := hall.gate.next_due()) is not None and due <= tick:
            hall.call(due)
        hall.ask(str(n), tick, limits=tuple(keys), priority=priority)
    return hall


def test_a_gate_that_was_read_anew_serves_in_the_same_order():
    hall = watching()
    told = {
        name: forecast(hall.restarted(33).gate, name, 33).at for name in hall.gate._line.tickets
    }
    other = hall.restarted(33)
    seen = hall.drain(since=33)
    assert seen == other.drain(since=33)
    assert told == {f"{name}:1": tick for tick, name, _ in seen}


def test_what_is_kept_for_one_is_kept_for_it_after_a_restart():
    hall = holding()
    hall.ask("a0", 4, limits=("a",), priority=2)
    hall = hall.restarted(4)
    assert hall.call(4) == []
    assert hall.ask("a1", 5, limits=("a",), priority=2).state == "deferred"
    assert names(hall.drain()) == ["both", "a0", "a1"]


@pytest.mark.req("SEQ-LIM-3")
def test_a_warm_up_that_begins_with_nothing_ends_however_far_ahead_that_is():
    start = day_of(50 * DAY, "UTC")
    slow = {"daily_cap": 1, "warmup_start": start, "warmup_days": 366}
    hall = Hall(pools={"p": pooled(r=slow)})
    hall.ask("a", 0, pool="p")
    assert hall.drain(until=10**12) == [((50 + 366) * DAY, "a", "r")]
    gaps = {"daily_cap": 2, "warmup_start": start, "warmup_schedule": (1, 0, 0, 2)}
    hall = Hall(pools={"p": pooled(r=gaps)})
    for name in "abcd":
        hall.ask(name, 50 * DAY, pool="p")
    assert [tick // DAY for tick, *_ in hall.drain()] == [53, 53, 54]


def test_the_days_of_a_resource_that_are_long_over_are_forgotten():
    hall = Hall(pools={"p": pooled(r={"daily_cap": 5})})
    for n in range(10):
        hall.ask(f"i{n}", 3 * n * DAY, pool="p")
        hall.commit()
        assert len([key for key in hall.rows if key[0] == "day"]) == 1


@pytest.mark.req("SEQ-LIM-1")
def test_only_who_waited_for_the_deleted_limit_is_told_so():
    hall = Hall(limits=limited(a=(1, 10), b=(1, 60)))
    hall.ask("x", 0, limits=("a",))
    hall.ask("y", 0, limits=("b",))
    hall.ask("both", 0, limits=("a", "b"))
    hall.ask("a0", 0, limits=("a",))
    assert hall.call(11) == ["a0"]
    hall.configure(15, limits=limited(a=(1, 10)))
    assert hall.call(15) == []  # a is taken again: it goes when that is free, and by that
    ((_, answer),) = hall.answers(22)
    assert (answer.state, answer.why) == ("granted", "")

    hall = Hall(limits=limited(a=(1, 10), b=(1, 60)))
    hall.ask("y", 0, limits=("b",))
    hall.ask("both", 0, limits=("a", "b"))
    hall.configure(15, limits=limited(a=(1, 10)))
    ((_, answer),) = hall.restarted(15).answers(15)
    assert answer.why == "the limit 'b' it waited for was deleted"


def test_deleting_a_limit_ends_its_closing_and_a_closing_that_ran_out_is_no_deletion():
    hall = Hall(limits=limited(a=(1, 10)))
    hall.gate.close("a", 1_000)
    hall.ask("x", 0, limits=("a",))
    hall.configure(5, limits={})
    ((_, answer),) = hall.answers(5)
    assert answer.why == "the limit 'a' it waited for was deleted"
    hall.gate.close("free", 20)
    hall.ask("y", 6, limits=("free",))
    ((_, answer),) = hall.answers(20)
    assert (answer.state, answer.why) == ("granted", "")
