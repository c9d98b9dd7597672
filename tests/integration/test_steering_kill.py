"""Steering and sudden death: what was answered is on disk, and goes on in the next process."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step, wait
from tests.acceptance.stage import state, virtual
from tests.integration.engine_processes import run

KILLED = """
engine = detent.Engine(path, writer=args[0])
made = engine.start(sequence("s", wait("w", signal="go"), step("f", "fail")), {"v": 1}, key="k")
engine.wait_for(made, "waiting")
engine.inject(made, [step("x", "noop"), step("y", "noop", delay=100)])
engine.set_data(made, {"v": 2})
engine.signal(made, "go")
engine.wait_for(made, "failed")
say(engine.resume_from(made, "x", data={"w": 3})["state"])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.req("CORE-REC-1", "SEQ-OPS-1")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_what_was_steered_before_a_kill_is_carried_on_after_it(tmp_path, writer):
    path = tmp_path / "store.db"
    code, told = run(KILLED, path, writer)
    assert (code, told) == (-9, ["scheduled"])
    with detent.Engine(path) as engine:
        (made,) = [item.id for item in engine.inspect.instances().items]
        assert engine.wait_for(made) == "completed"
        shown = engine.inspect.show(made)
        assert shown.data == {"v": 2, "w": 3}
        assert list(shown.outputs) == ["w", "x", "y"]
        assert engine.replay(made).identical
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-REC-1", "SEQ-CTX-1")
def test_a_call_of_an_injected_step_ordered_again_sees_only_what_it_may(tmp_path):
    seen = []

    @detent.handler("look")
    def look(ctx: detent.HandlerContext) -> dict:
        seen.append(ctx.data)
        return {}

    path = tmp_path / "store.db"
    with virtual(path, [look]) as engine:
        made = engine.start(sequence("s", wait("w", signal="go")), {"open": 1, "secret": 2})
        access = {"data": {"fields": ["open"]}}
        engine.inject(made, [step("x", "look", context_access=access)])
        engine.signal(made, "go")  # the call is planned, and not made before time moves
    with virtual(path, [look]) as engine:
        engine.run_until_idle()
        assert state(engine, made) == "completed"
        assert seen == [{"open": 1}]
        assert engine.replay(made).identical
