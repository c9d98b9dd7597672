"""Lease and fence: one writer, and a stale one cannot commit."""

from __future__ import annotations

import pytest

from detent.definition import step, wait
from detent.model.errors import StoreError
from detent.runtime.settings import WriterSettings
from tests.unit.runtime.writer_rig import Rig, with_faults


def test_an_idle_writer_renews_all_its_leases_when_less_than_two_thirds_are_left():
    rig = Rig(mode="wall").open()
    until = rig.decided[0].lease_until_ms
    assert until == rig.clock.wall_ms() + 30_000
    rig.settle()
    rig.hands.pass_ms(9_000)
    rig.settle()
    assert {row.lease_until_ms for row in rig.store.partitions()} == {until}
    rig.hands.pass_ms(1_000)
    assert rig.writer.idle_seconds() == 0
    decided = rig.turn()
    assert decided.lease_until_ms == until + 10_000
    rows = rig.store.partitions()
    assert {row.lease_until_ms for row in rows} == {until + 10_000}
    assert {row.tick for row in rows} == {rig.clock.tick()}
    assert sum(row.turn for row in rows) == 0


def test_a_busy_writer_renews_the_partitions_its_commits_do_not_touch():
    rig = Rig(mode="wall").open()
    start = rig.start(rig.define(blocks=[wait("w", signal="never")]))
    rig.send(start)
    for _ in range(60):
        rig.hands.pass_ms(1_000)
        rig.send(rig.signal(start.instance))
        rig.turn()
    now = rig.clock.wall_ms()
    assert all(row.lease_until_ms > now + 10_000 for row in rig.store.partitions())


@pytest.mark.req("CORE-SCH-4")
def test_a_second_writer_is_refused_while_the_first_lives_and_let_in_when_it_closed(tmp_path):
    first = Rig(tmp_path / "s.db").open()
    second = Rig(tmp_path / "s.db", owner="two")
    with pytest.raises(StoreError) as caught:
        second.open()
    assert caught.value.code == "store.owned"
    first.writer.close()
    assert second.open().decided[0].held == ""


@pytest.mark.req("CORE-SCH-5")
def test_a_writer_whose_partitions_were_taken_cannot_commit_and_tells_nobody():
    rig = Rig(mode="wall").open()
    start = rig.start(rig.define())
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    rig.hands.pass_ms(40_000)
    other = rig.owner._replace(id="other", lease_until_ms=rig.clock.wall_ms() + 30_000)
    taken = rig.store.acquire(other, range(16), rig.clock.wall_ms(), other.lease_until_ms)
    assert len(taken) == 16
    before = rig.journal(start.instance)
    asked = rig.command(start.instance, "pause", id="p-1")
    rig.send(rig.applied(order), asked)
    decided = rig.turn()
    assert decided.held == "store.fenced"
    assert decided.orders == []
    assert rig.verdict(asked).code == "store.fenced"
    assert rig.journal(start.instance) == before
    rig.hands.pass_ms(1_000)
    assert rig.turn().held == "store.owned"

    rig.store.release("other")
    rig.hands.pass_ms(1_000)
    seen = rig.settle()
    assert seen[0].held == ""
    assert [each.block for each in rig.orders(seen)] == ["b"]
    assert len(rig.journal(start.instance)) == 2
    rig.check_chain()


@pytest.mark.req("CORE-SCH-5")
def test_a_fence_lost_between_renewals_is_found_by_the_commit_itself():
    rig = Rig(mode="wall", settings=WriterSettings(lease_ttl_ms=30_000)).open()
    rig.settle()
    made = rig.define(blocks=[step("a", "work")])
    now = rig.clock.wall_ms() + 60_000
    other = rig.owner._replace(id="other", lease_until_ms=now + 30_000)
    rig.store.acquire(other, range(16), now, now + 30_000)
    start = rig.start(made)
    rig.send(start)
    assert rig.turn().held == "store.fenced"
    assert rig.row(start.instance) is None


@pytest.mark.req("CORE-CLK-4")
def test_a_jump_over_the_limit_holds_until_it_is_accepted():
    rig = Rig(mode="wall").open()
    start = rig.start(rig.define(blocks=[wait("w", duration=1_000), step("a", "work")]))
    rig.send(start)
    rig.settle()
    rig.hands.pass_ms(8 * 86_400_000)
    decided = rig.turn()
    assert decided.held == "clock.jump"
    refused = rig.signal(start.instance)
    rig.send(refused)
    rig.turn()
    assert rig.verdict(refused).code == "clock.jump"
    assert len(rig.journal(start.instance)) == 1
    rig.control("accept_clock")
    seen = rig.settle()
    assert seen[0].held == ""
    assert len(rig.orders(seen)) == 1


@pytest.mark.req("CORE-CLK-4")
def test_a_jump_while_the_machine_was_off_is_held_at_open_and_accepted_by_a_setting(tmp_path):
    rig = Rig(tmp_path / "s.db", mode="wall").open()
    rig.send(rig.start(rig.define()))
    rig.settle()
    rig.hands.pass_ms(8 * 86_400_000)
    rig = rig.restart()
    assert rig.decided[0].held == "clock.jump"
    rig.store.put_setting("clock.accepted", str(rig.clock.tick()))
    rig.hands.pass_ms(10_000)
    assert rig.settle()[0].held == ""


@pytest.mark.req("CORE-CLK-4")
def test_a_jump_below_the_limit_is_no_reason_to_stop(tmp_path):
    rig = Rig(tmp_path / "s.db", mode="wall").open()
    rig.send(rig.start(rig.define(blocks=[wait("w", duration=1_000), step("a", "work")])))
    rig.settle()
    rig.hands.pass_ms(6 * 86_400_000)
    rig = rig.restart()
    assert rig.decided[0].held == ""
    assert len(rig.orders(rig.settle())) == 1


@pytest.mark.req("CORE-CLK-4")
def test_a_wall_clock_set_back_between_two_runs_moves_no_turn_back(tmp_path):
    rig = Rig(tmp_path / "s.db", mode="wall").open()
    start = rig.start(rig.define(blocks=[wait("w", signal="go"), step("a", "work")]))
    rig.send(start)
    rig.settle()
    rig.hands.wall_ms -= 600_000
    rig = rig.restart()
    rig.send(rig.signal(start.instance))
    rig.settle()
    first, second = (row.tick for row in rig.journal(start.instance))
    assert second == first


def test_a_seal_covers_all_roots_whenever_its_interval_is_full(tmp_path):
    from detent.kernel.chain import GENESIS, seal_of

    assert WriterSettings().seal_every_turns == 1_000
    rig = Rig(tmp_path / "s.db", settings=WriterSettings(seal_every_turns=10)).open()
    start = rig.start(rig.define(blocks=[wait("w", signal="never")]))
    rig.send(start)
    rig.settle()

    def work(rig, times):
        for _ in range(times):
            rig.send(rig.signal(start.instance))
            rig.settle()

    work(rig, 24)
    rig = rig.restart()
    work(rig, 30)
    kept = rig.store.seals(0, 100)
    assert [seal.n for seal in kept] == [1, 2, 3, 4, 5]
    digest = GENESIS
    for seal in kept:
        roots = [seal.roots[at : at + 32] for at in range(0, len(seal.roots), 32)]
        assert len(roots) == 16
        assert seal.digest == seal_of(digest, seal.n, seal.tick, roots)
        digest = seal.digest
    rig.check_chain()


def test_old_ids_are_forgotten_after_the_window_and_not_before(monkeypatch):
    from detent.runtime import turn

    monkeypatch.setattr(turn, "FORGET_EVERY_TURNS", 1)
    rig = Rig(settings=WriterSettings(dedupe_window_ms=10_000)).open()
    start = rig.start(rig.define(blocks=[wait("w", signal="never")]))
    rig.send(start, rig.signal(start.instance, id="s-1"))
    rig.settle()
    for tick, known in ((99, True), (100, True), (102, False)):
        rig.clock.advance(tick)
        rig.send(rig.signal(start.instance))
        rig.settle()
        assert rig.store.verdict("s-1")[0] is known


def test_the_store_that_is_full_at_a_renewal_holds_too():
    rig = Rig(mode="wall")
    faulty = with_faults(rig)
    rig.open()
    rig.settle()

    def full(*args):
        raise StoreError("store.full", "no room")

    faulty.renew = full
    rig.hands.pass_ms(10_000)
    assert rig.turn().held == "store.full"
    del faulty.renew
    rig.hands.pass_ms(200)
    assert rig.turn().held == ""
