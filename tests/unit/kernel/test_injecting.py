"""Blocks put into one instance run after those of its definition, and are kept by digest."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.model.inputs import Commanded
from tests.unit.kernel.blocks import call, fails, loop, noop, parallel, put, sleep, wait
from tests.unit.kernel.driver import World, run


def modify(id="m", *blocks, **more):
    params = {"blocks": list(blocks), **more}
    return {"type": "step", "id": id, "handler": "self_modify", "params": params}


def inject(world, *blocks, position=None, to="i1"):
    return world.command("inject", {"blocks": list(blocks), "position": position}, to)


@pytest.mark.req("SEQ-OPS-1")
def test_injected_blocks_run_after_the_definitions_own():
    world = run(call("a"), noop("b"))
    verdict = inject(world, noop("x"), noop("y"))
    assert verdict.result == {
        "injected_block_ids": ["x", "y"],
        "position": None,
        "total_injected": 2,
        "state": "running",
    }
    world.apply("a")
    assert (world.state, world.executed) == ("completed", ["a", "b", "x", "y"])


@pytest.mark.req("SEQ-OPS-1")
def test_several_injections_accumulate_and_a_position_orders_only_among_them():
    world = run(call("a"), noop("b"))
    inject(world, noop("x"))
    inject(world, noop("y"))
    assert inject(world, noop("z"), position=0).result["total_injected"] == 3
    assert inject(world, noop("w"), position=99).result["position"] == 99
    world.apply("a")
    assert world.executed == ["a", "b", "z", "x", "y", "w"]


def test_nothing_is_put_in_before_what_has_begun():
    world = run(noop("a"), call("b"))
    inject(world, call("x"), noop("y"))
    world.apply("b")
    inject(world, noop("z"), position=0)
    world.apply("x")
    assert world.executed == ["a", "b", "x", "z", "y"]


@pytest.mark.parametrize(
    "composite", [parallel([noop("x")], [noop("y")]), loop(noop("x"), max_iterations=2)]
)
def test_a_composite_is_injected_with_all_it_holds(composite):
    world = run(call("a"))
    inject(world, composite, noop("z"))
    world.apply("a")
    assert (world.state, world.executed[-1]) == ("completed", "z")


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_an_ended_instance_records_them_and_never_runs_them(end):
    world = run(wait("w", signal="go"))
    world.signal("cancel" if end == "cancelled" else "custom:go")
    assert inject(world, noop("x")).ok
    assert (world.state, world.executed) == (end, [])
    assert world.snap().injected


def test_a_failed_instance_runs_them_once_it_goes_on():
    world = run(call("a"))
    world.fail("a", retryable=False)
    inject(world, noop("x"))
    world.command("retry")
    world.apply("a")
    assert world.executed == ["a", "x"]
    again = run(fails("a"))
    inject(again, noop("x"))
    again.command("resume_from", {"block": "x"})
    assert (again.state, again.executed) == ("completed", ["x"])


def test_an_instance_paused_at_its_end_has_something_to_do_again():
    world = run(call("a"))
    world.signal("pause")
    world.apply("a")
    inject(world, noop("x"))
    world.command("resume")
    assert (world.state, world.executed) == ("completed", ["a", "x"])


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"blocks": []}, "definition.invalid"),
        ({}, "definition.invalid"),
        ({"blocks": [{"type": "nonsense", "id": "x"}]}, "definition.invalid"),
        ({"blocks": [noop("a")]}, "definition.invalid"),
        ({"blocks": [parallel([noop("a")], id="q")]}, "definition.invalid"),
        ({"blocks": [noop("x")], "position": -1}, "request.invalid"),
        ({"blocks": [noop("x")], "position": "0"}, "request.invalid"),
    ],
)
def test_what_cannot_be_put_in_is_refused_with_nothing_changed(args, code):
    world = run(call("a"))
    verdict = world.command("inject", args)
    assert (verdict.ok, verdict.code) == (False, code)
    assert world.snap().injected == ""


def test_an_id_injected_before_is_taken():
    world = run(call("a"))
    inject(world, noop("x"))
    assert "duplicate block id 'x'" in inject(world, noop("x")).message


def test_all_that_is_injected_has_a_limit(monkeypatch):
    monkeypatch.setattr(limits, "INJECTED_BYTES", 300)
    world = run(call("a"))
    assert inject(world, put("x", "v" * 100)).ok
    assert inject(world, put("y", "v" * 200)).code == "payload.too_large"
    monkeypatch.setattr(limits, "BLOCKS_TOTAL", 2)
    assert inject(world, noop("z")).code == "definition.invalid"
    world.apply("a")
    assert world.executed == ["a", "x"]


def test_the_snapshot_holds_a_digest_and_the_blocks_are_a_blob():
    world = run(call("a"))
    verdict = inject(world, put("x", "long" * 1000))
    digest = world.snap().injected
    assert verdict.ok
    assert len(world.decision.snapshot) < 2_000
    assert b"longlong" in world.actors["i1"].blobs[digest]


def test_a_program_nobody_has_compiled_is_made_from_the_blob():
    world = run(call("a"))
    inject(world, call("x"))
    world.program.extensions.clear()
    world.apply("a")
    assert world.has("x")


def test_programs_of_old_injections_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr("detent.kernel.program.EXTENSIONS_KEPT", 2)
    world = run(call("a"))
    for n in range(5):
        inject(world, noop(f"x{n}"))
    assert len(world.program.extensions) == 2


def test_an_injection_and_what_follows_may_come_in_one_turn():
    world = run(call("a"))
    told = Commanded(verb="inject", id="c1", args={"blocks": [noop("x")]})
    world.tell(told, Commanded(verb="inject", id="c2", args={"blocks": [noop("y")]}))
    world.apply("a")
    assert world.executed == ["a", "x", "y"]


def test_a_migrated_instance_keeps_its_injected_blocks_unless_ids_meet():
    world = run(call("a"), noop("b"))
    inject(world, noop("x"))
    world.signal("pause")
    world.apply("a")
    other = world.define("main", [call("a"), noop("b"), noop("c")], version=2)
    clash = world.define("main", [call("a"), noop("b"), noop("x")], version=3)
    refused = world.command("migrate", {"to": clash.hash})
    assert (refused.code, "was injected" in refused.message) == ("migration.refused", True)
    assert world.command("migrate", {"to": other.hash}).ok
    world.command("resume")
    assert (world.state, world.executed) == ("completed", ["a", "b", "c", "x"])


# self_modify -------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-HND-1")
def test_a_step_puts_blocks_in_and_the_instance_runs_them():
    world = run(modify("m", noop("x"), sleep("y", 100)), noop("b"))
    world.finish()
    assert (world.state, world.executed) == ("completed", ["m", "b", "x", "y"])
    assert world.outputs["m"] == {
        "_self_modify": True,
        "blocks": [noop("x"), sleep("y", 100)],
        "position": None,
        "injected_count": 2,
    }


@pytest.mark.req("SEQ-HND-1")
def test_the_last_step_of_all_may_put_blocks_in_before_others():
    world = run(call("a"), modify("m", noop("x"), position=0))
    inject(world, noop("y"))
    world.apply("a")
    assert world.executed == ["a", "m", "x", "y"]


def test_a_step_within_a_composite_puts_blocks_in_at_the_end():
    inner = parallel([modify("m", noop("x")), noop("c")], [call("d")])
    world = run(inner, noop("b"))
    world.apply("d")
    assert world.executed == ["p/m", "p/c", "p/d", "b", "x"]


def test_injected_blocks_may_put_further_blocks_in():
    world = run(modify("m", modify("n", noop("x"))))
    assert (world.state, world.executed) == ("completed", ["m", "n", "x"])


def test_clean_up_that_puts_blocks_in_ends_all_the_same():
    world = run(fails("a"), on_failure=[modify("m", noop("x")), noop("n")])
    assert (world.state, world.executed) == ("failed", ["on_failure/m", "on_failure/n"])


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    "params",
    [
        {"blocks": []},
        {"blocks": "x"},
        None,
        {"blocks": [{"type": "step", "id": "x"}]},
        {"blocks": [noop("m")]},
        {"blocks": [noop("x")], "position": -1},
    ],
)
def test_blocks_that_are_none_fail_the_step_for_good(params):
    block = {"type": "step", "id": "m", "handler": "self_modify", "params": params}
    world = run({**block, "retry": {"max_attempts": 3, "initial_backoff": 1, "max_backoff": 1}})
    assert world.state == "failed"
    assert world.snap().injected == ""
    assert world.error["code"] in ("definition.invalid", "request.invalid")


def test_what_was_said_of_the_blocks_is_a_fact_of_the_row():
    world = run(modify("m", noop("x")))
    (told,) = [facts for facts in world.actors["i1"].facts if facts]
    assert [key.partition(":")[0] for key in told] == ["blocks"]


def test_blocks_made_of_data_are_filled_in_when_they_are_put_in():
    world = World(modify("m", put("x", "{{ data.v }}"))).start({"v": 7})
    assert world.outputs["x"] == 7
