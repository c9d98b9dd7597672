"""kill -9: nothing in memory matters, and what was under way follows its class."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress

import pytest

import detent
from detent import sequence, step
from detent.model import limits
from tests.acceptance.stage import refused
from tests.integration.engine_processes import noted, process, run, said

BUSY = """
writer, count = args[0], int(args[1])
say("up")


@detent.handler
def note_it(n: int, part: str, ctx: detent.HandlerContext):
    note("call", "repeatable", ctx.key, n, part)
    say("called")
    return {part: n}


@detent.handler(on_doubt="keyed")
def keyed(n: int, ctx: detent.HandlerContext):
    note("call", "keyed", ctx.key, n, "k")
    say("called")
    return {"k": n * 10}


@detent.handler(on_doubt="once")
def once(n: int, ctx: detent.HandlerContext):
    note("call", "once", ctx.key, n, "o")
    say("called")
    return {"o": n * 100}


definition = sequence(
    "busy",
    step("a", note_it, params={"n": "{{ data.n }}", "part": "a"}),
    parallel(
        "p",
        [step("b", note_it, params={"n": "{{ data.n }}", "part": "b"}), wait("w", "50ms")],
        [step("k", keyed, params={"n": "{{ data.n }}"})],
    ),
    sub_sequence("c", "child"),
    step("o", once, params={"n": "{{ data.n }}"}),
)
child = sequence("child", step("x", "transform", params={"y": 1}))
engine = detent.Engine(path, handlers=[note_it, keyed, once], writer=writer, resolution_ms=10)
engine.deploy(child)
made = [engine.start(definition, {"n": n}, key=f"k{n}") for n in range(count)]
say("started")
for n, instance in enumerate(made):
    while engine.wait_for(instance, ["completed", "failed", "cancelled", "waiting"]) == "waiting":
        indeterminate = [d for d in engine.inspect.doubts(instance) if d.state == "indeterminate"]
        for doubt in indeterminate:
            key = doubt.effect
            called = [line.split(" ") for line in Path(path + ".log").read_text().splitlines()]
            did = any(words[:3] == ["call", "once", key] for words in called)
            result = {"o": n * 100} if did else None
            engine.resolve(instance, key, "happened" if did else "again", result)
        if not indeterminate:
            break
for instance in made:
    engine.wait_for(instance)
engine.close()
say("closed")
"""


def ends(path):
    """Key, state, data and outputs of every instance of the busy program, and the proofs."""
    with detent.Engine(path) as engine:
        assert engine.inspect.verify().valid
        found = {}
        for each in engine.inspect.instances().items:
            assert engine.replay(each.id).identical
            if each.key:
                shown = engine.inspect.show(each.id)
                del shown.outputs["c"]  # names the child's own id
                found[each.key] = (each.state, shown.data, shown.outputs)
        return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "store.db"
    code, _ = run(BUSY, path, "thread", 12)
    assert code == 0
    return ends(path)


def kill_after(path, writer, lines):
    """Run the busy program and kill it when it has said so many lines."""
    with process(BUSY, path, writer, 12) as running:
        for _ in range(lines):
            if said(running) in ("closed", ""):
                break
        os.kill(running.pid, signal.SIGKILL)


@pytest.mark.req("CORE-REC-1", "CORE-EFF-4", "CORE-EFF-5")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_program_killed_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path, writer, undisturbed
):
    path = tmp_path / "store.db"
    for lines in (10, 20):
        kill_after(path, writer, lines)
    code, lines = run(BUSY, path, writer, 12)
    assert (code, lines[-1]) == (0, "closed")
    assert ends(path) == undisturbed
    calls = [words[1:] for words in noted(path)]
    once = Counter(key for doubt, key, *_ in calls if doubt == "once")
    assert set(once.values()) == {1}
    for doubt in ("keyed", "repeatable"):
        keys = {(n, part): set() for kind, _, n, part in calls if kind == doubt}
        for kind, key, n, part in calls:
            if kind == doubt:
                keys[n, part].add(key)
        assert all(len(each) == 1 for each in keys.values()), "a repetition had another key"


@pytest.mark.req("CORE-REC-1", "SEQ-1")
def test_the_writer_s_process_may_be_killed_while_busy_and_another_takes_over(tmp_path):
    path = tmp_path / "store.db"
    called = []

    @detent.handler
    def work(n: int):
        called.append(n)
        return {"n": n}

    definition = sequence(
        "s", *[step(f"s{k}", work, params={"n": "{{ data.n }}"}) for k in range(5)]
    )
    with detent.Engine(path, handlers=[work], writer="process") as engine:
        made = engine.start_many(definition, [{"n": n} for n in range(200)])
        while len(called) < 200:
            pass
        os.kill(engine._parts._link.pid, signal.SIGKILL)
        for n, instance in enumerate(made):
            assert engine.wait_for(instance) == "completed"
            assert engine.inspect.show(instance).data == {"n": n}
        assert engine.inspect.verify().valid
        assert all(engine.replay(instance).identical for instance in made[:20])
        assert engine.wait_for(engine.start(definition, {"n": 1})) == "completed"


@pytest.mark.req("CORE-REC-1")
def test_a_writer_that_dies_at_once_again_is_given_up_and_the_store_is_whole(tmp_path):
    path = tmp_path / "store.db"
    definition = sequence("s", step("a", "noop"))
    engine = detent.Engine(path, writer="process")
    first = engine.start(definition)
    os.kill(engine._parts._link.pid, signal.SIGKILL)
    second = None
    while second is None:
        with suppress(detent.StoreError):
            second = engine.start(definition, key="second")
    os.kill(engine._parts._link.pid, signal.SIGKILL)
    with refused("store.unavailable"):
        for n in range(1_000_000):
            engine.start(definition, key=f"late-{n}")
    engine.close()
    with detent.Engine(path) as engine:
        assert engine.wait_for(first) == engine.wait_for(second) == "completed"
        assert engine.inspect.verify().valid


KILLER = """
@detent.handler(on_doubt=args[0])
def deadly(ctx: detent.HandlerContext):
    note("call", ctx.key, ctx.attempt)
    os.kill(os.getpid(), signal.SIGKILL)


with detent.Engine(path, handlers=[deadly]) as engine:
    bystander = engine.start(sequence("b", step("s", "noop"), wait("w", "10ms")), key="b")
    instance = engine.start(sequence("d", step("s", deadly)), key="d")
    say(engine.wait_for(bystander))
    say(engine.wait_for(instance, ["failed", "completed", "waiting"]))
    say(engine.inspect.show(instance).error)
"""


@pytest.mark.req("CORE-REC-3")
def test_a_handler_that_kills_the_process_is_called_again_five_times_and_then_fails(tmp_path):
    path = tmp_path / "store.db"
    runs = 0
    while True:
        code, lines = run(KILLER, path, "repeatable")
        runs += 1
        if code == 0:
            break
        assert runs < 10
    assert lines[:2] == ["completed", "failed"]
    assert "effect.crash_loop" in lines[2]
    calls = noted(path)
    assert len(calls) == 1 + limits.CRASHES_PER_EFFECT
    assert len({key for _, key, _ in calls}) == 1


@pytest.mark.req("CORE-REC-3", "CORE-EFF-4")
def test_a_once_handler_that_kills_the_process_is_called_once_and_a_person_is_asked(tmp_path):
    path = tmp_path / "store.db"
    assert run(KILLER, path, "once")[0] == -signal.SIGKILL
    code, lines = run(KILLER, path, "once")
    assert (code, lines[:2]) == (0, ["completed", "waiting"])
    assert len(noted(path)) == 1
    with detent.Engine(path) as engine:
        (doubt,) = engine.inspect.doubts()
        assert (doubt.state, doubt.reason) == ("indeterminate", "crash")
