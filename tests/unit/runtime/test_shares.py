"""Fair shares between the tenants of one priority (SEQ-LIM-5)."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.model.limits import TENANT_QUANTUM
from detent.runtime.dues import DueStretch
from detent.runtime.ready import LOWER_SLOT, ReadyQueue
from detent.runtime.shares import Shares

TENANTS = ("acme", "beta", "cyan", "dodo")


def tenants(entries):
    return [entry.tenant for entry in entries]


def fill(queue, tenant, amount, *, priority=1, tick=1):
    for number in range(amount):
        queue.add(f"{tenant}-{queue.round:04}-{number:06}", tenant, priority, tick)


@pytest.mark.req("SEQ-LIM-5")
def test_a_tenant_with_a_few_instances_does_not_wait_for_one_with_a_hundred_thousand():
    queue = ReadyQueue()
    fill(queue, "acme", 100_000, tick=1)
    fill(queue, "beta", 10, tick=9)
    first = tenants(queue.pick(500))
    assert first.count("beta") == 10
    assert first.index("beta") <= TENANT_QUANTUM
    assert len(first) == 500


def test_a_tenant_keeps_its_own_order_and_gives_no_place_to_another_priority():
    queue = ReadyQueue()
    queue.add("b2", "beta", 1, 2)
    queue.add("b1", "beta", 1, 1)
    queue.add("a1", "acme", 1, 1)
    queue.add("a3", "acme", 3, 9)
    picked = [entry.id for entry in queue.pick(10)]
    assert picked[0] == "a3"
    assert picked.index("b1") < picked.index("b2")


@given(
    before=st.integers(0, 3 * TENANT_QUANTUM),
    places=st.integers(1, 3 * TENANT_QUANTUM),
    back=st.integers(0, 2 * TENANT_QUANTUM),
)
def test_charging_the_only_tenant_at_once_is_the_same_as_place_by_place(before, places, back):
    """Whatever came before, and however many places of them are given back afterwards."""
    stands = []
    for at_once in (True, False):
        shares = Shares()
        share = shares.of("acme")
        for _ in range(before):
            shares.charge(share)
        if at_once:
            shares.charge_only(share, places)
        else:
            for _ in range(places):
                shares.charge(share)
        after = (share.served, share.placed, shares._round, shares._order)
        shares.give_back([share] * min(back, places))
        other = shares.of("beta")
        stands.append((after, share.placed, other.served, shares.next().tenant))
    assert stands[0] == stands[1]


def test_more_than_a_turn_takes_of_one_tenant_is_picked_in_its_order_with_nothing_lost():
    queue = ReadyQueue()
    fill(queue, "acme", 1_000)
    queue.wake("acme-0000-000007", 0, DueStretch("acme", 1, 0))  # its older key is outdated
    queue.drop("acme-0000-000003")
    picked = queue.pick(400)
    queue.restore(picked[100:])
    picked = picked[:100] + queue.pick(400) + queue.pick(400) + queue.pick(400)
    expected = [f"acme-0000-{number:06}" for number in range(1_000) if number not in (3, 7)]
    assert [entry.id for entry in picked] == ["acme-0000-000007", *expected]
    assert not queue
    assert len(queue) == 0


@pytest.mark.parametrize("decided", [1, 3, 7, 20])
def test_turns_cut_short_by_their_budget_keep_the_shares_equal(decided):
    """A turn picks 50 and its time is over after a few: the rest neither loses nor gains."""
    queue = ReadyQueue()
    for tenant in TENANTS:
        fill(queue, tenant, 1_000)
    moved = []
    while len(moved) < 800:
        queue.round += 1
        picked = queue.pick(50)
        moved += tenants(picked[:decided])
        queue.restore(picked[decided:])
        amounts = [moved.count(tenant) for tenant in TENANTS]
        assert max(amounts) - min(amounts) <= TENANT_QUANTUM


def test_coming_and_going_does_not_pass_over_those_who_stay():
    """Two tenants with one new instance a turn, in turns with one place: the others move too."""
    queue = ReadyQueue()
    fill(queue, "acme", 100)
    fill(queue, "beta", 100)
    moved = []
    for _ in range(200):
        queue.round += 1
        for tenant in ("cyan", "dodo"):
            if not any(entry.tenant == tenant for entry in queue.entries()):
                fill(queue, tenant, 1)
        moved += tenants(queue.pick(1))
    for tenant in TENANTS:
        assert moved.count(tenant) >= 200 // (2 * TENANT_QUANTUM + 2) - 1
    assert abs(moved.count("acme") - moved.count("beta")) <= TENANT_QUANTUM


def test_who_comes_waits_for_at_most_two_quanta_of_each_of_the_others():
    for before in range(3 * 3 * TENANT_QUANTUM):
        queue = ReadyQueue()
        for tenant in TENANTS[:3]:
            fill(queue, tenant, 100)
        queue.pick(before)
        queue.round += 1
        fill(queue, "dodo", 1)
        assert tenants(queue.pick(500)).index("dodo") <= 2 * 3 * TENANT_QUANTUM


def test_under_critical_work_the_lower_places_are_shared_too():
    queue = ReadyQueue()
    fill(queue, "acme", 1_000, priority=0)
    queue.round += 1
    fill(queue, "beta", 10, priority=0)
    fill(queue, "acme", 5_000, priority=3)
    places = 2 * LOWER_SLOT * (10 + TENANT_QUANTUM)
    assert tenants(queue.pick(places)).count("beta") == 10


def test_nothing_is_kept_of_a_tenant_without_work():
    queue = ReadyQueue()
    for turn in range(50):
        queue.round += 1
        for number in range(40):
            fill(queue, f"t-{turn}-{number}", 2)
        picked = queue.pick(60)
        queue.restore(picked[30:])
        assert len(queue.pick(500)) == 50
        assert not queue
    (shares,) = (each for each in queue._shares if each._order)
    assert not shares.tenants
    assert len(shares._order) <= 200


def test_what_is_put_back_again_and_again_does_not_pile_up():
    queue = ReadyQueue()
    for tenant in TENANTS:
        fill(queue, tenant, 1_000)
    for _ in range(200):
        queue.round += 1
        queue.restore(queue.pick(400)[1:])
    assert len(queue._shares[1]._order) < 1_000


ADD = st.tuples(st.just("add"), st.sampled_from(TENANTS), st.integers(1, 12))
PICK = st.tuples(st.just("pick"), st.integers(1, 40), st.integers(0, 40))


@pytest.mark.req("SEQ-LIM-5", "CORE-SCH-3")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(ADD, PICK), max_size=60))
def test_while_two_tenants_both_have_work_neither_moves_a_quantum_more_than_the_other(script):
    """Whatever comes, is picked and is put back: over every time in which both have work."""
    queue, numbers = ReadyQueue(), count()
    waiting = dict.fromkeys(TENANTS, 0)
    ahead = {}  # (a, b) -> the most by which a may be ahead of b over a time that ends now
    for verb, first, second in script:
        queue.round += 1
        if verb == "add":
            for _ in range(second):
                queue.add(f"i{next(numbers):05}", first, 1, 1)
            waiting[first] += second
            continue
        picked = queue.pick(first)
        queue.restore(picked[second:])
        for entry in picked[:second]:
            _move(entry.tenant, waiting, ahead)
    left = sum(waiting.values())
    assert len(queue.pick(10_000)) == left
    assert not queue


def _move(tenant, waiting, ahead):
    for other in TENANTS:
        if other == tenant:
            continue
        if waiting[tenant] and waiting[other]:
            ahead[tenant, other] = max(ahead.get((tenant, other), 0), 0) + 1
            ahead[other, tenant] = max(ahead.get((other, tenant), 0), 0) - 1
            assert ahead[tenant, other] <= TENANT_QUANTUM
        else:
            ahead[tenant, other] = ahead[other, tenant] = 0
    waiting[tenant] -= 1
    if not waiting[tenant]:
        for other in TENANTS:
            ahead[tenant, other] = ahead[other, tenant] = 0
