"""Clocks: time goes forwards only, and only as its mode says."""

from __future__ import annotations

import math

import pytest

from detent.model.errors import InvariantViolation, RequestError
from detent.runtime.clock import SteppedClock, VirtualClock, WallClock, make_clock
from tests.unit.runtime.writer_rig import EPOCH_MS, Hands


def wall_clock(hands):
    return WallClock(EPOCH_MS, 100, hands.wall, hands.boot)


@pytest.mark.req("CORE-CLK-1")
def test_the_wall_clock_counts_whole_resolutions_since_the_epoch():
    hands = Hands(wall_ms=EPOCH_MS + 1_050)
    clock = wall_clock(hands)
    assert clock.tick() == 10
    hands.pass_ms(49)
    assert clock.tick() == 10
    hands.pass_ms(1)
    assert clock.tick() == 11


@pytest.mark.req("CORE-CLK-4")
def test_setting_the_wall_clock_of_the_machine_moves_no_tick():
    hands = Hands(wall_ms=EPOCH_MS + 1_000)
    clock = wall_clock(hands)
    hands.wall_ms += 86_400_000
    assert clock.tick() == 10
    hands.wall_ms -= 2 * 86_400_000
    assert clock.tick() == 10
    hands.boot_ms += 200
    assert clock.tick() == 12
    assert clock.wall_ms() == EPOCH_MS + 1_200


@pytest.mark.req("CORE-CLK-4")
def test_a_clock_started_behind_the_last_written_tick_stands_until_the_wall_has_passed_it():
    hands = Hands(wall_ms=EPOCH_MS - 5_000)
    clock = wall_clock(hands)
    assert clock.tick() == 0
    clock.resume(20)
    assert clock.begin() == 20
    hands.pass_ms(7_000)
    assert clock.tick() == 20
    hands.pass_ms(100)
    assert clock.tick() == 21


def test_the_wall_clock_says_how_long_to_sleep_and_never_less_than_nothing():
    hands = Hands(wall_ms=EPOCH_MS + 1_000)
    clock = wall_clock(hands)
    assert clock.seconds_until(12) == pytest.approx(0.2)
    assert clock.seconds_until(10) == 0
    assert clock.seconds_until(3) == 0


@pytest.mark.req("CORE-CLK-6")
def test_the_stepped_clock_gives_one_tick_per_turn_an_interval_apart():
    hands = Hands()
    clock = SteppedClock(EPOCH_MS, 100, 1_000, hands.wall, hands.boot)
    clock.resume(7)
    assert clock.begin() == 8
    assert clock.begin() is None
    hands.pass_ms(999)
    assert clock.begin() is None
    assert clock.tick() == 8
    assert clock.seconds_until(9) == pytest.approx(0.001)
    assert clock.seconds_until(10) == pytest.approx(1.001)
    hands.pass_ms(10_000)  # a machine that slept gets one tick, not ten
    assert clock.begin() == 9
    assert clock.begin() is None


@pytest.mark.req("CORE-CLK-5")
def test_the_virtual_clock_stands_until_it_is_moved_and_cannot_be_moved_back():
    clock = VirtualClock(EPOCH_MS, 100)
    assert clock.begin() == 0
    assert clock.seconds_until(1) == math.inf
    clock.advance(50)
    assert clock.tick() == 50
    assert clock.wall_ms() == EPOCH_MS + 5_000
    with pytest.raises(RequestError, match="cannot go back"):
        clock.advance(49)
    assert clock.tick() == 50


def test_a_store_names_one_of_three_clocks():
    made = [make_clock(mode, EPOCH_MS, 100, 1_000).mode for mode in ("wall", "stepped", "virtual")]
    assert made == ["wall", "stepped", "virtual"]
    with pytest.raises(InvariantViolation):
        make_clock("sundial", EPOCH_MS, 100, 1_000)
