"""Who is called when at a gate: order, priorities, several rules at once, and what it costs."""

from __future__ import annotations

import pytest

from detent.kernel.gate import meters
from detent.kernel.gate.forecast import Forecast, forecast
from detent.kernel.gate.lines import LOWER_SLOT, PATIENCE
from tests.unit.kernel.gate.hall import Hall, holding, limited, names, pooled


@pytest.mark.req("SEQ-LIM-1")
def test_a_window_counts_whole_ticks_and_one_more():
    hall = Hall(limits=limited(m=(2, 10)))
    assert [hall.ask(name, 5, limits=("m",)).state for name in "abc"] == [
        "granted",
        "granted",
        "deferred",
    ]
    assert hall.gate.next_due() == 5 + 10 + 1
    assert hall.call(15) == []
    assert hall.call(16) == ["c"]
    short = Hall(limits=limited(m=(1, 0.001)))  # a millisecond: the next tick may be too close
    short.ask("a", 5, limits=("m",))
    short.ask("b", 5, limits=("m",))
    assert names(short.drain()) == ["b"]
    assert short.gate.next_due() is None


def test_the_first_to_come_is_the_first_to_go_and_whoever_was_there_before_goes_first():
    hall = Hall(limits=limited(m=(1, 2)))
    for name in ["held", "a", "b", "c"]:
        hall.ask(name, 0, limits=("m",))
    hall.ask("d", 1, limits=("m",), back=True)
    hall.ask("e", 1, limits=("m",), back=True)
    assert names(hall.drain()) == ["d", "e", "a", "b", "c"]


@pytest.mark.req("CORE-SCH-3")
def test_low_priority_waits_for_a_bounded_number_of_others_and_not_longer():
    hall = Hall(limits=limited(m=(1, 1)))
    hall.ask("taken", 0, limits=("m",))
    hall.ask("low", 0, limits=("m",), priority=0)
    for n in range(3 * LOWER_SLOT):
        hall.ask(f"high{n}", 0, limits=("m",), priority=2)
    hall.ask("middle", 0, limits=("m",), priority=1)
    order = names(hall.drain())
    assert order.index("low") == LOWER_SLOT - 1
    assert order.index("middle") == 2 * LOWER_SLOT - 1
    alone = Hall(limits=limited(m=(1, 1)))
    alone.ask("taken", 0, limits=("m",))
    for name, priority in (("low", 0), ("high", 2)):
        alone.ask(name, 0, limits=("m",), priority=priority)
    assert names(alone.drain()) == ["high", "low"]


def test_how_long_low_priority_has_waited_survives_a_restart():
    hall = Hall(limits=limited(m=(1, 1)))
    hall.ask("taken", 0, limits=("m",))
    hall.ask("low", 0, limits=("m",), priority=0)
    for n in range(2 * LOWER_SLOT):
        hall.ask(f"high{n}", 0, limits=("m",), priority=2)
    served = []
    while "low" not in served:  # a new process for each ticket
        due = hall.gate.next_due()
        served += hall.call(due)
        hall = hall.restarted(due)
    assert len(served) == LOWER_SLOT


@pytest.mark.req("SEQ-LIM-2")
def test_a_retry_that_must_have_its_own_resource_is_not_overtaken_by_those_who_take_any():
    hall = Hall(limits=limited(box=(1, 5)), pools={"p": pooled(r={"key": "box"})})
    hall.ask("taken", 0, pool="p")
    hall.ask("retry", 1, pool="p", resource="r")
    for n in range(50):
        hall.ask(f"new{n}", 2, pool="p")
    assert names(hall.drain(most=3)) == ["retry", "new0", "new1"]


def test_two_pools_with_the_same_mailbox_share_it_in_the_order_of_asking():
    pools = {"p": pooled(r={"key": "box"}), "q": pooled(r={"key": "box"})}
    hall = Hall(limits=limited(box=(1, 5)), pools=pools)
    hall.ask("taken", 0, pool="p")
    for n in range(4):
        hall.ask(f"q{n}", 0, pool="q")
        hall.ask(f"p{n}", 0, pool="p")
        hall.ask(f"l{n}", 0, limits=("box",))
    assert names(hall.drain()) == [f"{who}{n}" for n in range(4) for who in "qpl"]


# several rules at once ---------------------------------------------------------------------------


@pytest.mark.req("SEQ-LIM-1")
def test_all_or_none_nothing_is_counted_for_whoever_waits():
    hall = Hall(limits=limited(a=(1, 10), b=(5, 10)))
    hall.ask("x", 0, limits=("a", "b"))
    assert hall.ask("y", 0, limits=("a", "b")).rule == "limit:a"
    assert [hall.ask(f"b{n}", 0, limits=("b",)).state for n in range(5)] == ["granted"] * 4 + [
        "deferred"
    ]
    assert names(hall.drain()) == ["y", "b4"]


def contended(*, passes):
    """One who needs both rules, among streams of others that leave never both of them free."""
    hall = Hall(limits=limited(a=(1, 4), b=(1, 6)))
    hall.ask("a", 0, limits=("a",))
    hall.ask("b", 2, limits=("b",))
    hall.ask("both", 2, limits=("a", "b"), priority=0)
    seen, tick = [], 2
    for n in range(passes):
        hall.ask(f"a{n}", tick, limits=("a",), priority=1)
        hall.ask(f"b{n}", tick, limits=("b",), priority=1)
        tick = hall.gate.next_due()
        seen += [(tick, name) for name in hall.call(tick)]
    return hall, seen


def test_who_needs_two_rules_is_served_though_never_both_are_left_free():
    hall, seen = contended(passes=200)
    assert "both" in [name for _, name in seen]
    assert len(seen) > 100, "the streams go on"
    assert not [bar for bar in hall.gate._line._bars.values() if bar.holder is not None]


def test_what_is_kept_for_one_is_free_again_as_soon_as_it_was_served():
    hall = holding()
    for n in range(3):
        assert hall.ask(f"a{n}", 4, limits=("a",), priority=2).state == "deferred"
        assert hall.ask(f"b{n}", 4, limits=("b",), priority=2).state == "deferred"
    assert hall.call(6) == []
    assert hall.call(7) == ["both"]
    assert names(hall.drain()) == ["a0", "b0", "a1", "b1", "a2", "b2"]


@pytest.mark.parametrize("end", ["leave", "close", "delete"])
def test_nothing_is_kept_for_one_who_has_left_or_has_long_to_wait(end):
    hall = holding()
    hall.ask("a0", 4, limits=("a",))
    assert hall.call(4) == []
    if end == "leave":
        hall.gate.leave("both:1", 5)
    elif end == "close":
        hall.gate.close("b", 1_000)
        assert hall.call(7) == ["a0"]  # found closed when it would have been free
        return
    else:
        hall.configure(5, limits=limited(a=(1, 4)))
        assert hall.call(5) == ["both"]
        assert names(hall.drain()) == ["a0"]
        return
    assert hall.call(5) == ["a0"]


def test_a_hold_never_lasts_longer_than_the_shortest_of_its_windows():
    hall, kept_since = Hall(limits=limited(a=(1, 4), b=(1, 60))), None
    hall.ask("a", 0, limits=("a",))
    hall.ask("b", 0, limits=("b",))
    hall.ask("both", 0, limits=("a", "b"))
    hall.gate._line.tickets["both:1"].passed = PATIENCE
    held = 0
    for tick in range(1, 80):
        hall.ask(f"a{tick}", tick, limits=("a",), priority=2)
        hall.call(tick)
        if any(bar.holder is not None for bar in hall.gate._line._bars.values()):
            kept_since = tick if kept_since is None else kept_since
            held = tick - kept_since
    assert held <= 5
    assert "both:1" not in hall.gate._line.tickets


# what is free is used ----------------------------------------------------------------------------


def test_a_ticket_that_left_wakes_nobody():
    hall = Hall(limits=limited(m=(1, 10)))
    hall.ask("a", 0, limits=("m",))
    hall.ask("b", 0, limits=("m",))
    assert hall.gate.next_due() == 11
    hall.gate.leave("b:1", 3)
    assert hall.gate.next_due() is None
    assert hall.call(11) == []


def test_a_call_that_is_left_is_the_next_ones_at_once():
    hall = Hall(limits=limited(m=(1, 10)))
    for name in "abc":
        hall.ask(name, 0, limits=("m",))
    assert [call.instance for call in hall.gate.call(11, 9)] == ["b"]
    hall.gate.leave("b:1", 12)
    assert hall.gate.next_due() == 12
    assert hall.call(12) == ["c"]


def test_a_call_that_is_taken_late_was_kept_and_counts_from_when_it_begins():
    hall = Hall(limits=limited(m=(1, 10)))
    for name in "abc":
        hall.ask(name, 0, limits=("m",))
    hall.gate.call(11, 9)
    assert hall.gate.take("b:1", 15).state == "granted"
    hall.begin("b", 16)
    assert hall.call(26) == []
    assert [call.instance for call in hall.gate.call(27, 9)] == ["c"]
    assert hall.ask("d", 40, limits=("m",)).state == "deferred"  # it is kept for c
    assert hall.gate.take("c:1", 45).state == "granted"
    assert hall.gate.next_due() is None
    hall.begin("c", 45)
    assert hall.drain() == [(56, "d", "")]


def test_a_call_taken_late_finds_no_room_where_its_limit_was_closed():
    hall = Hall(limits=limited(m=(1, 10)))
    for name in "ab":
        hall.ask(name, 0, limits=("m",))
    hall.gate.call(11, 9)
    hall.gate.close("m", 40)
    assert hall.gate.take("b:1", 15).state == "late"
    assert hall.ask("b:2", 15, limits=("m",), back=True).state == "deferred"
    assert hall.drain() == [(40, "b", "")]


@pytest.mark.req("SEQ-LIM-4")
def test_a_key_is_held_by_no_more_than_allowed_and_goes_to_the_next_in_line():
    hall = Hall()
    states = [hall.ask(name, 0, slot="k", slots=2).state for name in "abcd"]
    assert states == ["granted", "granted", "deferred", "deferred"]
    assert hall.gate.next_due() is None
    hall.gate.let_go("k", "a", 5)
    assert hall.call(5) == ["c"]
    hall.gate.let_go("k", "nobody", 6)
    assert hall.gate.next_due() is None
    assert hall.ask("e", 6, slot="other", slots=1).state == "granted"


@pytest.mark.req("SEQ-LIM-4")
def test_an_instance_that_asks_again_does_not_stand_in_its_own_way():
    hall = Hall()
    hall.ask("a:1", 0, slot="k", slots=1)
    assert hall.ask("a:2", 1, slot="k", slots=1).state == "granted"  # the first answer was lost
    hall.gate.leave("a:1", 2)  # and so is what it left behind
    assert hall.ask("b", 3, slot="k", slots=1).state == "deferred"
    hall.gate.leave("a:2", 4)
    assert hall.call(4) == ["b"]


# when, and at what cost --------------------------------------------------------------------------


def test_a_forecast_is_what_happens():
    hall = Hall(limits=limited(a=(2, 7), b=(1, 5)), pools={"p": pooled(r={"key": "b"})})
    for n in range(12):
        hall.ask(f"a{n}", 0, limits=("a",), priority=n % 3)
        hall.ask(f"p{n}", 0, pool="p", priority=n % 2)
        hall.ask(f"both{n}", 0, limits=("a", "b"))
    told = {name: forecast(hall.restarted(0).gate, name, 0).at for name in hall.gate._line.tickets}
    assert told == {f"{name}:1": tick for tick, name, _ in hall.drain()}


def test_a_forecast_says_that_only_a_change_can_help():
    hall = Hall(pools={"p": pooled(r={"enabled": False})})
    hall.ask("a", 0, slot="k", slots=1)
    hall.ask("b", 0, slot="k", slots=1)
    hall.ask("c", 0, pool="p")
    assert forecast(hall.restarted(0).gate, "b:1", 0) == Forecast("key:k", None, holders=("a",))
    assert forecast(hall.restarted(0).gate, "c:1", 0) == Forecast("pool:p", None)
    assert forecast(hall.restarted(0).gate, "nobody:1", 0) == Forecast("", None)


def counted_looks(waiting, monkeypatch):
    """How often a rule is looked at to serve ten tickets, of so many that wait."""
    looks = []
    real = meters.Meters.limit_free_at
    hall = Hall(limits=limited(m=(1, 1), n=(1, 2)))
    for n in range(waiting):
        hall.ask(f"m{n}", 0, limits=("m",), priority=n % 3)
        hall.ask(f"mn{n}", 0, limits=("m", "n"))
    monkeypatch.setattr(
        meters.Meters, "limit_free_at", lambda *args: looks.append(args) or real(*args)
    )
    assert len(hall.drain(most=10)) == 10
    monkeypatch.setattr(meters.Meters, "limit_free_at", real)
    return len(looks)


def test_serving_a_ticket_costs_the_same_however_many_wait(monkeypatch):
    assert counted_looks(100, monkeypatch) == counted_looks(10_000, monkeypatch)
