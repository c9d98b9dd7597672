"""Every standing instance says why it stands, and the instant it names is true."""

from __future__ import annotations

import pytest

from detent.kernel.cron_words import instant
from detent.kernel.explain import RESOLUTIONS, explain
from detent.kernel.recording import Timing
from detent.kernel.step import Facts, step
from detent.model import limits
from detent.model.decision import HandlerSpec
from detent.model.inputs import EffectDoubted
from tests.unit.kernel.stories import HANDLERS, tell_story
from tests.unit.kernel.worlds import World, a_program, a_step

TIMING = Timing(epoch_ms=0, resolution_ms=100)


def explained(world):
    return explain(world.snapshot, world.program, TIMING, world.tick)


def started(*blocks, **more):
    world = World(a_program(list(blocks), **more), handlers=HANDLERS)
    world.start({"items": [1]}, tick=10)
    return world


def quiet_at(world, tick):
    """Whether a turn at a tick, with no input, changes nothing."""
    facts = Facts(handlers=HANDLERS, given={}, epoch_ms=0, resolution_ms=100)
    program = world.programs[world.decision.definition]
    while True:
        decision = step(program, world.body, [], tick, facts)
        if not isinstance(decision, list):
            return decision.journal == b""
        for need in decision:
            world._give(need, facts.given)


@pytest.mark.req("CORE-EXP-1")
@pytest.mark.parametrize("part", range(6))
def test_nothing_happens_before_the_earliest_instant_and_something_does_at_it(part):
    checked = 0
    for seed in range(part * 40, part * 40 + 40):
        for world in tell_story(seed):
            told = explained(world)
            if told.earliest is None:
                never = world.tick + 10**7
                assert world.snapshot.effects or quiet_at(world, never), f"seed {seed}"
                continue
            checked += 1
            assert told.earliest >= world.tick
            if told.earliest > world.tick:
                assert quiet_at(world, told.earliest - 1), f"seed {seed} moves early"
            assert not quiet_at(world, told.earliest), f"seed {seed} does not move"
    assert checked > 50


@pytest.mark.req("CORE-EXP-1")
def test_every_instance_that_stands_gives_a_reason():
    for seed in range(60):
        for world in tell_story(seed):
            told = explained(world)
            assert told.summary
            assert (
                told.waits
                or told.effects
                or told.state
                in (
                    "completed",
                    "failed",
                    "cancelled",
                    "paused",
                )
            ), f"seed {seed}: {told.state}"


@pytest.mark.parametrize(
    ("block", "kind", "words", "due"),
    [
        ({"type": "wait", "id": "w", "duration": 500}, "timer", "waits for a time", 15),
        ({"type": "wait", "id": "w", "signal": "go"}, "signal", "the signal 'go'", None),
        (
            {"type": "wait", "id": "w", "signal": "go", "duration": 500},
            "signal",
            "the signal 'go'",
            15,
        ),
        (a_step("w", delay={"duration": 300}), "delay", "waits for its delay", 13),
        (a_step("w", "sleep", params={"duration_ms": 200}), "sleep", "sleeps", 12),
        (
            a_step("w", wait_for_input={"prompt": "Send it?"}),
            "human",
            "a person's answer to 'Send it?'",
            None,
        ),
    ],
)
def test_a_wait_says_what_it_waits_for_since_when_and_until_when(block, kind, words, due):
    told = explained(started(block))
    [wait] = told.waits
    assert (wait.node, wait.kind, wait.since, wait.due) == ("w", kind, 10, due)
    assert words in wait.text
    assert "since 1970-01-01T00:00:01.000Z" in wait.text
    assert told.earliest == due
    assert wait.released_by


def test_a_call_names_who_is_called_its_attempt_and_what_follows_without_an_answer():
    told = explained(started(a_step("a", "work")))
    [effect] = told.effects
    assert (effect.handler, effect.attempt, effect.state, effect.due) == ("work", 1, "planned", 130)
    assert told.earliest == 130
    assert "the outcome of work (attempt 1)" in told.waits[0].text
    assert any("counts as failed" in each for each in told.waits[0].released_by)


def test_a_retry_names_the_failure_and_the_next_attempt():
    retry = {"max_attempts": 3, "initial_backoff": 1_000, "max_backoff": 5_000}
    world = started(a_step("a", retry=retry))
    world.fail("the mailbox is full")
    told = explained(world)
    assert "the mailbox is full" in told.waits[0].text
    assert told.earliest == 20


def test_an_indeterminate_call_names_the_four_resolutions_and_no_instant():
    world = World(a_program([a_step("a", "pay")]), handlers=HANDLERS)
    world.start(tick=1)
    world.tell(EffectDoubted(key=next(iter(world.orders)), reason="the line was cut"))
    told = explained(world)
    assert told.state == "waiting"
    assert told.earliest is None
    assert told.waits[0].kind == "decision"
    assert told.waits[0].released_by == RESOLUTIONS
    assert told.effects[0].resolutions == RESOLUTIONS
    assert "the line was cut" in told.effects[0].text
    assert [each.partition(":")[0] for each in RESOLUTIONS] == [
        "happened",
        "failed",
        "skip",
        "again",
    ]


def test_a_paused_instance_has_no_instant_until_it_is_resumed():
    world = started(a_step("w", delay={"duration": 300}))
    assert explained(world).earliest == 13
    world.command("pause")
    told = explained(world)
    assert (told.state, told.earliest) == ("paused", None)
    assert "moves only when it is resumed" in told.summary
    assert quiet_at(world, 13)
    assert quiet_at(world, 10**6)
    world.command("resume")
    assert explained(world).earliest == 13


def test_a_pause_asked_for_in_a_wait_is_told():
    world = started({"type": "wait", "id": "w", "duration": 500})
    world.command("pause")
    told = explained(world)
    assert told.pause_requested
    assert "A pause was asked for" in told.summary


def test_a_policy_that_pauses_is_named_as_what_holds_the_step():
    budget = {"kind": "effect_budget", "params": {"max_effects": 1}}
    world = started(a_step("a"), a_step("b"), policies=[budget])
    world.apply({})
    told = explained(world)
    assert told.state == "paused"
    assert told.waits[0].kind == "gate"
    assert told.waits[0].released_by == ("resume",)


def test_a_child_is_named():
    other = a_program([a_step("x")])
    program = a_program([{"type": "sub_sequence", "id": "s", "sequence_name": "story"}])
    world = World(program, other, children={"story": other.hash})
    world.start(tick=1)
    told = explained(world)
    assert told.waits[0].kind == "child"
    assert told.earliest is None
    assert "the end of instance" in told.waits[0].released_by[0]


def test_an_instance_out_of_moves_goes_on_at_once():
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": limits.MOVES_PER_TURN,
        "body": [a_step("n", "noop")],
    }
    world = started(loop)
    told = explained(world)
    assert world.snapshot.more
    assert told.earliest == world.tick
    assert "goes on in the next one" in told.summary


def test_what_has_ended_says_how_and_moves_no_more():
    done, failed = started(a_step("a", "noop")), started(a_step("a", "fail"))
    assert "completed at" in explained(done).summary
    assert "forced failure" in explained(failed).summary
    assert "Retry it" in explained(failed).summary
    assert explained(done).earliest is explained(failed).earliest is None


def test_a_cancel_that_waits_for_a_call_says_so():
    world = World(a_program([a_step("a", "slow")]), handlers={"slow": HandlerSpec(name="slow")})
    world.start(tick=1)
    world.command("cancel")
    told = explained(world)
    assert told.cancel_requested
    assert told.waits[0].kind == "settling"
    assert "slow" in told.waits[0].text
    assert told.effects[0].unwanted


def test_kept_signals_are_listed_until_they_are_taken():
    world = started(a_step("a"), {"type": "wait", "id": "w", "signal": "go"})
    world.signal("custom:go", {"x": 1})
    assert explained(world).signals == ("go",)
    world.apply({})
    assert explained(world).signals == ()


def test_an_instant_that_is_no_date_any_more_is_still_told():
    last = 253_402_300_799_999
    assert instant(last) == "9999-12-31T23:59:59.999Z"
    assert instant(last + 1) == "an instant after the year 9999"
