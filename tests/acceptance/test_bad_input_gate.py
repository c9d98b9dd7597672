"""Limits, pools and settings that cannot be: refused by one family of codes, nothing changed."""

from __future__ import annotations

import math

import pytest

import detent
from tests.acceptance.post import Post
from tests.acceptance.stage import refused, virtual

LONE = "\ud800"


@pytest.fixture
def engine():
    with virtual() as engine:
        engine.limits.set("box", max=1, window="1h")
        engine.pools.create("p")
        yield engine


LIMITS = {
    "bytes": {"key": b"box"},
    "nul": {"key": "a\x00b"},
    "surrogate": {"key": LONE},
    "nan": {"max": math.nan},
    "huge": {"max": 2**70},
    "float": {"max": 1.5},
    "window nan": {"window": math.nan},
    "window float": {"window": 60.0},
    "window long": {"window": "1000d"},
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_bad_limit_is_refused_as_a_limit(engine, case):
    options = {"key": "other", "max": 1, "window": "1h"} | LIMITS[case]
    key = options.pop("key")
    with refused("limit.invalid") as caught:
        engine.limits.set(key, **options)
    assert "must be" in caught.value.message
    assert [each.key for each in engine.limits.list()] == ["box"]


POOLS = {
    "bytes": ("create", (b"q",), {}),
    "surrogate": ("create", (LONE,), {}),
    "resource": ("add", ("p", b"r"), {}),
    "nan": ("add", ("p", "r"), {"weight": math.nan}),
    "huge": ("add", ("p", "r"), {"daily_cap": 2**70}),
    "zone": ("add", ("p", "r"), {"timezone": b"UTC"}),
    "caps": ("add", ("p", "r"), {"warmup_schedule": [1, b"2"]}),
    "early cap": ("add", ("p", "r"), {"daily_cap": 5, "warmup_schedule": [20, 3]}),
}


@pytest.mark.parametrize("case", POOLS)
def test_a_bad_pool_or_resource_is_refused_as_one(engine, case):
    verb, args, options = POOLS[case]
    with refused("pool.invalid"):
        getattr(engine.pools, verb)(*args, **options)
    assert [(each.name, each.resources) for each in engine.pools.list()] == [("p", ())]


def test_a_setting_that_no_engine_has_is_refused_with_the_nearest_one():
    with refused("request.invalid") as caught:
        detent.Engine(clok="virtual")
    assert caught.value.message == "an engine has no setting 'clok'; did you mean 'clock'?"


@pytest.mark.req("SEQ-LIM-1")
@pytest.mark.parametrize("said", [math.nan, math.inf, 1e18, 10**400, "soon", [1], LONE])
def test_a_retry_after_that_makes_no_sense_hides_no_failure_and_closes_nothing(said):
    with Post().open() as post:
        post.engine.limits.set("box", max=5, window="10s")
        post.trouble = [detent.Failed("busy", code="E42", retry_after=said)]
        (instance,) = post.start(post.mail("box"), "a")
        post.engine.run_until_idle()
        assert post.state(instance) == "failed"
        error = post.engine.explain(instance).error
        assert (error["message"], error["code"]) == ("busy", "E42")
        assert error["details"]["retry_after_ignored"].startswith("retry_after must be seconds")
        assert post.engine.limits.show("box").closed_until_ms is None
