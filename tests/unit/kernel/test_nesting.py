"""Blocks within blocks within blocks: paths, failures and cancels pass through all of them."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.kernel.blocks import (
    attempt,
    call,
    for_each,
    graph,
    loop,
    noop,
    parallel,
    race,
    router,
    saga,
    scope,
    split,
    wait,
)
from tests.unit.kernel.driver import run

WRAPPERS = {
    "parallel": (lambda body, name: parallel(body, [noop(f"{name}_o")], id=name), "{id}/"),
    "race": (lambda body, name: race(body, [wait(f"{name}_o", signal="never")], id=name), "{id}/"),
    "loop": (lambda body, name: loop(*body, id=name, max_iterations=1), "{id}[0]/"),
    "for_each": (lambda body, name: for_each(*body, id=name), "{id}[0]/"),
    "router": (lambda body, name: router(("true", body), id=name), "{id}/"),
    "try_catch": (
        lambda body, name: attempt(body, [call(f"{name}_c", "rethrow")], id=name),
        "{id}/",
    ),
    "split": (
        lambda body, name: split((f"{name}_v", 1, body), (f"{name}_u", 0, []), id=name),
        "{id}/",
    ),
    "scope": (lambda body, name: scope(*body, id=name), "{id}/"),
    "graph": (lambda body, name: graph({"n": body}, id=name), "{id}[0:n]/"),
    "saga": (lambda body, name: saga(*[(block, None) for block in body], id=name), "{id}/"),
}
CHAINS = [
    tuple(itertools.islice(itertools.cycle(WRAPPERS), start, start + 5))
    for start in range(len(WRAPPERS))
] + [
    tuple(itertools.islice(itertools.cycle(WRAPPERS), start, start + 15, 3)) for start in range(10)
]


def nested(chain, *body):
    """Wrap the body by the chain, outermost first; gives the block and the path to the body."""
    blocks, prefix = list(body), ""
    for depth, kind in reversed(list(enumerate(chain))):
        wrap, below = WRAPPERS[kind]
        name = f"{kind}{depth}"
        blocks = [wrap(blocks, name)]
        prefix = below.format(id=name) + prefix
    return blocks[0], prefix


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_a_step_five_blocks_deep_runs_under_its_full_path_and_the_end_is_reached(chain):
    block, prefix = nested(chain, call("deep"), call("deeper"))
    world = run(block, noop("after"), data={"items": [1]})
    assert world.order("deep").node == f"{prefix}deep"
    world.apply("deep")
    world.apply("deeper")
    assert world.state == "completed"
    assert world.executed[-1] == "after"
    assert len({order.key for order in world.history}) == 2


@pytest.mark.req("SEQ-BLK-1", "CORE-STM-2")
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_a_failure_five_blocks_deep_stops_everything_above_it(chain):
    block, _ = nested(chain, call("deep"), call("never"))
    world = run(block, noop("never2"), data={"items": [1]})
    world.fail("deep", "why", retryable=False)
    while world.has("rethrow"):
        world.fail("rethrow", "why", retryable=False)
    assert world.state == "failed"
    assert world.error["message"] == "why"
    assert not any("never" in path for path in world.executed)


@pytest.mark.req("SEQ-BLK-1", "CORE-EFF-2")
@pytest.mark.parametrize(
    "chain", [c for c in CHAINS if not {"saga", "try_catch"} & {*c}], ids="-".join
)
def test_a_retry_five_blocks_deep_goes_on_there(chain):
    block, prefix = nested(chain, call("first"), call("deep"))
    world = run(block, noop("after"), data={"items": [1]})
    world.apply("first")
    world.fail("deep", retryable=False)
    assert world.command("retry").ok
    assert [order.node for order in world.orders] == [f"{prefix}deep"]
    world.apply("deep")
    assert world.state == "completed"


@pytest.mark.req("SEQ-SIG-1", "SEQ-BLK-5")
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_a_cancel_reaches_five_blocks_deep_and_finally_runs(chain):
    block, prefix = nested(
        chain, attempt([wait("deep", signal="x")], [], [call("tidy")], id="last")
    )
    world = run(block, noop("never"), data={"items": [1]})
    world.signal("cancel")
    if "scope" in chain:
        assert world.state == "waiting", "the scope protects what is in it"
        world.signal("custom:x")
    assert world.order("tidy").node == f"{prefix}last/tidy"
    world.apply("tidy")
    assert world.state == "cancelled"
    assert "never" not in world.executed
