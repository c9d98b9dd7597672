"""Two writers on one store: what one loses it drops, and goes on with the rest."""

from __future__ import annotations

import pytest

from detent.model.decision import HandlerSpec
from detent.model.ids import partition_of
from detent.model.inputs import Commanded, encode_input
from detent.model.link import MarkRequest, Submission, Submit
from detent.runtime.settings import WriterSettings
from tests.unit.runtime.writer_rig import Rig

SHARING = WriterSettings(sharing=True, lease_ttl_ms=30_000, lease_retry_ms=1_000)


def pair(tmp_path):
    """Two writers that share a file, as two processes share a server."""
    one = Rig(tmp_path / "s.db", mode="wall", settings=SHARING)
    two = Rig(tmp_path / "s.db", mode="wall", settings=SHARING, owner="two", hands=one.hands)
    two.store.close()
    two.store = one.store
    two.writer = type(one.writer)(one.store, two.clock, SHARING, two.owner, two.chance)
    two.numbers = iter(range(10_000, 20_000))
    one.open()
    return one, two.open()


def shares(rig):
    owned = {row.p: row.owner for row in rig.store.partitions()}
    return [sum(name == owner for name in owned.values()) for owner in ("one", "two")]


def started(rig, wanted, handler="work"):
    """A start whose instance lies in one of these partitions."""
    made = rig.define()
    while True:
        start = rig.start(made)
        if partition_of(start.instance, 16) in wanted:
            return start


def settle(*rigs):
    """Let everybody look around until nothing moves."""
    for _ in range(4):
        for rig in rigs:
            rig.hands.pass_ms(500)
            rig.settle()


def take_away(rig, partitions):
    """Another owner takes some partitions over, as after a pause."""
    other = rig.owner._replace(id="other", lease_until_ms=rig.clock.wall_ms() + 90_000)
    rig.store.acquire(other, partitions, rig.clock.wall_ms() + 60_000, other.lease_until_ms)


@pytest.mark.req("CORE-SCH-4")
def test_a_second_writer_opens_without_any_partition_and_gets_its_share(tmp_path):
    one, two = pair(tmp_path)
    assert shares(one) == [16, 0]
    assert two.decided[-1].held == ""
    settle(one, two)
    assert shares(one) == [8, 8]
    one.writer.close()
    settle(two)
    assert shares(two) == [0, 16]


@pytest.mark.req("CORE-SCH-4")
def test_what_is_sent_to_the_wrong_writer_is_left_for_the_right_one_and_answered(tmp_path):
    one, two = pair(tmp_path)
    settle(one, two)
    theirs = [row.p for row in one.store.partitions() if row.owner == "two"]
    start = started(one, theirs)
    one.send(start)
    one.settle()
    assert one.verdict(start).ok
    two.writer.turn()
    settle(two)
    assert len(one.journal(start.instance)) == 1
    told = encode_input(Commanded(verb="pause", id="p-1"))
    asked = Submission(start.instance, told, next(one.acks), "p-1", True)
    one.send(asked)
    one.settle()
    assert asked.ack not in one.verdicts  # it is the kernel's to say
    settle(two)
    settle(one)
    assert one.verdict(asked).ok
    assert one.row(start.instance).state == "paused"


@pytest.mark.req("CORE-SCH-4", "CORE-SCH-5")
def test_one_lost_fence_rolls_the_commit_back_and_the_rest_is_decided_again():
    rig = Rig(mode="wall").open()
    rig.settle()
    lost, kept = started(rig, [3]), started(rig, [5])
    take_away(rig, [3])
    rig.send(lost, kept)
    first = rig.writer.turn()
    assert first.dropped == [3]
    assert first.held == ""
    assert (first.acks, first.orders) == ([], [])
    assert rig.row(lost.instance) is None
    rig.settle()
    assert len(rig.journal(kept.instance)) == 1
    assert rig.verdict(kept).ok
    assert rig.verdict(lost).ok  # left for the owner of its partition
    assert rig.row(lost.instance).state == "scheduled"
    rig.check_chain()


@pytest.mark.req("CORE-SCH-5")
def test_a_writer_that_wakes_up_steps_down_from_what_it_lost_only():
    rig = Rig(mode="wall").open()
    rig.settle()
    rig.hands.pass_ms(40_000)
    take_away(rig, [0, 1])
    decided = rig.writer.turn()
    assert decided.dropped == [0, 1]
    assert decided.held == ""
    start = started(rig, [7])
    rig.send(start)
    rig.settle()
    assert rig.verdict(start).ok
    mine = [row.p for row in rig.store.partitions() if row.owner == "one"]
    assert mine == list(range(2, 16))


@pytest.mark.req("CORE-EFF-4", "CORE-SCH-5")
def test_a_start_mark_is_fenced_by_the_partition_of_its_effect():
    rig = Rig(mode="wall").open()
    rig.register(HandlerSpec(name="work", doubt="once"))
    start = started(rig, [9])
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    take_away(rig, [9])  # partition 0, by which such a commit was fenced, is ours
    rig.writer.submit(Submit([], [MarkRequest([order.key], [order.instance])], []))
    seen = [rig.writer.turn(), rig.writer.turn()]
    assert [each.marked for each in seen if each] == [[] for each in seen if each]
    assert [key for each in seen if each for key in each.lost] == [order.key]
    assert rig.store.flights([order.key]) == {}
