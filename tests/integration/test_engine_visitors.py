"""Beside an engine: other processes read, enqueue and ask, and the owner acts at once."""

from __future__ import annotations

import threading
import time

import pytest

import detent
from detent import loop, sequence, step, wait
from detent.bootstrap.visitor import Visitor
from detent.runtime.settings import WriterSettings
from tests.acceptance.stage import refused, rows, state
from tests.integration.engine_processes import process, run, said

DOOR = sequence("door", wait("w", signal="go"), step("after", "noop"))
SLOW_POLL = WriterSettings(tick_interval_ms=30_000, lease_ttl_ms=300_000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


VISIT = """
with Visitor(path) as visitor:
    say("ready")
    sys.stdin.readline()
    visitor.signal(args[0], "go", {"from": os.getpid()})
    say("told")
    say(visitor.wait_for(args[0]))
    made = visitor.start("door", {"n": 1})
    visitor.signal(made, "go")
    say(visitor.wait_for(made))
    for call in (
        lambda: visitor.signal(made, "go"),
        lambda: visitor.cancel(made),
        lambda: visitor.signal("unknown", "go"),
        lambda: detent.Engine(path),
    ):
        try:
            call()
        except detent.DetentError as error:
            say(error.code)
"""


@pytest.mark.req("CORE-SCH-4", "CORE-INB-1", "CORE-SCH-1")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_another_process_reads_sends_and_asks_and_the_owner_is_woken_at_once(path, writer):
    """The owner looks by itself only every 30 s: what comes sooner came by waking it."""
    with detent.Engine(path, writer=writer, turns=SLOW_POLL) as engine:
        instance = engine.start(DOOR)
        with process(VISIT, path, instance) as visitor:
            assert said(visitor) == "ready"
            visitor.stdin.write("\n")
            visitor.stdin.flush()
            began = time.monotonic()
            assert engine.wait_for(instance) == "completed"
            assert time.monotonic() - began < 3
            told = [said(visitor) for _ in range(7)]
            assert told == [
                "told",
                "completed",
                "completed",
                "instance.terminal",
                "instance.transition",
                "instance.not_found",
                "store.owned",
            ]
            assert engine.inspect.show(instance).outputs["w"] == {"from": visitor.pid}
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-SCH-1", "CORE-INB-1")
def test_a_signal_from_outside_arrives_far_sooner_than_the_polling_interval(path):
    with (
        detent.Engine(path, turns=SLOW_POLL) as engine,
        Visitor(path) as visitor,
    ):
        took = []
        for _ in range(20):
            instance = engine.start(DOOR)
            began = time.monotonic()
            visitor.signal(instance, "go")
            assert engine.wait_for(instance) == "completed"
            took.append(time.monotonic() - began)
        assert sorted(took)[10] < 0.25


@pytest.mark.req("CORE-INB-1", "CORE-INB-2")
def test_arrivals_of_several_processes_are_each_taken_once_and_in_each_sender_s_order(path):
    definition = sequence(
        "collector",
        loop("l", "data.last != true", wait("w", signal="item"), max_iterations=10_000),
    )
    script = """
with Visitor(path) as visitor:
    say("ready")
    sys.stdin.readline()
    for n in range(40):
        visitor.signal(args[0], "item", [args[1], n], id=f"{args[1]}-{n}")
        visitor.signal(args[0], "item", [args[1], n], id=f"{args[1]}-{n}")
    say("sent")
"""
    with detent.Engine(path) as engine:
        instance = engine.start(definition)
        with (
            process(script, path, instance, "a") as one,
            process(script, path, instance, "b") as two,
        ):
            for each in (one, two):
                assert said(each) == "ready"
            for each in (one, two):
                each.stdin.write("\n")
                each.stdin.flush()
            for n in range(40):
                engine.signal(instance, "item", ["own", n])
            assert [said(each) for each in (one, two)] == ["sent", "sent"]
        engine.signal(instance, "update_context", {"last": True})
        engine.signal(instance, "item", ["end", 0])
        assert engine.wait_for(instance) == "completed"
        taken = [row.output for row in engine.inspect.outputs(instance) if row.block == "w"]
        for sender in ("a", "b", "own"):
            assert [n for who, n in taken if who == sender] == list(range(40))


@pytest.mark.req("CORE-INB-2", "CORE-SCH-4")
def test_what_is_left_while_nobody_owns_the_store_is_carried_out_by_the_next_owner(path):
    with detent.Engine(path) as engine:
        instance = engine.start(DOOR)
    with Visitor(path, timeout_ms=50) as visitor:
        visitor.signal(instance, "go", "left")
        with refused("request.timeout") as refusal:
            visitor.command(instance, "pause", id="asked")
        assert "nobody owns" in refusal.value.message
        assert refusal.value.details["id"] == "asked"
        made = visitor.start(DOOR, key="new")
    with detent.Engine(path) as engine:
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.show(instance).outputs["w"] == "left"
        with Visitor(path) as visitor, refused("instance.transition"):
            visitor.command(instance, "pause", id="asked")
        assert engine.wait_for(made, "waiting") == "waiting"


@pytest.mark.req("SEQ-3", "CORE-INB-2")
def test_of_many_threads_that_start_with_one_key_all_get_the_same_instance(path):
    with detent.Engine(path) as engine:
        begin = threading.Barrier(12)
        got = []

        def start(n):
            begin.wait()
            got.append(engine.start(DOOR, {"by": n}, key="order-1"))

        starters = [threading.Thread(target=start, args=(n,)) for n in range(12)]
        for each in starters:
            each.start()
        for each in starters:
            each.join()
        assert len(got) == 12
        assert len(set(got)) == 1
        assert len(engine.inspect.instances().items) == 1
        assert len(engine.inspect.audit(got[0], action="run.created")) == 1


@pytest.mark.req("SEQ-3", "CORE-INB-2")
def test_of_several_processes_that_start_with_one_key_all_get_the_same_instance(path):
    script = """
with Visitor(path) as visitor:
    say("ready")
    sys.stdin.readline()
    say(visitor.start("door", {"by": args[0]}, key="order-1"))
"""
    with detent.Engine(path) as engine:
        engine.deploy(DOOR)
        with process(script, path, "a") as one, process(script, path, "b") as two:
            for each in (one, two):
                assert said(each) == "ready"
            for each in (one, two):
                each.stdin.write("\n")
                each.stdin.flush()
            own = engine.start(DOOR, {"by": "own"}, key="order-1")
            assert {said(one), said(two)} == {own}
        engine.wait_for(own, "waiting")
        assert len(rows(path, "instance")) == 1
        assert len(engine.inspect.audit(own, action="run.created")) == 1


@pytest.mark.req("CORE-SCH-4")
def test_a_visitor_checks_like_the_engine_and_leaves_nothing_when_it_refuses(path):
    with detent.Engine(path), Visitor(path) as visitor:
        before = rows(path, "arrival")
        for call, code in (
            (lambda: visitor.start(DOOR, float("nan")), "payload.invalid"),
            (lambda: visitor.start(DOOR, key=5), "request.invalid"),
            (lambda: visitor.start(DOOR, tenant=""), "request.invalid"),
            (lambda: visitor.start(DOOR, priority="urgent"), "request.invalid"),
            (lambda: visitor.start("unknown"), "definition.unknown"),
            (lambda: visitor.start("door@x"), "request.invalid"),
            (lambda: visitor.start(5), "request.invalid"),
            (lambda: visitor.start(sequence("h", step("s", "nobody"))), "handler.unknown"),
            (lambda: visitor.signal(["a"], "go"), "instance.not_found"),
            (lambda: visitor.wait_for("x", "nowhere"), "request.invalid"),
        ):
            with refused(code):
                call()
        assert rows(path, "arrival") == before
        assert rows(path, "instance") == []
        assert rows(path, "definition") == []


def test_an_engine_beside_a_program_that_ended_can_take_the_store_at_once(path):
    """Its OS lock is free, so its lease is void, whatever it says."""
    script = """
engine = detent.Engine(path)
say(engine.start(sequence("door", wait("w", signal="go"))))
os.kill(os.getpid(), signal.SIGKILL)
"""
    code, (instance,) = run(script, path)
    assert code < 0
    began = time.monotonic()
    with detent.Engine(path) as engine:
        engine.signal(instance, "go")
        assert engine.wait_for(instance) == "completed"
    assert time.monotonic() - began < 5


@pytest.mark.req("CORE-SCH-3")
def test_a_handler_that_blocks_the_loop_does_not_stop_the_writer(path):
    begun, release = threading.Event(), threading.Event()

    @detent.handler
    async def rude():
        begun.set()
        release.wait(20)  # blocks the loop of the dispatcher

    with detent.Engine(path, handlers=[rude]) as engine:
        blocked = engine.start(sequence("blocked", step("s", rude)))
        assert begun.wait(5)
        free = engine.start(sequence("free", wait("w", "50ms"), step("s", "noop")))
        assert engine.wait_for(free) == "completed"
        door = engine.start(DOOR)
        engine.signal(door, "go")
        assert engine.wait_for(door) == "completed"
        assert state(engine, blocked) == "running"
        release.set()
        assert engine.wait_for(blocked) == "completed"
