"""The same arguments give the same bytes: here, in another process, with any order of hashing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detent.kernel.step import Facts, step
from detent.model.decision import Need
from detent.model.inputs import EffectApplied, Started, encode_input
from tests.unit.kernel.blocks import (
    attempt,
    call,
    for_each,
    graph,
    human,
    loop,
    noop,
    parallel,
    put,
    race,
    retry,
    router,
    saga,
    sleep,
    split,
    sub,
    wait,
)
from tests.unit.kernel.driver import World

ROOT = Path(__file__).resolve().parents[3]


def a_long_story():
    """One instance through every kind of block, doubt, retry, pause and cancel; gives its bytes."""
    world = World(
        split(("x", 1, [noop("x1")]), ("y", 1, [noop("y1")])),
        put("chance", {"id": "{{instance_id}}", "all": "{{data}}"}),
        router(("random(1, 6) > 0 && uuid() != null && now() != null", [noop("r1")])),
        parallel([call("a", retry=retry(3, jitter=500))], [call("k")], [wait("w", signal="go")]),
        race([call("q")], [attempt([wait("never", signal="no")], [], [noop("tidy")])]),
        for_each(call("each"), collection="items"),
        loop(sleep("s", 300), max_iterations=2),
        human("h", handler="act"),
        graph({"one": [noop("g1")], "two": [noop("g2")]}, ("one", "two")),
        sub("child"),
        saga((call("do"), call("undo")), (call("bad"), None)),
        handlers={"k": {"doubt": "keyed"}, "q": {"doubt": "queryable"}, "a": {"ctx": True}},
        policies=[{"kind": "effect_budget", "params": {"max_effects": 50}}],
        on_failure=[noop("clean")],
    )
    world.define("child", [noop("c1"), call("c2")])
    digest = hashlib.sha256()
    tell = world.tell

    def recorded(*inputs, to="i1"):
        decision = tell(*inputs, to=to)
        digest.update(decision.snapshot + decision.journal)
        for order in decision.orders:
            digest.update(order.key.encode() + bytes(order.request))
        return decision

    world.tell = recorded
    world.start({"items": [1, 2], "b": 1, "a": 2, "ü": "ö"}, seed="a seed", config={"z": 1, "y": 2})
    world.fail("a", details={"why": {"b": 1, "a": 2}})
    world.mark("k")
    world.doubt("k")
    world.signal("pause")
    world.signal("custom:go", {"x": {"b": 1, "a": 2}})
    world.apply("k", {"z": 1, "a": 2})
    world.signal("resume")
    world.finish()
    world.signal("custom:human_input:h", {"value": "yes"})
    world.apply("act")
    world.apply("c2")
    world.apply("do")
    world.fail("bad", retryable=False)
    world.apply("undo")
    assert world.state == "failed"
    world.command("retry")
    world.signal("cancel")
    return digest.hexdigest()


@pytest.mark.req("CORE-RPL-1", "CORE-SCH-2")
def test_another_process_with_another_hash_seed_writes_the_same_bytes():
    code = "from tests.unit.kernel.test_determinism import a_long_story\nprint(a_long_story())"
    seen = {a_long_story()}
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        seen.add(done.stdout.strip())
    assert len(seen) == 1


@pytest.mark.req("CORE-RPL-1")
def test_the_arguments_of_a_step_are_not_changed_by_it():
    world = World(call("a"), put("p", "{{data}}")).start({"n": 1})
    actor = world.actors["i1"]
    told = [encode_input(EffectApplied(key=world.order().key, result={"m": 2}))]
    facts = world._facts({})
    before = (bytes(actor.body), list(told), dict(facts.given))
    first = step(world.program, actor.body, told, 5, facts)
    second = step(world.program, actor.body, told, 5, facts)
    assert (bytes(actor.body), told, facts.given) == before
    assert (first.snapshot, first.journal) == (second.snapshot, second.journal)


@pytest.mark.req("CORE-RPL-1")
def test_chance_comes_from_the_instances_own_seed_and_is_never_drawn_twice():
    block = loop(
        router(("random(1, 1000000) > 500000", [noop("high")]), default=[noop("low")]),
        max_iterations=40,
    )

    def rolls(seed):
        return World(block).start(seed=seed).nodes("step.executed")

    assert rolls("a") == rolls("a")
    assert rolls("a") != rolls("b")
    assert {path.rpartition("/")[2] for path in rolls("a")} == {"high", "low"}


@pytest.mark.req("CORE-RPL-1")
def test_facts_that_were_used_are_recorded_and_no_others():
    world = World(call("a"), call("b"), sub("child"), handlers={"b": {"doubt": "once"}})
    child = world.define("child", [noop()])
    world.start()
    world.apply("a")
    world.signal("pause")
    world.signal("resume")
    world.apply("b")
    told = [sorted(facts) for facts in world.actors["i1"].facts if facts]
    assert told == [["handler:b"], ["child:child:", "handler:b"]]
    assert world.actors["i1"].facts[-2]["child:child:"] == child.hash


@pytest.mark.req("CORE-RPL-1")
@pytest.mark.parametrize(
    "spec",
    [
        {"doubt": "keyed"},
        {"timeout_ms": 5},
        {"ctx": True},
        {"withdrawable": False},
        {"merge": False},
    ],
)
def test_what_is_known_of_a_handler_is_a_fact_unless_it_is_the_default(spec):
    world = World(call("a"), handlers={"a": spec}).start()
    assert list(world.actors["i1"].facts[0]) == ["handler:a"]
    assert World(call("a"), handlers={"a": {}}).start().actors["i1"].facts == [{}]


@pytest.mark.req("CORE-RPL-1")
def test_a_missing_fact_is_asked_for_and_nothing_is_decided_before_it_is_given():
    world = World(sub("child"))
    told = [encode_input(Started(instance="i1", definition=world.program.hash))]
    facts = Facts(handlers={}, given={})
    needs = step(world.program, None, told, 1, facts)
    assert needs == [Need(kind="child", name="child", extra="")]
    facts.given["child:child:"] = None
    assert step(world.program, None, told, 1, facts).state == "failed"
