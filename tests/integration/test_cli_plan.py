"""`detent plan`: plans checked, drawn, and told day by day; no store is needed."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from detent.cli import exits
from tests.unit.cli.commands import detent, process

PLAN = """
name: welcome
version: 1
description: Greet <everybody> & "all".
steps:
  - {id: hello, type: send_email, template: welcome, subject: "Hi {{ contact.first_name }}"}
  - {id: pause, type: wait, days: 3, until: "09:00", business_day: true}
  - id: fork
    type: branch
    conditions:
      - {when: 'events.hasReply("hello")', goto: thanks}
      - {when: 'events.hasOpen("hello") && run.variables.eager', goto: hello}
      - {when: default, goto: ring}
  - {id: ring, type: send_voice, script: first-call}
  - {id: done, type: end, outcome: called}
  - {id: thanks, type: end, outcome: replied}
exit_conditions:
  - {when: contact.unsubscribed, outcome: unsubscribed}
"""
ANN = json.dumps(
    {
        "id": "1",
        "email": "ann@example.com",
        "timezone": "Europe/Berlin",
        "attributes": {"first_name": "Ann"},
    }
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "welcome.yaml"
    path.write_text(PLAN)
    return path


def preview(file, *arguments):
    return detent("plan", "preview", file, "--contact", ANN, "--from", "2026-01-01", *arguments)


def story(shown):
    return [each["text"] for each in shown.json["story"]]


@pytest.mark.req("PLAN-4")
def test_a_valid_plan_is_valid_and_a_faulty_one_is_named_fault_by_fault(file, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(PLAN.replace("template: welcome, ", "").replace("goto: thanks", "goto: tanks"))
    assert detent("plan", "validate", file).code == exits.OK
    shown = detent("plan", "validate", file, wrong, "--output", "json")
    assert shown.code == exits.NO
    good, bad = shown.json["definitions"]
    assert (good["valid"], good["name"]) == (True, "welcome")
    assert [(fault["path"], fault["code"]) for fault in bad["faults"]] == [
        ("steps[0].template", "definition.missing"),
        ("steps[2].conditions[0].goto", "definition.goto"),
        ("steps[5]", "definition.unreachable"),
    ]
    assert "did you mean" in bad["faults"][1]["message"]
    assert "steps[5]" in detent("plan", "validate", wrong).out


def test_a_sequence_is_no_plan(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("{name: s, version: 1, blocks: [{type: step, id: a, handler: noop}]}")
    shown = detent("plan", "validate", path)
    assert (shown.code, "definition.face" in shown.out) == (exits.NO, True)
    asked = detent("plan", "preview", path)
    assert (asked.code != exits.OK, "plan.expected" in asked.err) == (True, True)


def test_the_plan_is_drawn_with_its_ways(file):
    shown = process("plan", "preview", file, PYTHONIOENCODING="utf-8").out
    assert "@ hello   email welcome" in preview(file).out  # where only ASCII can be shown
    for line in (
        "✉ hello   email welcome",
        "◷ pause   wait 3 d, until 09:00, on a business day",
        '├─ events.hasReply("hello") → thanks',
        "☎ ring    call first-call",
        "■ thanks  end: replied",
        "any time contact.unsubscribed → unsubscribed",
    ):
        assert line in shown.splitlines()


@pytest.mark.req("PLAN-2")
def test_the_story_is_told_day_by_day_in_the_contacts_own_time(file):
    shown = preview(file)
    lines = [line.strip() for line in shown.out.splitlines()]
    start = lines.index("Day 1  Thursday 2026-01-01")
    assert lines[start + 1 : start + 10] == [
        "01:00  the run is enrolled",
        "01:00  the run starts",
        "01:00  hello sends an email (welcome): Hi Ann",
        "01:00  pause waits until Monday 2026-01-05 09:00",
        "",
        "Day 5  Monday 2026-01-05",
        "09:00  fork leads to ring, by default",
        "09:00  ring calls (first-call)",
        "09:00  the run ends: called",
    ]
    assert lines[-1] == "Outcome: called"
    assert shown.code == exits.OK


@pytest.mark.req("PLAN-5", "PLAN-RUN-6")
def test_events_can_be_assumed(file):
    replied = preview(file, "--event", "2d:replied:hello", "--output", "json")
    assert replied.json["run"]["outcome"] == "replied"
    left = preview(
        file, "--event", "1d:unsubscribed:hello", "--event", "2d:replied:hello", "--output", "json"
    )
    assert left.json["run"]["outcome"] == "unsubscribed"
    assert story(left)[-2:] == [
        "an exit condition holds: unsubscribed",
        "the run ends: unsubscribed",
    ]
    called = preview(file, "--event", "1h:called:ring=busy", "--output", "json")
    assert "ring was called (busy)" in story(called)


@pytest.mark.parametrize(
    "event",
    ["2d", "2d:sneezed:hello", "soon:replied:hello", "1d:called:ring", "1d:opened:hello=busy"],
)
def test_an_event_that_cannot_be_read_is_refused(file, event):
    shown = preview(file, "--event", event)
    assert shown.code == exits.USAGE
    assert "--event" in shown.err


def test_an_event_of_a_step_that_is_not_there_is_refused(file):
    assert "no step" in preview(file, "--event", "1d:opened:nowhere").err


def test_a_plan_that_goes_round_for_ever_is_stopped(file):
    shown = preview(
        file,
        "--event",
        "1h:opened:hello",
        "--variables",
        '{"eager": true}',
        "--days",
        30,
        "--output",
        "json",
    )
    assert shown.json["run"]["status"] == "WAITING"
    assert story(shown).count("hello sends an email (welcome): Hi Ann") > 3


def test_the_picture_is_one_svg_with_a_box_for_each_step_and_an_arrow_for_each_way(file, tmp_path):
    path = tmp_path / "plan.svg"
    assert preview(file, "--svg", path).code == exits.OK
    root = ET.fromstring(path.read_text())
    name = "{http://www.w3.org/2000/svg}"
    boxes = [each.get("id") for each in root.iter(f"{name}g") if each.get("class") == "step"]
    assert sorted(boxes) == sorted(
        f"step-{step}" for step in ("hello", "pause", "fork", "ring", "done", "thanks")
    )
    assert len([each for each in root.iter(f"{name}path") if each.get("class") == "way"]) == 6
    texts = ["".join(each.itertext()) for each in root.iter(f"{name}text")]
    assert 'Greet <everybody> & "all".' in texts
    assert "any time: contact.unsubscribed → unsubscribed" in texts
    right = max(
        float(each.get("x")) + float(each.get("width"))
        for each in root.iter(f"{name}rect")
        if each.get("x")
    )
    assert right < float(root.get("width"))


def test_a_picture_that_cannot_be_written_is_told_in_a_sentence(file, tmp_path):
    shown = preview(file, "--svg", tmp_path / "nowhere" / "plan.svg")
    assert (shown.code != exits.OK, "cannot be written" in shown.err) == (True, True)


def test_the_same_plan_gives_the_same_picture_and_story(file, tmp_path):
    shown = [preview(file, "--svg", tmp_path / f"{n}.svg", "--output", "json").json for n in (1, 2)]
    assert shown[0]["story"] == shown[1]["story"]
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
