"""Several scheduler processes on one PostgreSQL store: shares, take-over, pauses, restarts."""

from __future__ import annotations

import pytest

from detent.testing.auditing import audit, compare
from detent.testing.cluster import Cluster
from detent.testing.kills import undisturbed


@pytest.fixture
def cluster(postgres_url):
    with Cluster(postgres_url) as made:
        yield made


def check_end(cluster):
    """Nothing was lost, nothing doubled, and everything ended as if nobody had been disturbed."""
    ending = audit(cluster.store, cluster.outside())
    compare(undisturbed(cluster.started), ending)
    assert set(ending.applied.values()) == {1}


@pytest.mark.req("CORE-SCH-4", "CORE-SCH-5")
def test_processes_share_the_partitions_as_they_come_and_go(cluster):
    first = cluster.join().await_ready()
    cluster.await_shares(16)
    cluster.join().await_ready()
    cluster.await_shares(8, 8)
    third = cluster.join().await_ready()
    cluster.await_shares(6, 5, 5)
    cluster.start(9)
    cluster.await_ends()
    cluster.leave(first)
    cluster.await_shares(8, 8)
    cluster.kill(third)
    cluster.await_shares(16)
    cluster.start(6)
    cluster.await_ends()
    check_end(cluster)


@pytest.mark.req("CORE-REC-1", "CORE-REC-2", "CORE-SCH-5")
def test_a_killed_process_is_taken_over_and_nothing_is_lost_or_doubled(cluster):
    members = [cluster.join() for _ in range(3)]
    for member in members:
        member.await_ready()
    cluster.await_shares(6, 5, 5)
    for victim in members[:2]:
        cluster.start(12)
        cluster.wait(lambda: len(cluster.outside().deeds) > 20 * cluster.started // 12, "calls")
        cluster.kill(victim)
    cluster.await_ends()
    cluster.await_shares(16)
    check_end(cluster)


@pytest.mark.req("CORE-SCH-5", "CORE-EFF-4")
def test_a_paused_process_is_fenced_out_and_steps_down_when_it_wakes(cluster):
    members = [cluster.join() for _ in range(2)]
    for member in members:
        member.await_ready()
    cluster.await_shares(8, 8)
    cluster.start(24)
    cluster.wait(lambda: len(cluster.outside().deeds) > 20, "calls")
    members[0].pause()
    cluster.await_shares(16)
    members[0].wake()
    cluster.await_shares(8, 8)
    cluster.start(6)
    cluster.await_ends()
    check_end(cluster)


@pytest.mark.req("CORE-REC-1")
def test_a_rolling_restart_loses_and_doubles_nothing_and_asks_no_person(cluster):
    members = [cluster.join() for _ in range(3)]
    for member in members:
        member.await_ready()
    for member in members:
        cluster.start(9)
        cluster.join().await_ready()
        cluster.leave(member)
    cluster.await_ends()
    cluster.await_shares(6, 5, 5)
    check_end(cluster)


@pytest.mark.req("CORE-SCH-4")
def test_ranges_can_be_given_and_are_kept(cluster):
    cluster.join(partition="0-7").await_ready()
    low = cluster.join(partition="8-15").await_ready()
    owned = cluster.await_shares(8, 8)
    assert owned[low.pid] == list(range(8, 16))
    cluster.start(9)
    cluster.await_ends()
    cluster.kill(low)
    again = cluster.join(partition="8-15").await_ready()
    assert cluster.await_shares(8, 8)[again.pid] == list(range(8, 16))
    cluster.start(6)
    cluster.await_ends()
    check_end(cluster)
