"""What a handler may say through `ctx`: checkpoints, where somebody keeps them."""

from __future__ import annotations

import pytest

import detent
from detent.handlers.context import KEEPER, Done
from tests.unit.handlers.calling import call

pytestmark = pytest.mark.req("SEQ-HND-2")


@detent.handler
def plain(ctx):
    ctx.checkpoint({"page": 1})
    return {"resumed": ctx.resume_checkpoint}


@detent.handler
async def awaits(ctx):
    await ctx.checkpoint({"page": 1})
    return {"resumed": ctx.resume_checkpoint}


@pytest.mark.parametrize("function", [plain, awaits], ids=["plain", "async"])
def test_inside_an_engine_a_checkpoint_is_kept_by_nobody_and_harms_nobody(function):
    with detent.Engine(clock="virtual", seed="one", handlers=[function]) as engine:
        instance = engine.start(detent.sequence("s", detent.step("a", function)))
        engine.run_until_idle()
        assert engine.inspect.show(instance).data == {"resumed": None}


class Kept:
    def __init__(self):
        self.resumed = {"page": 7}
        self.values = []

    def save(self, value):
        self.values.append(value)
        return Done()


def test_a_keeper_around_the_call_is_the_one_that_keeps():
    kept = Kept()
    token = KEEPER.set(kept)
    try:
        assert [call(each).result for each in (plain, awaits)] == [{"resumed": {"page": 7}}] * 2
    finally:
        KEEPER.reset(token)
    assert kept.values == [{"page": 1}] * 2
