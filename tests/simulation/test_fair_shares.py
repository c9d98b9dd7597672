"""Tenants with unlike amounts of due work, in turns that are too short for it, with crashes."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations
from random import Random

import pytest

from detent import sequence, wait
from detent.model.limits import TENANT_QUANTUM
from detent.runtime.settings import WriterSettings
from detent.testing.engines import engine_over
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore, image_of, opened
from detent.testing.simulation import new_database

HOUR_MS = 3_600_000
NEW_ROWS = """
SELECT i.id, i.tenant, j.pos FROM journal j JOIN instance i ON i.n = j.inst WHERE j.pos > ?
"""


class Watch:
    """Who has moved, commit by commit, and how far one tenant was ahead of another."""

    def __init__(self, connection):
        self.left = {}
        for id, tenant, state in connection.execute("SELECT id, tenant, state FROM instance"):
            if state == "waiting":
                self.left.setdefault(tenant, {})[id] = None
        self.connection = connection
        self.pos = connection.execute("SELECT max(pos) FROM journal").fetchone()[0]
        self.commits = 0
        self.span = {pair: [0, 0, 0] for pair in combinations(sorted(self.left), 2)}

    def __call__(self):
        moved = {}
        for id, tenant, pos in self.connection.execute(NEW_ROWS, (self.pos,)).fetchall():
            self.pos = max(self.pos, pos)
            if self.left[tenant].pop(id, True) is None:
                moved[tenant] = moved.get(tenant, 0) + 1
        self.commits += bool(moved)
        for (one, two), span in self.span.items():
            if not self.left[one] or not self.left[two]:
                continue  # one of them has had its last
            span[0] += moved.get(one, 0) - moved.get(two, 0)
            span[1:] = [min(span[1], span[0]), max(span[2], span[0])]

    def unfairness(self):
        """The most by which one was ahead of another over any stretch of commits."""
        return max((most - least for _, least, most in self.span.values()), default=0)


def standing(rng):
    """A store in which several tenants have instances that are all due at one tick."""
    connection = new_database(rng.randrange(1_000))
    engine = engine_over(FaultyStore(connection))
    later = sequence("later", wait("w", HOUR_MS))
    tenants = ["acme", "beta", "cyan"][: rng.randint(2, 3)]
    for tenant in tenants:
        engine.start_many(later, [{}] * rng.choice((6, 11, 40, 90)), tenant=tenant)
    engine.advance(0)
    engine.close()
    return image_of(connection)


def live(store, room):
    """One life of an engine with short turns; what was seen of it."""
    watch = store.on_commit = Watch(store.connection)
    engine = engine_over(store, turns=WriterSettings(max_instances_per_turn=room))
    try:
        engine.advance(HOUR_MS)
    finally:
        with suppress(Crash):
            engine.close()
    return watch


@pytest.mark.req("SEQ-LIM-5", "CORE-REC-1")
@pytest.mark.parametrize("seed", range(4))
def test_shares_of_tenants_with_due_work_stay_within_one_quantum_whenever_the_engine_dies(seed):
    rng = Random(f"detent shares {seed}")
    image, room = standing(rng), rng.randint(1, 9)
    whole = FaultyStore(opened(image))
    watch = live(whole, room)
    assert watch.commits > 1
    assert watch.unfairness() <= TENANT_QUANTUM
    assert not any(watch.left.values())
    for write in rng.sample(range(1, whole.writes + 1), min(8, whole.writes)):
        for moment in MOMENTS:
            store = FaultyStore(opened(image), Fault(write, moment, rng.randrange(9)))
            with suppress(Crash):
                live(store, room)
            watch = live(FaultyStore(store.connection), room)
            assert watch.unfairness() <= TENANT_QUANTUM
            assert not any(watch.left.values())
            store.connection.close()


def test_a_tenant_that_is_served_before_the_others_is_found():
    connection = opened(standing(Random("detent shares 0")))
    watch = Watch(connection)
    ids = list(watch.left["acme"])[:-1]
    assert len(ids) > TENANT_QUANTUM
    for id in ids:
        connection.execute(
            "INSERT INTO journal(inst, seq, turn, tick, snapshot_digest, digest, body, head)"
            " SELECT n, 9, 9, 9, x'', x'', x'', x'' FROM instance WHERE id = ?",
            (id,),
        )
        watch()
    assert watch.unfairness() > TENANT_QUANTUM
