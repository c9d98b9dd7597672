"""What the real engine writes is intact and replays: through its public doors, in virtual time."""

from __future__ import annotations

import pytest

from detent import Engine, Failed, handler, loop, retry, sequence, step, wait
from detent.ports.store import Page
from detent.service import explaining, histories, instances, proving
from detent.store.sqlite import open_store

EPOCH_MS = 1_700_000_000_000


@handler("count")
def count(n: int = 0) -> dict:
    return {"n": n + 1}


@handler("refuse")
def refuse() -> None:
    raise Failed("not today", retryable=True)


@pytest.mark.req("CORE-AUD-1", "CORE-RPL-1")
def test_a_store_written_by_the_engine_verifies_replays_and_explains(tmp_path):
    path = tmp_path / "s.db"
    twice = retry(2, initial_backoff="100ms")
    works = sequence(
        "works",
        step("a", "count"),
        wait("w", duration="5s"),
        loop("l", "true", step("b", "count"), max_iterations=3),
    )
    fails = sequence("fails", step("f", "refuse", retry=twice))
    stands = sequence("stands", wait("s", signal="go"))
    with Engine(path, handlers=[count, refuse], clock="virtual", epoch_ms=EPOCH_MS) as engine:
        ids = [engine.start(made, {}) for made in (works, fails, stands) for _ in range(3)]
        engine.run_until_idle()
    store = open_store(path, create=None, read_only=True)
    told = proving.verify_store(store)
    assert told.valid, told.broken
    assert told.instances == 9
    for id in ids:
        assert proving.replay_instance(store, id, None).identical
        assert explaining.explain_instance(store, id, None).summary
        assert histories.instance_tree(store, id, None).nodes
    listed = instances.list_instances(store, Page(), None).items
    assert [item.state for item in listed] == ["completed"] * 3 + ["failed"] * 3 + ["waiting"] * 3
    store.close()
