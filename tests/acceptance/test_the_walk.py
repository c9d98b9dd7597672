"""The example of docs/explanation/the-walk.md, station by station, through public doors.

The page names ten functions; each test below is what can be seen of one of them from outside.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

import detent

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "the-walk.md"
THREE_DAYS = 3 * 24 * 3600 * 10  # ticks of 100 ms


def program():
    """Run what the page defines, but not what it starts: the text, the handlers, the definition."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    space = {"__name__": "__page__"}
    exec(block.partition("definition = ")[0], space)
    return space


@pytest.fixture
def page():
    return program()


@pytest.fixture
def handlers(page):
    return [page["charge_card"], page["send_thanks"]]


@pytest.fixture
def engine(handlers):
    with detent.Engine(clock="virtual", seed="walk", handlers=handlers) as engine:
        yield engine


@pytest.fixture
def start(engine, page):
    definition = detent.parse(page["ORDER"])
    data = {"amount": 990, "email": "ada@example.org"}
    return lambda: engine.start(definition, data, key="order-7")


def actions(engine, instance):
    return [entry.action for entry in engine.inspect.audit(instance)]


def test_the_page_names_its_ten_stations_in_order():
    headings = re.findall(r"^## \d+\. (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    road = "parse normalize start turn load step commit dispatch outcome resume"
    assert headings == road.split()


@pytest.mark.req("WF-DEF-1", "PLAN-6")
def test_parse_reads_the_text_into_the_same_definition_as_the_builders(page):
    built = detent.sequence(
        "order",
        detent.step("charge", page["charge_card"], params={"amount": "{{ data.amount }}"}),
        detent.wait("settle", duration="3d"),
        detent.step("thank", page["send_thanks"], params={"to": "{{ data.email }}"}),
    )
    assert detent.parse(page["ORDER"]).canonical == built.canonical


def test_normalize_names_every_fault_with_its_place(page):
    broken = (
        page["ORDER"].replace("handler: charge_card", "handler: ''").replace("settle", "charge")
    )
    with pytest.raises(detent.DefinitionError) as caught:
        detent.parse(broken)
    assert [fault.path for fault in caught.value.faults] == ["blocks[0].handler", "blocks[1].id"]


@pytest.mark.req("SEQ-3")
def test_start_makes_one_instance_per_key(engine, start):
    first = start()
    assert start() == first
    assert len(engine.inspect.instances().items) == 1


def test_start_refuses_what_it_can_refuse_with_nothing_written(engine, page):
    definition = detent.parse(page["ORDER"].replace("send_thanks", "send_nothing"))
    with pytest.raises(detent.RequestError) as caught:
        engine.start(definition)
    assert caught.value.code == "handler.unknown"
    assert engine.inspect.instances().items == ()


@pytest.mark.req("CORE-SCH-1")
def test_the_turn_that_takes_the_start_decides_up_to_the_first_call(engine, start):
    instance = start()
    expected = ["run.created", "run.started", "step.entered", "effect.planned"]
    assert actions(engine, instance) == expected
    assert engine.inspect.show(instance).snapshot_version == 1


@pytest.mark.req("CORE-REC-1", "WF-RTW-1")
def test_load_goes_on_from_bytes_in_another_engine(tmp_path, handlers, page):
    path = tmp_path / "walk.db"
    with detent.Engine(path, clock="virtual", handlers=handlers) as engine:
        instance = engine.start(detent.parse(page["ORDER"]), {"amount": 1, "email": "a@b.c"})
        engine.advance(dt.timedelta(hours=1))
    with detent.Engine(path, handlers=handlers) as engine:
        assert engine.inspect.show(instance).summary.state == "waiting"
        assert engine.wait_for(instance) == "completed"
        assert actions(engine, instance).count("effect.planned") == 2


@pytest.mark.req("CORE-RPL-1")
def test_step_decides_the_same_bytes_again(engine, start):
    instance = start()
    engine.run_until_idle()
    replay = engine.replay(instance)
    assert (replay.identical, replay.rows, replay.first_difference) == (True, 4, None)


@pytest.mark.req("CORE-STM-4", "CORE-AUD-3")
def test_commit_chains_one_row_per_turn_of_the_instance(engine, start):
    instance = start()
    engine.run_until_idle()
    assert engine.inspect.show(instance).snapshot_version == 4
    found = engine.inspect.verify()
    assert (found.valid, found.rows, found.instances) == (True, 4, 1)


@pytest.mark.req("CORE-EFF-1", "CORE-EFF-2")
def test_dispatch_calls_with_the_key_that_was_committed_before(engine, start):
    instance = start()
    (planned,) = engine.inspect.audit(instance, action="effect.planned")
    (effect,) = engine.inspect.effects(instance)
    assert (effect.key, effect.state) == (planned.detail["key"], "planned")
    engine.run_until_idle()
    assert engine.inspect.show(instance).data["charge"] == f"ch_{effect.key[:6]}"


@pytest.mark.req("CORE-EFF-5")
def test_the_outcome_is_an_input_of_the_row_that_settles_the_effect(engine, start):
    instance = start()
    engine.run_until_idle()
    applied = engine.inspect.audit(instance, action="effect.applied")
    assert [entry.seq for entry in applied] == [2, 4]
    assert applied[1].input["result"] == {"thanked": "ada@example.org"}
    states = [effect.state for effect in engine.inspect.effects(instance)]
    assert states == ["applied", "applied"]


@pytest.mark.req("CORE-CLK-3", "CORE-EXP-1")
def test_resume_comes_with_the_due_tick_and_not_before(engine, start):
    instance = start()
    engine.advance(dt.timedelta(days=3) - dt.timedelta(milliseconds=100))
    said = engine.explain(instance)
    assert (said.state, said.earliest) == ("waiting", THREE_DAYS)
    assert "step.executed" not in actions(engine, instance)[7:]
    engine.advance(dt.timedelta(milliseconds=100))
    assert engine.inspect.show(instance).summary.state == "completed"
    (thanked,) = engine.inspect.audit(instance, action="run.completed")
    assert thanked.tick == THREE_DAYS
