"""The public test kit: engines in virtual time, recorded calls, assertions, a store that dies."""

from __future__ import annotations

import subprocess
import sys

import apsw
import pytest

import detent
from detent.testing import (
    Calls,
    Crash,
    Fault,
    FaultyStore,
    assert_chain_valid,
    assert_identical_replay,
    assert_stands_explained,
    engine_over,
    virtual_engine,
)
from detent.testing.simulation import new_database

DAY_MS = 86_400_000
PLAN = detent.sequence(
    "plan",
    detent.step("hello", "mail", params={"to": "ann"}),
    detent.wait("quarter", 90 * DAY_MS),
    detent.step("again", "mail", params={"to": "ann"}),
)


@pytest.mark.req("CORE-CLK-5")
def test_the_fixture_is_an_engine_in_virtual_time(detent_engine):
    # Ninety days pass at once, and both mails were sent in their order.
    calls = Calls()
    detent_engine.register(calls.handler("mail", {"sent": True}))
    began = detent_engine.now()
    plan = detent_engine.start(PLAN)
    detent_engine.run_until_idle()
    assert detent_engine.wait_for(plan) == "completed"
    assert (detent_engine.now() - began).days == 90
    assert [call.node for call in calls.of("mail")] == ["hello", "again"]


def test_the_factory_makes_engines_that_share_nothing(detent_engines):
    mail = Calls().handler("mail")
    one, two = detent_engines([mail]), detent_engines([mail])
    plan = one.start(PLAN)
    with pytest.raises(detent.RequestError, match=plan):
        two.inspect.show(plan)
    assert one.start(PLAN) != two.start(PLAN)


@pytest.mark.req("CORE-CLK-5")
def test_equal_seeds_give_equal_ids_and_bytes():
    def record(seed):
        with virtual_engine([Calls().handler("mail", 1)], seed=seed) as engine:
            plan = engine.start(PLAN)
            engine.run_until_idle()
            return plan, [entry.detail for entry in engine.inspect.audit(plan)]

    assert record("a") == record("a")
    assert record("a") != record("b")


def test_a_store_opened_again_with_its_seed_gives_out_new_ids(tmp_path):
    def start():
        with virtual_engine([Calls().handler("mail")], seed="a", path=tmp_path / "x.db") as engine:
            return engine.start(PLAN)

    assert start() != start()


def test_recorded_calls_answer_in_turn_and_keep_what_they_were_told(detent_engine):
    calls = Calls()
    busy = detent.Failed("busy")
    charge = calls.handler("charge", busy, lambda params: {"paid": params["amount"]})
    detent_engine.register(charge)
    steps = detent.step("pay", "charge", params={"amount": 7}, retry=detent.retry(3))
    order = detent_engine.start(detent.sequence("order", steps))
    detent_engine.run_until_idle()
    first, second = calls.of("charge")
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.params == second.params == {"amount": 7}
    assert first.key != second.key
    assert first.instance == order
    assert detent_engine.inspect.show(order).data == {"paid": 7}
    assert calls.count("refund") == 0


def test_a_recorded_call_in_doubt_keeps_its_key(detent_engine):
    calls = Calls()
    detent_engine.register(
        calls.handler("charge", TimeoutError("lost"), {"paid": True}, on_doubt="keyed")
    )
    order = detent_engine.start(detent.sequence("order", detent.step("pay", "charge")))
    detent_engine.run_until_idle()
    assert detent_engine.wait_for(order) == "completed"
    first, second = calls.made
    assert first.key == second.key


def test_a_queryable_recorded_call_finds_nothing_unless_it_is_told_how(detent_engine):
    calls = Calls()
    lost = calls.handler("lost", OSError("reset"), on_doubt="queryable")
    kept = calls.handler(
        "kept", OSError("reset"), on_doubt="queryable", reconcile=lambda: detent.Applied({"r": 1})
    )
    detent_engine.register([lost, kept])
    ends = []
    for name in ("lost", "kept"):
        made = detent_engine.start(detent.sequence(name, detent.step("a", name)))
        detent_engine.run_until_idle()
        ends.append(detent_engine.wait_for(made))
    assert ends == ["failed", "completed"]


# Assertions --------------------------------------------------------------------------------------


@pytest.fixture
def finished(tmp_path):
    """A store with one finished instance."""
    path = tmp_path / "plan.db"
    with virtual_engine([Calls().handler("mail", {"ok": True})], path=path) as engine:
        plan = engine.start(PLAN)
        engine.run_until_idle()
    return path, plan


@pytest.mark.req("CORE-AUD-3", "CORE-RPL-1")
def test_assertions_pass_on_what_the_engine_wrote(finished):
    path, plan = finished
    with virtual_engine(path=path) as engine:
        assert assert_chain_valid(engine) == assert_identical_replay(engine, plan) > 3


@pytest.mark.req("CORE-AUD-3")
def test_a_changed_byte_fails_the_chain_and_is_named(finished):
    path, plan = finished
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE journal SET tick = tick + 1 WHERE seq = 2")
    connection.close()
    with virtual_engine(path=path) as engine, pytest.raises(AssertionError, match=f"{plan}, seq 2"):
        assert_chain_valid(engine)


@pytest.mark.req("CORE-RPL-1")
def test_a_changed_record_fails_the_replay_and_is_named(finished):
    path, plan = finished
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), 'hello', 'jello') AS BLOB)"
    )
    connection.close()
    with virtual_engine(path=path) as engine, pytest.raises(AssertionError, match="row 1"):
        assert_identical_replay(engine, plan)


@pytest.mark.req("CORE-EXP-1")
def test_an_instance_that_stands_says_what_releases_it(detent_engine):
    door = detent.sequence("door", detent.wait("bell", signal="ring"))
    waiting = detent_engine.start(door)
    told = assert_stands_explained(detent_engine, waiting)
    assert any("ring" in way for wait in told.waits for way in wait.released_by)
    detent_engine.signal(waiting, "ring")
    assert assert_stands_explained(detent_engine, waiting).state == "completed"


# A store that dies -------------------------------------------------------------------------------


@pytest.mark.req("CORE-REC-1", "CORE-EFF-1")
def test_an_engine_over_a_dead_store_is_gone_and_the_next_one_goes_on():
    # The process dies before the start mark of the first mail is written, so the mail was certainly
    # not sent: the engine that comes after sends it, once, and asks nobody.
    calls = Calls()
    mail = calls.handler("mail", {"ok": True}, on_doubt="once")
    connection = new_database(1)
    first = engine_over(FaultyStore(connection), [mail])
    plan = first.start(PLAN, key="ann")
    first.close()

    taken_over = 1
    dying = engine_over(FaultyStore(connection, Fault(taken_over + 1, "before")), [mail])
    with pytest.raises(Crash):
        dying.run_until_idle()
    assert calls.made == ()
    with pytest.raises(Crash):
        dying.inspect.show(plan)
    with pytest.raises(Crash):
        dying.close()

    survivor = engine_over(FaultyStore(connection), [mail])
    assert survivor.wait_for(plan) == "completed"
    assert calls.count("mail") == 2
    assert_chain_valid(survivor)
    survivor.close()


# The plugin costs nothing ------------------------------------------------------------------------


def test_loading_the_plugin_imports_no_engine():
    # Every pytest run of a user loads it, whether its tests use Detent or not.
    text = (
        "import sys, detent.testing.plugin\n"
        "print([name for name in sys.modules if name in ('apsw', 'msgspec', 'asyncio', 'yaml')])"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]", ran.stdout
