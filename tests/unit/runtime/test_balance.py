"""Sharing out: each process reckons its own share, and together they own each partition once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detent.ports.store import Owner, Partition
from detent.runtime.balance import PINNED, share_out

NOW = 1_000


def row(p, owner="", until=2_000):
    return Partition(p, owner, 1, until if owner else 0, 0, 0, b"")


def owner(id, until=2_000):
    return Owner(id, "host", 1, until, "")


def test_one_alone_takes_everything_that_is_free():
    rows = [row(0), row(1), row(2, "dead", until=NOW)]
    assert share_out("a", [], rows, [], NOW) == ([0, 1, 2], [])


def test_a_newcomer_waits_until_the_others_have_given_up_its_share():
    rows = [row(p, "a") for p in range(4)]
    owners = [owner("a"), owner("b")]
    assert share_out("b", [], rows, owners, NOW) == ([], [])
    assert share_out("a", [0, 1, 2, 3], rows, owners, NOW) == ([], [2, 3])


def test_one_whose_lease_is_over_has_no_share():
    rows = [row(0, "a"), row(1, "b", until=NOW)]
    assert share_out("a", [0], rows, [owner("a"), owner("b", until=NOW)], NOW) == ([1], [])


def test_what_a_pinned_process_holds_is_not_shared_out_and_it_has_no_share():
    pinned = f"z{PINNED}"
    rows = [row(0, pinned), row(1, pinned), row(2), row(3)]
    assert share_out("a", [], rows, [owner(pinned)], NOW) == ([2, 3], [])
    over = [row(0, pinned, until=NOW), row(1, pinned, until=NOW), row(2, "a"), row(3, "a")]
    assert share_out("a", [2, 3], over, [owner(pinned, until=NOW)], NOW) == ([0, 1], [])


@given(
    st.integers(1, 40),
    st.lists(st.integers(0, 5), max_size=40),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_in_whatever_order_they_look_all_is_owned_once_and_evenly(count, held, members, rng):
    names = [f"m{n}" for n in range(members)]
    owned = {p: (names + [""] * 6)[held[p]] if p < len(held) else "" for p in range(count)}
    owners = [owner(name) for name in names]
    for _ in range(3):
        rng.shuffle(names)
        for me in names:
            mine = [p for p in range(count) if owned[p] == me]
            rows = [row(p, owned[p]) for p in range(count)]
            moves = share_out(me, mine, rows, owners, NOW)
            assert not (moves.take and moves.give)
            assert all(not owned[p] for p in moves.take)
            assert all(owned[p] == me for p in moves.give)
            owned.update(dict.fromkeys(moves.take, me))
            owned.update(dict.fromkeys(moves.give, ""))
    shares = [list(owned.values()).count(name) for name in names]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1
