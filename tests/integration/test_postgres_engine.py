"""An engine on PostgreSQL, through its public doors: the walk, other processes, crashes of both."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest

import detent
from detent import sequence, step, sub_sequence, wait
from detent.bootstrap import owners
from detent.bootstrap.visitor import Visitor
from detent.model.errors import StoreError
from detent.runtime.settings import WriterSettings
from detent.service.bell import Ear
from detent.store.postgres import open_store
from detent.store.postgres.waking import Waker
from detent.testing.kills import KILLS_PER_STORY, tell_story
from detent.testing.postgres import PostgresServer
from tests.acceptance.stage import refused
from tests.acceptance.test_the_walk import actions, program
from tests.integration.engine_processes import process, said
from tests.postgres_fixture import fresh_url

SHORT = WriterSettings(lease_ttl_ms=1_500, lease_margin_ms=300)


@pytest.fixture
def page():
    return program()


@pytest.mark.req("CORE-REC-1", "CORE-RPL-1", "CORE-AUD-3")
def test_the_example_of_the_walk_ends_the_same_on_postgresql(postgres_url, tmp_path, page):
    ends = []
    for path in (postgres_url, tmp_path / "walk.db"):
        handlers = [page["charge_card"], page["send_thanks"]]
        order = detent.parse(page["ORDER"])
        with detent.Engine(path, clock="virtual", seed="walk", handlers=handlers) as engine:
            instance = engine.start(order, {"amount": 990, "email": "a@b.c"}, key="order-7")
            engine.advance(dt.timedelta(hours=1))
        with detent.Engine(path, clock="virtual", seed="walk", handlers=handlers) as engine:
            engine.run_until_idle()
            shown, proof = engine.inspect.show(instance), engine.inspect.verify()
            assert (shown.summary.state, proof.valid) == ("completed", True)
            assert engine.replay(instance).identical
            heads = engine.inspect.look(lambda store: [r.head for r in store.journal_scan(0, 99)])
            ends.append((actions(engine, instance), shown.data, heads))
    assert ends[0] == ends[1]  # to the last byte of the chain


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_many_instances_with_children_waits_and_signals_all_end(postgres_url, writer):
    @detent.handler
    def work(n: int):
        return {"n": n}

    child = sequence("child", wait("nap", "20ms"), step("c", work, params={"n": 7}))
    definition = sequence(
        "d",
        step("a", work, params={"n": "{{ data.n }}"}),
        sub_sequence("kid", "child"),
        wait("go", signal="go"),
        step("b", work, params={"n": 2}),
    )
    with detent.Engine(
        postgres_url, writer=writer, handlers=[work], resolution_ms=10, turns=SHORT
    ) as engine:
        engine.deploy(child)
        made = engine.start_many(definition, [{"n": n} for n in range(60)])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: engine.signal(each, "go"), made))
        assert Counter(engine.wait_for(each) for each in made) == {"completed": 60}
        assert engine.inspect.verify().valid
        assert all(engine.replay(each).identical for each in made[:5])


# other processes ---------------------------------------------------------------------------------

OWNER = """
store = args[0]

@detent.handler
def note_it(n: int):
    return {"n": n}

d = sequence("d", wait("w", signal="go"), step("n", note_it, params={"n": 5}))
turns = __import__("detent.runtime.settings", fromlist=["x"]).WriterSettings(
    lease_ttl_ms=1_500, lease_margin_ms=300
)
with detent.Engine(store, handlers=[note_it], turns=turns) as engine:
    say(engine.start(d))
    sys.stdin.read()
"""


def test_a_visitor_reaches_the_owner_in_another_process_and_wakes_it(postgres_url, tmp_path):
    with process(OWNER, tmp_path / "x", postgres_url) as owner:
        instance = said(owner)
        with Visitor(postgres_url) as visitor:
            assert visitor.owned()
            visitor.signal(instance, "go")
            assert visitor.wait_for(instance) == "completed"
            with refused("instance.transition"):
                visitor.pause(instance)
        with pytest.raises(StoreError) as refusal:
            detent.Engine(postgres_url, partition="0-3")
        assert refusal.value.code == "store.owned"
        assert refusal.value.details["pid"] == owner.pid
        owner.stdin.close()
        assert owner.wait(30) == 0
    with Visitor(postgres_url) as visitor:
        assert not visitor.owned()


NEVER = WriterSettings(tick_interval_ms=3_600_000)  # it does not look by itself


def test_what_others_leave_wakes_a_writer_that_would_not_have_looked(postgres_url):
    definition = sequence("d", wait("w", signal="go"), step("a", "noop"))
    with detent.Engine(postgres_url, turns=NEVER) as engine, Visitor(postgres_url) as visitor:
        assert engine._parts._wake.listening.wait(10)
        instance = visitor.start(definition)
        visitor.signal(instance, "go")
        assert engine.wait_for(instance) == "completed"


def test_work_that_another_writer_made_wakes_those_who_wait_for_it(postgres_url):
    async def heard(bell, told):
        with Ear(bell, "charge", None, "acme") as ear:
            assert not await ear.wait(0)
            await asyncio.to_thread(told)
            return await ear.wait(10)

    with detent.Engine(postgres_url, turns=NEVER) as engine:
        listener = engine._parts._wake
        assert listener.listening.wait(10)
        other = open_store(postgres_url, create=None)
        (statement,) = Waker(other.meta().store_id).work([("charge", "", "acme")])
        bell = engine._parts.work.bell
        assert asyncio.run(heard(bell, lambda: other._session.rows(*statement)))
        other.close()


@pytest.mark.req("CORE-SCH-4", "CORE-REC-1")
def test_after_a_kill_the_next_engine_waits_for_the_lease_and_goes_on(postgres_url, tmp_path):
    with process(OWNER, tmp_path / "x", postgres_url) as owner:
        instance = said(owner)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait(30)

    @detent.handler
    def note_it(n: int):
        return {"n": n}

    with detent.Engine(postgres_url, handlers=[note_it], turns=SHORT) as engine:
        engine.signal(instance, "go")
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4", "CORE-EFF-5")
def test_a_process_killed_again_and_again_ends_as_one_that_was_left_alone(postgres_url):
    story = tell_story(1, postgres_url)
    assert story.failure == ""
    assert sum(story.kills.values()) >= KILLS_PER_STORY


# the server --------------------------------------------------------------------------------------


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_when_the_server_goes_away_and_comes_back_nothing_is_lost_or_called_twice(number):
    calls = Counter()
    busy = threading.Event()

    @detent.handler(on_doubt="once")
    def pay(n: int, part: int):
        calls[n, part] += 1
        if len(calls) > 20:
            busy.set()
        return {"paid": part}

    parts = [{"n": "{{ data.n }}", "part": part} for part in range(3)]
    definition = sequence("d", *[step(f"s{each['part']}", pay, params=each) for each in parts])
    with PostgresServer(durable=True) as server:
        url = fresh_url(server)
        with detent.Engine(url, handlers=[pay]) as engine:
            made = engine.start_many(definition, [{"n": n} for n in range(100)])
            assert busy.wait(30)
            server.restart(number)
            assert Counter(engine.wait_for(each) for each in made) == {"completed": 100}
            assert engine.inspect.verify().valid
            assert engine.inspect.doubts() == []
    assert len(calls) == 300
    assert set(calls.values()) == {1}


def test_while_the_server_is_away_callers_are_told_and_later_served():
    definition = sequence("d", step("a", "noop"))
    with PostgresServer(durable=True) as server, detent.Engine(fresh_url(server)) as engine:
        first = engine.start(definition, key="first")
        server.stop()
        with pytest.raises(StoreError) as refusal:
            engine.start(definition, key="second")
        assert refusal.value.code in ("store.unreachable", "store.unavailable")
        server.start()
        second = None
        while second is None:
            with suppress(StoreError):
                second = engine.start(definition, key="second")
        assert engine.wait_for(first) == engine.wait_for(second) == "completed"


# one process -------------------------------------------------------------------------------------


def test_a_second_engine_of_the_same_process_is_refused_at_once_and_let_in_when_the_first_closed(
    postgres_url, monkeypatch
):
    def waited(seconds):
        pytest.fail(f"it waited for {seconds} s")

    monkeypatch.setattr(owners, "time", SimpleNamespace(monotonic=time.monotonic, sleep=waited))
    first = detent.Engine(postgres_url, partition="0-15")
    with pytest.raises(StoreError) as refusal:
        detent.Engine(postgres_url, partition="0-15")
    assert refusal.value.code == "store.owned"
    first.close()
    detent.Engine(postgres_url, partition="0-15").close()


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_an_engine_whose_writer_was_given_up_is_followed_when_its_lease_is_over(
    postgres_url, writer
):
    engine = detent.Engine(postgres_url, writer="process", turns=SHORT)
    link = engine._parts._link
    first = link.pid
    os.kill(first, signal.SIGKILL)
    while link.pid == first or engine._parts.held:
        pass
    os.kill(link.pid, signal.SIGKILL)  # too young to be followed by a third
    while link._service.desk._shut is None:
        pass
    engine.close()
    definition = sequence("d", step("a", "noop"))
    with detent.Engine(postgres_url, writer=writer, turns=SHORT) as engine:
        assert engine.wait_for(engine.start(definition)) == "completed"
