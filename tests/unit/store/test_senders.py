"""Senders in other processes: they only leave arrivals, and the owner takes every one of them."""

from __future__ import annotations

import pytest

from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import TICK, World, a_change
from tests.unit.store.processes import process, said

SEND = """
store = open_store(path, create=None)
say("ready")
name = sys.stdin.readline().strip()
for i in range(50):
    id = f"{name}-{i:02}"
    left = store.enqueue([an_arrival(id, id, i % 4, id.encode(), a_birth(id))], i)
    assert left == [True], left
say("done")
"""


@pytest.mark.req("CORE-SCH-4", "CORE-INB-1")
def test_two_processes_send_while_the_owner_commits(tmp_path):
    path = tmp_path / "store.db"
    store = open_store(path, create=NEW)
    world = World(store)
    with process(SEND, path) as one, process(SEND, path) as two:
        for name, sender in (("x", one), ("y", two)):
            assert said(sender) == "ready"
            sender.stdin.write(f"{name}\n")
            sender.stdin.flush()
        taken = []
        for turn in range(100_000):
            found = store.arrivals(range(4), 7)
            world.commit(
                a_change(f"own-{turn}"), taken=[(row.id, None) for row in found], tick=TICK + turn
            )
            taken += [row.id for row in found]
            if len(taken) == 100:
                break
        assert [said(one), said(two)] == ["done", "done"]
    for name in "xy":
        assert [id for id in taken if id[0] == name] == [f"{name}-{i:02}" for i in range(50)]
    numbers = [row.n for row in store.load([*taken, *world.numbers]).values()]
    assert len(set(numbers)) == len(numbers) == 100 + len(world.numbers)
    assert store.arrivals(range(4), 10) == []
    store.close()
