"""Many threads at every door at once: only named refusals, and a record that holds."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter

import pytest

import detent
from detent import loop, parallel, race, sequence, step, wait

EXPECTED = {"instance.terminal", "instance.transition", "migration.refused", "effect.unsettled"}


@detent.handler
def plain(n: int):
    return {"plain": n}


@detent.handler
async def awaits(n: int):
    await asyncio.sleep(0.001 * (n % 3))
    return {"awaits": n}


@detent.handler
def shaky(ctx: detent.HandlerContext):
    if ctx.attempt == 1:
        raise ValueError("first time")
    return {}


@detent.handler
def rude(kind: str):
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "odd": Odd, "none": ValueError}[kind]


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


DEFINITION = sequence(
    "crowd",
    loop(
        "l",
        "data.stop != true",
        race("r", wait("w", "20ms", signal="go"), [step("p", plain, params={"n": 1})]),
        parallel(
            "q",
            [step("a", awaits, params={"n": 2})],
            [step("s", shaky, retry=detent.retry(2, initial_backoff=10))],
        ),
        max_iterations=30,
    ),
    step("end", "noop"),
)
OTHER = sequence("crowd", *detent.definition.to_wire(DEFINITION)["blocks"], version=2)


@pytest.mark.req("CORE-INB-1", "CORE-STM-1", "CORE-STM-6")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_crowd_at_every_door_meets_only_named_refusals_and_the_record_holds(tmp_path, writer):
    settings = {"writer": writer, "resolution_ms": 10, "handlers": [plain, awaits, shaky]}
    with detent.Engine(tmp_path / "store.db", **settings) as engine:
        engine.deploy(OTHER)
        made = [engine.start(DEFINITION, {"n": n}) for n in range(12)]
        verbs = (
            lambda each: engine.signal(each, "go", {"x": 1}),
            lambda each: engine.signal(each, "other"),
            lambda each: engine.signal(each, "update_context", {"y": 1}),
            engine.pause,
            engine.resume,
            engine.resume,
            engine.retry,
            lambda each: engine.migrate(each, "crowd@2"),
            lambda each: engine.migrate(each, undo=True),
            engine.inspect.show,
            engine.inspect.tree,
            engine.explain,
            lambda each: engine.start(DEFINITION, key=f"key-{each}"),
        )
        refusals, strange = Counter(), []

        def push(seed):
            chance = random.Random(seed)
            for _ in range(60):
                try:
                    chance.choice(verbs)(chance.choice(made))
                except detent.DetentError as error:
                    refusals[error.code] += 1
                except BaseException as error:  # noqa: BLE001 - it is what the test looks for
                    strange.append(repr(error))

        crowd = [threading.Thread(target=push, args=(seed,)) for seed in range(8)]
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        assert strange == []
        assert set(refusals) <= EXPECTED
        every = [each.id for each in engine.inspect.instances().items]
        for id in every:
            if engine.inspect.show(id).summary.state == "paused":
                engine.resume(id)
            shown = engine.inspect.show(id)
            if shown.summary.state in ("running", "scheduled", "waiting"):
                engine.cancel(id)
        for id in every:
            engine.wait_for(id)
            assert engine.replay(id).identical
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-EFF-4", "SEQ-HND-2")
@pytest.mark.parametrize("kind", ["exit", "interrupt", "odd", "none"])
def test_whatever_a_handler_raises_is_its_step_s_failure_and_nobody_else_s(tmp_path, kind):
    with detent.Engine(tmp_path / "store.db", handlers=[rude, plain]) as engine:
        broken = engine.start(sequence("b", step("s", rude, params={"kind": kind})))
        assert engine.wait_for(broken) == "failed"
        assert engine.inspect.show(broken).error["message"]
        fine = engine.start(sequence("f", step("s", plain, params={"n": 1})))
        assert engine.wait_for(fine) == "completed"


def test_the_verbs_can_be_awaited(tmp_path):
    async def use():
        with detent.Engine(tmp_path / "store.db", handlers=[plain]) as engine:
            definition = sequence("s", wait("w", signal="go"), step("p", plain, params={"n": 1}))
            made = await asyncio.gather(*[engine.aio.start(definition) for _ in range(10)])
            await asyncio.gather(*[engine.aio.signal(id, "go") for id in made])
            return await asyncio.gather(*[engine.aio.wait_for(id) for id in made])

    assert asyncio.run(use()) == ["completed"] * 10
