"""Users' own policies: clear answers pass, everything else fails closed."""

from __future__ import annotations

import pytest

from detent.handlers import allow, defer, fail, pause, policy, skip
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied, decode_input
from detent.model.limits import DURATION_MS, POLICY_TIMEOUT_MS
from tests.unit.handlers.calling import call, order_for, registry_of

REQUEST = {
    "step": "mail",
    "handler": "send",
    "params": {"to": "x"},
    "data": {"country": "DE"},
    "config": {},
    "attempt": 1,
}


def answering(answer):
    @policy
    def rule(step: str, data: dict):
        if isinstance(answer, Exception):
            raise answer
        return answer

    outcome = call(rule, REQUEST)
    assert isinstance(outcome, EffectApplied)
    return outcome.result


@pytest.mark.req("CORE-POL-1")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (allow(), {"allowed": True}),
        (pause("audit"), {"allowed": False, "action": "pause", "reason": "audit"}),
        (fail("banned"), {"allowed": False, "action": "fail", "reason": "banned"}),
        (skip("opted out"), {"allowed": False, "action": "skip_with_log", "reason": "opted out"}),
        (
            defer("night", until_ms=5),
            {"allowed": False, "action": "defer", "reason": "night", "until_ms": 5},
        ),
        (
            defer("busy", for_ms=0),
            {"allowed": False, "action": "defer", "reason": "busy", "for_ms": 0},
        ),
    ],
)
def test_an_answer_of_a_policy_becomes_its_verdict(answer, told):
    assert answering(answer) == told


@pytest.mark.req("CORE-POL-2")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ValueError("boom"), "raised ValueError: boom"),
        (None, "got NoneType"),
        (True, "got bool"),
        ({"allowed": True}, "got dict"),
        (fail("a\x00b"), "NUL"),
    ],
)
def test_an_exception_or_an_unreadable_answer_fails_closed(answer, words):
    told = answering(answer)
    assert (told["allowed"], told["action"]) == (False, "fail")
    assert words in told["reason"]


@pytest.mark.req("CORE-POL-2")
def test_a_timeout_fails_closed():
    @policy(timeout_ms=20)
    def slow():
        return allow()

    registry = registry_of(slow)
    order = order_for("slow", REQUEST, timeout_ms=registry.specs()["slow"].timeout_ms)
    told = decode_input(registry.performer("slow", "call").timed_out(order, 1))
    assert told.result["action"] == "fail"
    assert "within 20 ms" in told.result["reason"]


@pytest.mark.req("CORE-POL-2")
def test_a_policy_that_wants_what_the_request_does_not_have_fails_closed():
    @policy
    def wrong(weather: str):
        return allow()

    assert call(wrong, REQUEST).result["allowed"] is False


def test_a_policy_is_asked_in_a_dry_run_too_since_it_only_decides():
    @policy
    def rule(step: str):
        return pause(step)

    assert call(rule, REQUEST, dry_run=True).result["reason"] == "mail"


def test_a_policy_is_a_repeatable_handler_with_a_timeout_whose_verdict_is_not_merged():
    @policy
    def rule():
        return allow()

    spec = registry_of(rule).specs()["rule"]
    assert (spec.doubt, spec.timeout_ms, spec.merge) == ("repeatable", POLICY_TIMEOUT_MS, False)
    assert not spec.marked


def test_a_defer_says_until_when_in_exactly_one_way():
    assert defer("x", for_ms=DURATION_MS).for_ms == DURATION_MS
    for options in ({}, {"until_ms": 1, "for_ms": 1}, {"for_ms": -1}, {"for_ms": DURATION_MS + 1}):
        with pytest.raises(RequestError, match=r"request\.invalid"):
            defer("x", **options)
