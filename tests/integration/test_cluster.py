"""Several scheduler processes on one PostgreSQL store: shares, take-over, pauses, restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from detent import sequence, step
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
    assert [deed for deed in cluster.outside().deeds if deed.what == "asked"] == []


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


@pytest.mark.req("SEQ-LIM-6", "CORE-POL-2")
def test_a_limit_holds_over_all_processes_also_when_one_is_killed(cluster):
    """At most four calls in any second, whoever owns the gate and whoever makes the calls."""
    members = [cluster.join() for _ in range(3)]
    for member in members:
        member.await_ready()
    cluster.await_shares(6, 5, 5)
    cluster.visitor.limits.set("box", max=4, window="1s")
    limited = sequence("limited", step("a", "put", rate_limit_key="box"))
    made = [cluster.visitor.start(limited, key=f"limited-{n}") for n in range(20)]
    cluster.wait(lambda: len(calls(cluster, made)) > 4, "calls")
    cluster.kill(members[0])
    cluster.await_ends()
    granted = sorted(grants(cluster, made))
    assert len(granted) == 20
    per_second = 1_000 // cluster.store.meta().resolution_ms
    assert all(
        later - first >= per_second for first, later in zip(granted, granted[4:], strict=False)
    )
    assert set(calls(cluster, made)) == set(made)


def calls(cluster, made):
    """The instances that the world was called for."""
    places = [deed.place.partition(" ")[0] for deed in cluster.outside().deeds]
    return [place for place in places if place in made]


def grants(cluster, made):
    """The ticks at which the limit let each instance plan its effect."""
    for id in made:
        row = cluster.store.instance(id)
        for journal in cluster.store.journal(row.n, 0, 100):
            if b"effect.planned" in journal.body:
                yield journal.tick


def test_the_status_names_every_process_and_what_it_owns(cluster):
    members = [cluster.join() for _ in range(2)]
    for member in members:
        member.await_ready()
    owned = cluster.await_shares(8, 8)
    command = [sys.executable, "-m", "detent.cli", "cluster", "status", "--db", cluster.told.path]
    shown = subprocess.run(
        [*command, "-o", "json"], check=True, capture_output=True, env=os.environ
    )
    found = json.loads(shown.stdout)
    pids = {node["id"]: node["pid"] for node in found["nodes"]}
    assert sorted(pids.values()) == sorted(member.pid for member in members)
    for row in found["partitions"]:
        assert row["partition"] in owned[pids[row["owner"]]]
        assert 0 < row["lease_left_ms"] <= cluster.told.lease_ttl_ms
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    assert all(f":{member.pid}" in text.stdout for member in members)
