"""Correlation by itself: who gets an event, what is freed, what is forgotten, what is full."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.kernel.correlation import (
    Correlation,
    Event,
    Registered,
    arrive,
    kept_correlation,
    leave,
    next_sweep,
    read_correlation,
    register,
    sweep,
    take_satisfied,
)
from detent.model import limits
from detent.model.errors import RequestError

TTL, REMEMBERED = limits.EVENT_TTL_MS, limits.EVENT_REMEMBERED_MS


def an_event(id, name="a", at=0, payload=None):
    return Event(id=id, name=name, producer=id, at=at, payload=payload)


def a_wait(wait, *names, count=0):
    return Registered(wait=wait, instance=f"of-{wait}", token=1, names=list(names), count=count)


def test_an_event_goes_to_the_first_wait_that_still_wants_it():
    kept = Correlation(key="k")
    register(kept, a_wait("w1", "a", "b"))
    register(kept, a_wait("w2", "a", count=1))
    assert [arrive(kept, an_event(id)).wait for id in ("1", "2")] == ["w1", "w2"]
    assert arrive(kept, an_event("3")) is None
    assert [each.wait for each in take_satisfied(kept)] == ["w2"]
    assert [each.wait for each in kept.waits] == ["w1"]


def test_what_a_wait_leaves_goes_to_the_others_in_the_order_in_which_it_came():
    kept = Correlation(key="k")
    register(kept, a_wait("w1", "a", count=3))
    register(kept, a_wait("w2", "a", count=1))
    for id in ("1", "2"):
        arrive(kept, an_event(id))
    assert [event.id for event in leave(kept, "w1")] == ["1", "2"]
    assert [event.status for event in kept.events] == ["consumed", "pending"]
    assert [event.wait for event in kept.events] == ["w2", ""]
    assert leave(kept, "nobody") == []


def test_a_satisfied_wait_that_is_left_gives_its_events_back():
    kept = Correlation(key="k")
    arrive(kept, an_event("1"))
    register(kept, a_wait("w1", "a", count=1))
    assert take_satisfied(kept)
    assert [event.id for event in leave(kept, "w1")] == ["1"]
    assert kept.events[0].status == "pending"


def test_pending_events_expire_and_settled_ones_are_forgotten_later():
    kept = Correlation(key="k")
    arrive(kept, an_event("1", at=10))
    assert next_sweep(kept, 10) == 10 + TTL
    assert sweep(kept, 10 + TTL - 1) == []
    assert [event.id for event in sweep(kept, 10 + TTL)] == ["1"]
    register(kept, a_wait("w1", "a", count=1))
    assert kept.events[0].status == "expired"
    assert next_sweep(kept, 10 + TTL) == 10 + REMEMBERED
    sweep(kept, 10 + REMEMBERED)
    assert (kept.events, next_sweep(kept, 10 + REMEMBERED)) == ([], None)


def test_an_event_kept_for_an_open_wait_never_expires():
    kept = Correlation(key="k")
    register(kept, a_wait("w1", "a", "b"))
    arrive(kept, an_event("1"))
    assert sweep(kept, 10 * REMEMBERED) == []
    assert kept.events[0].status == "consumed"
    assert next_sweep(kept, 10 * REMEMBERED) == 11 * REMEMBERED


@pytest.mark.parametrize(("limit", "value"), [("EVENTS_KEPT", 2), ("EVENTS_KEPT_BYTES", 10)])
def test_a_full_key_forgets_what_is_settled_and_then_refuses(monkeypatch, limit, value):
    monkeypatch.setattr(limits, limit, value)
    kept = Correlation(key="k")
    register(kept, a_wait("w1", "a", count=1))
    arrive(kept, an_event("1", payload="xxx"))
    take_satisfied(kept)
    arrive(kept, an_event("2", payload="xxx"))
    arrive(kept, an_event("3", payload="xxx"))
    assert [event.id for event in kept.events] == ["2", "3"]
    with pytest.raises(RequestError, check=lambda error: error.code == "event.full"):
        arrive(kept, an_event("4", payload="xxx"))
    assert [event.id for event in kept.events] == ["2", "3"]


def test_only_so_many_steps_wait_for_a_key(monkeypatch):
    monkeypatch.setattr(limits, "EVENT_WAITS", 1)
    kept = Correlation(key="k")
    register(kept, a_wait("w1", "a"))
    with pytest.raises(RequestError, check=lambda error: error.code == "event.full"):
        register(kept, a_wait("w2", "a"))
    assert len(kept.waits) == 1


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("event"), st.sampled_from("abc")),
        st.tuples(st.just("wait"), st.sampled_from(["a", "ab", "abc"]), st.integers(0, 3)),
        st.tuples(st.just("leave"), st.integers(0, 8)),
    ),
    max_size=30,
)


@given(ACTS)
def test_an_event_is_never_with_two_waits_nor_pending_beside_a_wait_that_wants_it(acts):
    kept = Correlation(key="k")
    answered = {}
    for number, (kind, *rest) in enumerate(acts):
        if kind == "event":
            arrive(kept, an_event(str(number), rest[0]))
        elif kind == "wait":
            register(kept, a_wait(str(number), *rest[0], count=rest[1]))
        else:
            leave(kept, str(rest[0]))
            answered.pop(str(rest[0]), None)
        for ready in take_satisfied(kept):
            answered[ready.wait] = [event.id for event in kept.kept_for(ready.wait)]
            assert len(answered[ready.wait]) == (ready.count or len(ready.names))
        kept = read_correlation(kept_correlation(kept))
        pending = Counter(event.name for event in kept.events if event.status == "pending")
        for wait in kept.waits:
            have = [event.name for event in kept.kept_for(wait.wait)]
            open_names = wait.names if wait.count else [n for n in wait.names if n not in have]
            assert not any(pending[name] for name in open_names)
    given_out = [id for ids in answered.values() for id in ids]
    assert len(given_out) == len(set(given_out))
