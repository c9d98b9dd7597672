"""Plans as definitions: one form in Python, YAML and JSON, and every fault with its place."""

from __future__ import annotations

import json

import pytest

import detent
from detent.definition import diff, to_wire, unknown_fields
from detent.model.limits import PLAN_CONDITIONS, PLAN_EXITS, PLAN_STEPS

YAML = """
name: welcome
version: 3
description: Greet a new customer.
created_by: ann
steps:
  - id: hello
    type: send_email
    template: welcome
    subject: "Hi {{ contact.first_name }}"
    reply_to: sales@example.com
    tracking: {opens: true, clicks: true}
    retry: {max_attempts: 3, initial_backoff: 1000, max_backoff: 60000}
  - {id: pause, type: wait, days: 3, hours: 2}
  - {id: morning, type: wait, until: "09:00", business_day: true, country: DE}
  - id: fork
    type: branch
    conditions:
      - {when: 'events.hasReply("hello")', goto: thanks}
      - {when: default, goto: ring}
  - id: ring
    type: send_voice
    script: first-call
    caller_id: "+15550100"
    max_duration: 300000
    voicemail: {detect: true, message: Call us, fallback_speech: Please call us}
  - {id: crm, type: step, handler: note, params: {call: '{{ run.step_results.ring.status }}'}}
  - {id: done, type: end, outcome: called}
  - {id: thanks, type: end, outcome: replied}
exit_conditions:
  - {when: contact.unsubscribed, outcome: unsubscribed}
  - {when: 'call.outcome("ring") == "declined"', outcome: declined}
"""


def built(**changes):
    """The same plan by the builders."""
    options = {
        "version": 3,
        "description": "Greet a new customer.",
        "created_by": "ann",
        "transitions": detent.linear(),
        "exit_conditions": [
            detent.exit_when("contact.unsubscribed", "unsubscribed"),
            detent.exit_when('call.outcome("ring") == "declined"', "declined"),
        ],
    }
    return detent.plan(
        "welcome",
        detent.send_email(
            "hello",
            "welcome",
            subject="Hi {{ contact.first_name }}",
            reply_to="sales@example.com",
            tracking={"opens": True, "clicks": True},
            retry=detent.retry(3),
        ),
        detent.wait("pause", days=3, hours=2),
        detent.wait("morning", until="09:00", business_day=True, country="DE"),
        detent.branch("fork", ('events.hasReply("hello")', "thanks"), default="ring"),
        detent.send_voice(
            "ring",
            "first-call",
            caller_id="+15550100",
            max_duration="5m",
            voicemail={
                "detect": True,
                "message": "Call us",
                "fallback_speech": "Please call us",
            },
        ),
        detent.step("crm", "note", params={"call": "{{ run.step_results.ring.status }}"}),
        detent.end("done", "called"),
        detent.end("thanks", "replied"),
        **{**options, **changes},
    )


def plan_of(*steps, **more):
    return detent.plan("p", *steps, **more)


def faults_of(*steps, **more):
    with pytest.raises(detent.DefinitionError) as caught:
        plan_of(*steps, **more)
    return [(fault.path, fault.code) for fault in caught.value.faults]


@pytest.mark.req("PLAN-2", "PLAN-6")
def test_builders_yaml_and_json_give_the_same_bytes():
    raw = detent.definition.read(YAML)
    from_json = detent.parse(json.dumps(raw))
    assert built().canonical == detent.parse(YAML).canonical == from_json.canonical


@pytest.mark.req("PLAN-6")
def test_the_canonical_form_and_the_shown_form_read_back_as_the_same_plan():
    plan = built()
    assert detent.parse(plan.canonical).canonical == plan.canonical
    assert detent.normalize(to_wire(plan)).hash == plan.hash


@pytest.mark.req("PLAN-1")
def test_a_plan_carries_what_its_author_said_and_a_change_is_another_hash():
    plan = built()
    assert (plan.name, plan.version, plan.body.face) == ("welcome", 3, "plan")
    assert plan.body.metadata == {"description": "Greet a new customer.", "created_by": "ann"}
    assert [each.outcome for each in plan.body.exits] == ["unsubscribed", "declined"]
    assert built(version=4).hash != plan.hash
    (change,) = diff(plan, built(created_by="bob"))
    assert change.path == "metadata.created_by"


@pytest.mark.req("PLAN-1")
def test_when_it_was_created_is_no_part_of_what_is_hashed():
    wire = to_wire(built())
    assert detent.normalize({**wire, "created_at": "2026-01-01"}).hash == built().hash


@pytest.mark.req("PLAN-2")
def test_sends_become_steps_of_the_handlers_email_and_voice():
    nodes = built().body.blocks[0].nodes
    (hello,), (ring,) = nodes["hello"], nodes["ring"]
    assert (hello.handler, hello.params["template"]) == ("email", "welcome")
    assert (ring.handler, ring.params["max_duration"]) == ("voice", 300_000)
    assert nodes["pause"][0].duration == 3 * 86_400_000 + 2 * 3_600_000
    assert nodes["fork"] == ()


@pytest.mark.req("PLAN-3")
def test_linear_transitions_lead_on_but_never_out_of_a_branch_or_an_end():
    moves = [(move.origin, move.to) for move in built().body.blocks[0].transitions]
    assert ("hello", "pause") in moves
    assert ("crm", "done") in moves
    assert [to for origin, to in moves if origin == "fork"] == ["thanks", "ring"]
    assert not [to for origin, to in moves if origin in ("done", "thanks")]


@pytest.mark.req("PLAN-3")
def test_explicit_transitions_may_have_conditions_in_both_forms():
    steps = [detent.wait("a", days=1), detent.wait("b", days=1), detent.end("c")]
    moves = detent.explicit([("a", "c", "contact.vip"), ("a", "b"), ("b", "c", "default")])
    made = plan_of(*steps, transitions=moves)
    written = [
        {"from": "a", "to": "c", "when": "contact.vip"},
        {"from": "a", "to": "b"},
        {"from": "b", "to": "c"},
    ]
    assert plan_of(*steps, transitions=written).canonical == made.canonical


@pytest.mark.req("PLAN-4")
def test_all_faults_of_a_plan_are_reported_at_once_with_their_places():
    found = faults_of(
        detent.send_email("a"),
        detent.send_email("a", "again"),
        detent.branch("b", ("contact.vip", "nowhere"), ("contact.old", "v")),
        detent.send_voice("v", ""),
        detent.wait("w", days="many"),
        detent.wait("round", days=1),
        detent.end("lost"),
        transitions=[("a", "b"), ("v", "w"), ("w", "round"), ("round", "w"), ("x", "a")],
    )
    assert found == [
        ("steps[0].template", "definition.missing"),
        ("steps[1].id", "definition.duplicate_id"),
        ("steps[2].conditions", "definition.default"),
        ("steps[2].conditions[0].goto", "definition.goto"),
        ("steps[3].script", "definition.blank"),
        ("steps[4]", "definition.cycle"),
        ("steps[4].duration", "definition.type"),
        ("steps[6]", "definition.unreachable"),
        ("transitions[4].from", "definition.node"),
    ]


@pytest.mark.req("PLAN-4")
def test_a_plan_of_too_many_steps_is_refused_and_one_of_as_many_is_not():
    steps = [detent.wait(f"w{number}", seconds=1) for number in range(PLAN_STEPS)]
    assert len(plan_of(*steps).body.blocks[0].nodes) == PLAN_STEPS
    more = [*steps, detent.send_email("last")]
    assert faults_of(*more) == [(f"steps[{PLAN_STEPS}]", "definition.size")]
    assert faults_of() == [("steps", "definition.empty")]


def test_exits_and_conditions_have_limits():
    end = detent.end("e")
    plan_of(end, exit_conditions=[detent.exit_when("contact.a")] * PLAN_EXITS)
    over = [detent.exit_when("contact.a")] * (PLAN_EXITS + 1)
    assert faults_of(end, exit_conditions=over) == [("exit_conditions", "definition.size")]
    ways = [("contact.a", "e")] * PLAN_CONDITIONS
    assert faults_of(detent.branch("b", *ways, default="e"), end) == [
        ("steps[0].conditions", "definition.size"),
        ("steps[1]", "definition.unreachable"),
    ]


@pytest.mark.req("PLAN-4")
def test_a_default_must_be_the_last_condition():
    found = faults_of(detent.branch("b", ("default", "e"), ("contact.vip", "e")), detent.end("e"))
    assert found == [
        ("steps[0].conditions[0]", "definition.default"),
    ]


@pytest.mark.req("PLAN-4")
def test_branches_that_only_lead_to_each_other_are_a_cycle_without_a_wait():
    found = faults_of(
        detent.branch("a", ("contact.vip", "e"), default="b"),
        detent.branch("b", default="a"),
        detent.end("e"),
    )
    assert found == [("steps[0]", "definition.cycle"), ("steps[1]", "definition.cycle")]


@pytest.mark.req("PLAN-4")
def test_a_cycle_with_a_wait_and_a_way_out_is_allowed():
    made = plan_of(
        detent.wait("w", days=1),
        detent.branch("b", ('events.hasReply("w")', "e"), default="w"),
        detent.end("e"),
    )
    assert made.body.face == "plan"


@pytest.mark.req("PLAN-4", "PLAN-COND-1")
@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ('events.hasReply("helo")', "definition.step"),
        ('call.outcome("helo") == "answered" || contact.vip', "definition.step"),
        ("contacts.vip", "definition.expression"),
        ("events.hasSneezed()", "definition.expression"),
        ("contact.vip &&", "definition.expression"),
        ("", "definition.blank"),
    ],
)
def test_a_condition_that_means_nothing_is_refused_when_the_plan_is_made(condition, code):
    found = faults_of(
        detent.send_email("hello", "t"),
        detent.branch("b", (condition, "e"), default="e"),
        detent.end("e"),
        exit_conditions=[{"when": condition, "outcome": "x"}],
    )
    assert found == [("exit_conditions[0].when", code), ("steps[1].conditions[0].when", code)]


@pytest.mark.req("PLAN-COND-1")
@pytest.mark.parametrize(
    "condition",
    [
        'events.hasReply("hello")',
        'events.hasOpen("any")',
        "events.hasClick(any)",
        "events.hasBounce()",
        "contact.unsubscribed || contact.bounced",
        'contact.age + 1 >= 18 && contact.country in ["DE", "AT"]',
        'call.outcome("hello") == "answered"',
        "run.step_results.hello.output.status == 'delivered' && clock.tick > 3",
    ],
)
def test_conditions_speak_of_events_contact_calls_run_and_clock(condition):
    plan_of(detent.send_email("hello", "t"), exit_conditions=[detent.exit_when(condition)])


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (
            [{"type": "wait", "id": "w"}],
            [("steps[0]", "definition.missing")],
        ),
        (
            [{"type": "wait", "id": "w", "days": 1, "duration": 5}],
            [("steps[0].duration", "definition.exclusive")],
        ),
        (
            [{"type": "wait", "id": "w", "days": 1, "country": "DE"}],
            [("steps[0].country", "definition.exclusive")],
        ),
        (
            [{"type": "wait", "id": "w", "until": "25:00"}],
            [("steps[0].until", "definition.date")],
        ),
        (
            [{"type": "wait", "id": "w", "until": {"timezone": "UTC"}}],
            [("steps[0].until", "definition.missing")],
        ),
        ([{"type": "wait", "id": "w", "days": 40_000}], [("steps[0]", "definition.duration")]),
        ([{"type": "wait", "id": "any", "days": 1}], [("steps[0].id", "definition.block_id")]),
        ([{"type": "wait", "id": "plan", "days": 1}], [("steps[0].id", "definition.duplicate_id")]),
        ([{"type": "send_mail", "id": "w"}], [("steps[0].type", "definition.unknown_type")]),
        ([{"id": "w"}], [("steps[0].type", "definition.missing")]),
        (["w"], [("steps[0]", "definition.type")]),
    ],
)
def test_a_step_that_is_none_is_named(steps, found):
    assert faults_of(*steps) == found


@pytest.mark.req("PLAN-6")
def test_parts_of_a_wait_add_up_and_may_be_fractions():
    made = plan_of(detent.wait("w", "30m", days=1.5, hours=2, seconds=1))
    raw = {"type": "wait", "id": "w", "days": 1.5, "hours": 2, "minutes": 30, "seconds": 1}
    assert made.canonical == plan_of(raw).canonical
    assert made.body.blocks[0].nodes["w"][0].duration == 138_601_000
    assert plan_of(detent.wait("w", 1.5, minutes=1)).body.blocks[0].nodes["w"][0].duration == 61_500
    assert faults_of({**raw, "days": -1}) == [("steps[0].days", "definition.range")]
    assert faults_of({**raw, "days": "1"}) == [("steps[0].days", "definition.type")]


def test_who_sends_is_not_chosen_in_a_plan():
    raw = {
        "name": "p",
        "version": 1,
        "steps": [{"type": "send_email", "id": "a", "template": "t", "queue_name": "q"}],
    }
    (warning,) = unknown_fields(raw)
    assert warning.startswith("steps[0].queue_name: unknown field of a send_email")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"mode": "lenient"}, "mode"),
        ({"face": "sequence"}, "blocks[0].nodes.e[0]"),
        ({"face": "sequence", "mode": "lenient"}, "exits"),
        ({"blocks": [{"type": "step", "id": "s", "handler": "h"}]}, "blocks"),
    ],
)
def test_what_is_written_as_blocks_must_still_be_a_plan(changes, path):
    wire = to_wire(plan_of(detent.end("e"), exit_conditions=[detent.exit_when("contact.a")]))
    with pytest.raises(detent.DefinitionError) as caught:
        detent.normalize({**wire, **changes})
    assert (path, "definition.face") in [(fault.path, fault.code) for fault in caught.value.faults]


def test_a_node_of_a_plan_holds_one_block_with_its_own_name():
    wire = to_wire(plan_of(detent.end("e")))
    wire["blocks"][0]["nodes"]["e"] = [{"type": "step", "id": "other", "handler": "h"}]
    with pytest.raises(detent.DefinitionError) as caught:
        detent.normalize(wire)
    assert caught.value.faults[0].code == "definition.face"


def test_an_end_outside_a_plan_is_refused():
    with pytest.raises(detent.DefinitionError) as caught:
        detent.sequence("s", detent.end("e"))
    assert [fault.code for fault in caught.value.faults] == ["definition.face"]
