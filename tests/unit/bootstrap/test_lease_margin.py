"""When a call may start: while the engine's lease is valid, with the margin."""

from __future__ import annotations

import threading

import pytest

from detent import Engine
from detent.model.link import Decided


class Hand:
    """A clock that says what the test says."""

    def __init__(self, wall_ms):
        self.now = wall_ms

    def wall_ms(self):
        return self.now


def tell(parts, decided):
    """Hand over what a turn decided, and wait until the dispatcher has taken it."""
    parts.decided(decided)
    seen = threading.Event()
    parts._dispatcher._loop.call_soon_threadsafe(seen.set)
    assert seen.wait(10)


@pytest.mark.req("CORE-EFF-4", "CORE-SCH-5")
def test_a_call_may_start_until_the_margin_before_the_lease_ends(tmp_path):
    with Engine(tmp_path / "s.db") as engine:
        parts = engine._parts
        clock, parts._clock = parts._clock, Hand(0)
        tell(parts, Decided(lease_until_ms=50_000))
        margin = parts.settings.turns.lease_margin_ms
        assert margin == 2_000
        for now, valid in ((0, True), (47_999, True), (48_000, False), (50_000, False)):
            parts._clock.now = now
            assert parts.lease_valid() is valid
        parts._clock.now = 48_000
        tell(parts, Decided(lease_until_ms=60_000))  # as an idle renewal tells it
        assert parts.lease_valid()
        parts._clock = clock


def test_a_lost_writer_does_not_make_a_lease_valid_for_ever(tmp_path):
    with Engine(tmp_path / "s.db") as engine:
        parts = engine._parts
        clock, parts._clock = parts._clock, Hand(10)
        tell(parts, Decided(lease_until_ms=5_000))
        tell(parts, Decided(held="store.unavailable"))  # says nothing about the lease
        assert parts.lease_valid()
        parts._clock.now = 3_000
        assert not parts.lease_valid()
        parts._clock = clock


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_the_writer_reckons_by_the_engines_clock(tmp_path, writer):
    with Engine(tmp_path / "s.db", writer=writer) as engine:
        parts = engine._parts
        tell(parts, Decided())
        left = parts._dispatcher.lease_until_ms - parts._clock.wall_ms()
        assert 0 < left <= parts.settings.turns.lease_ttl_ms + 1
