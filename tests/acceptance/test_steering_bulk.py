"""Bulk actions: every instance is asked by itself, and the verdicts are counted (SEQ-OPS-1)."""

from __future__ import annotations

import datetime as dt

import pytest

from detent import sequence, step, wait
from detent.model import limits
from tests.acceptance.post import EPOCH_MS
from tests.acceptance.stage import HOUR_MS, proved, refused, state, virtual

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine
        proved(engine)


@pytest.mark.req("SEQ-OPS-1", "CORE-STM-6")
def test_a_bulk_action_asks_each_instance_and_counts_the_verdicts(engine):
    waiting = sequence("w", wait("w", signal="go"))
    delayed = sequence("d", step("a", "noop", delay="5h"))
    kept = [engine.start(delayed, metadata={"team": "red", "n": n}) for n in range(3)]
    other = engine.start(waiting, metadata={"team": "red"})
    blue = engine.start(delayed, metadata={"team": "blue"})
    foreign = engine.start(delayed, tenant="acme", metadata={"team": "red"})
    engine.advance(1000)
    red = {"tenant": "default", "metadata": {"team": "red"}}
    assert engine.bulk("set_state", red, {"state": "paused"}, dry_run=True).matched == 4
    told = engine.bulk("set_state", red, {"state": "paused"})
    assert (told.matched, told.applied, told.skipped, told.failed) == (4, 3, 1, 0)
    assert [state(engine, each) for each in (*kept, other, blue, foreign)] == [
        *["paused"] * 3,
        "waiting",
        "scheduled",
        "scheduled",
    ]
    assert engine.bulk("resume", {"states": ["paused"]}, limit=2).applied == 2
    moved = engine.bulk("reschedule", {"tenant": "default"}, {"offset": HOUR})
    assert (moved.matched, moved.applied, moved.skipped) == (5, 3, 2)
    assert engine.inspect.show(blue).summary.due_ms == 6 * HOUR_MS + EPOCH_MS
    sent = engine.bulk("signal", {"states": ["waiting"]}, {"name": "go", "payload": 1})
    assert (sent.applied, state(engine, other)) == (1, "completed")
    noted = [e.detail for e in engine.inspect.audit(other) if e.action == "batch.action"]
    assert [(each["action"], each["state"]) for each in noted] == [("signal", "waiting")]
    ended = engine.bulk("cancel", {})
    assert (ended.matched, ended.applied, ended.skipped) == (6, 5, 1)
    assert engine.bulk("retry", {"definition": waiting.hash}).skipped == 1


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize(
    ("action", "where", "args", "options"),
    [
        ("explode", {}, None, {}),
        ("pause", {"colour": "red"}, None, {}),
        ("pause", {"states": ["asleep"]}, None, {}),
        ("pause", {"tenant": ""}, None, {}),
        ("pause", {}, None, {"limit": 0}),
        ("pause", {}, None, {"limit": limits.BULK_INSTANCES + 1}),
        ("signal", {}, None, {}),
        ("set_state", {}, {}, {}),
        ("reschedule", {}, {"offset": "soon"}, {}),
    ],
)
def test_a_wrong_bulk_action_asks_nobody(engine, action, where, args, options):
    made = engine.start(sequence("w", wait("w", signal="go")))
    with refused("request.invalid"):
        engine.bulk(action, where, args, **options)
    assert engine.inspect.show(made).snapshot_version == 1


def test_the_engines_own_instances_are_never_reached_by_bulk(engine):
    engine.limits.set("box", max=1, window="1h")
    assert engine.bulk("cancel", {}).matched == 0
    assert engine.bulk("cancel", {"namespace": "detent"}).matched == 0
    assert engine.limits.list()
