"""Circuit breakers in the writer: what is counted once, what a failed commit takes back."""

from __future__ import annotations

import pytest

from detent.definition import step
from detent.kernel.asking import gate_id
from detent.kernel.gate.breakers import read_breaker
from detent.model.errors import StoreError
from detent.model.ids import partition_of, timed_id
from detent.model.inputs import EffectFailed, encode_input
from detent.model.link import Submission
from detent.runtime.settings import WriterSettings
from detent.runtime.writer import Writer
from tests.unit.runtime.writer_rig import EPOCH_MS, Rig, with_faults

HERE = partition_of(gate_id("default"), 16)
FOUR = WriterSettings(breaker_threshold=4, breaker_cooldown_ms=1_000)


def one_step(rig):
    return rig.define("one", [step("a", "work")])


def failed(order):
    told = EffectFailed(key=order.key, message="no")
    return Submission(order.instance, encode_input(told))


def breaker(rig):
    (row,) = rig.store.breaker_rows(None, 10)
    return read_breaker(row.body)


def orders_of(rig, made, count, **options):
    rig.send(*[rig.start(made, **options) for _ in range(count)])
    return rig.orders(rig.settle())


@pytest.mark.req("SEQ-HND-5")
def test_an_outcome_is_counted_in_the_commit_that_takes_it_in(tmp_path):
    rig = Rig(tmp_path / "s.db", settings=FOUR).open()
    orders = orders_of(rig, one_step(rig), 3)
    assert rig.store.breaker_rows(None, 10) == []
    faulty = with_faults(rig, opened=True)
    rig.send(*[failed(order) for order in orders])
    rig.settle()
    (commit,) = [each for each in faulty.commits if each.gate_rows]
    assert [row.kind for row in commit.gate_rows] == ["breaker"]
    assert len(commit.changes) == 3
    assert breaker(rig).failures == 3
    rig.check_chain()


@pytest.mark.req("SEQ-HND-5")
def test_a_commit_that_fails_counts_nothing_and_the_next_one_counts_once(tmp_path):
    rig = Rig(tmp_path / "s.db", settings=FOUR).open()
    orders = orders_of(rig, one_step(rig), 2)
    faulty = with_faults(rig, opened=True)
    fail = [True]

    def before(commit):
        if commit.gate_rows and fail:
            fail.clear()
            raise StoreError("store.unavailable", "busy")

    faulty.before = before
    rig.send(*[failed(order) for order in orders])
    rig.turn()
    assert rig.store.breaker_rows(None, 10) == []
    rig.hands.pass_ms(60_000)
    rig.settle()
    assert breaker(rig).failures == 2
    rig.check_chain()


def two_writers():
    """Two writers of one store, which a file would not let in: one has the tenant's gate only."""

    def settings(*partitions):
        return WriterSettings(partitions=partitions, breaker_threshold=4, breaker_cooldown_ms=1_000)

    away = Rig(settings=settings(*(p for p in range(16) if p != HERE)), owner="away").open()
    home = Rig(settings=settings(HERE), owner="home")
    home.store = away.store
    home.writer = Writer(home.store, home.clock, home.settings, home.owner, home.chance)
    return away, home.open()


def elsewhere(rig, made, count):
    """Instances in partitions whose writer has not the tenant's gate."""
    numbers = (timed_id(EPOCH_MS + n, bytes(10)) for n in range(10_000))
    found = [id for id in numbers if partition_of(id, 16) in rig.settings.partitions]
    return [rig.start(made, instance=id) for id in found[:count]]


@pytest.mark.req("SEQ-HND-5", "SEQ-LIM-1")
def test_a_writer_without_the_gate_reports_to_it_and_asks_it():
    """One writer has the tenant's gate, the other has the instances."""
    away, home = two_writers()
    made = one_step(away)
    away.send(*elsewhere(away, made, 4))
    orders = away.orders(away.settle())
    assert len(orders) == 4
    away.send(*[failed(order) for order in orders])
    away.settle()
    assert home.store.breaker_rows(None, 10) == []

    together(home, away)
    assert (breaker(home).failures, breaker(home).state(0)) == (4, "open")
    late = elsewhere(away, made, 6)[4:]
    away.send(*late)
    assert away.orders(away.settle()) == []
    together(home, away)
    assert [away.row(each.instance).state for each in late] == ["scheduled"] * 2

    for rig in (home, away):
        rig.clock.advance(20)
    (probe,) = together(home, away)
    away.send(away.applied(probe))
    (other,) = together(home, away)
    assert {probe.instance, other.instance} == {each.instance for each in late}
    assert breaker(home).failures == 0
    home.check_chain()


@pytest.mark.req("SEQ-HND-5")
def test_a_writer_without_the_gate_lets_one_probe_pass_where_there_is_a_fallback():
    away, home = two_writers()
    made = away.define("one", [step("a", "work", fallback_handler="other")])
    starts = elsewhere(away, made, 9)
    away.send(*starts[:4])
    away.send(*[failed(order) for order in away.orders(away.settle())])
    away.settle()
    away.send(starts[4])
    (order,) = away.orders(away.settle())
    assert order.handler == "other"  # what it reported itself it knows at once
    together(home, away)
    for rig in (home, away):
        rig.clock.advance(20)
    away.send(*starts[5:7])
    orders = away.orders(away.settle())
    assert sorted(order.handler for order in orders) == ["other", "work"]
    together(home, away)
    away.send(starts[7])
    (order,) = away.orders(away.settle())
    assert order.handler == "other"  # the probe is under way
    away.send(away.applied(next(order for order in orders if order.handler == "work")))
    together(home, away)
    assert breaker(home).failures == 0
    away.send(starts[8])
    (order,) = away.orders(away.settle())
    assert order.handler == "work"


def together(*rigs):
    """Both go on until neither has anything to do."""
    seen = []
    for _ in range(6):
        for rig in rigs:
            rig.hands.pass_ms(1_000)
            rig.send(control=[])
            rig.writer._parts.inbox.look_now = True
            seen += rig.settle()
    return rigs[0].orders(seen)
