"""Circuit breakers in a gate: when they open, who passes as the probe, and what they remember."""

from __future__ import annotations

import pytest

from detent.kernel.gate.asks import PROBE, Ask
from detent.kernel.gate.breakers import Breaker, BreakerRules, Breakers, read_breaker
from detent.kernel.gate.forecast import forecast
from detent.model import limits
from tests.unit.kernel.gate.brute import RESOLUTION_MS
from tests.unit.kernel.gate.hall import Hall, limited

RULES = BreakerRules()
COOLDOWN = limits.BREAKER_COOLDOWN_MS // RESOLUTION_MS


def broken(hall, times=RULES.threshold, *, tick=0, handler="pay"):
    for _ in range(times):
        hall.gate.broke(handler, tick, RULES)


def stored(hall, handler="pay"):
    hall.commit()
    return read_breaker(hall.rows[("breaker", handler, 0)])


@pytest.mark.req("SEQ-HND-5")
def test_it_opens_with_the_fifth_failure_and_not_before():
    hall = Hall()
    broken(hall, 4)
    assert stored(hall).state(0) == "closed"
    assert hall.ask("a", breaker="pay").state == "granted"
    broken(hall, 1)
    assert (stored(hall).state(0), stored(hall).failures) == ("open", 5)
    told = hall.ask("b", breaker="pay")
    assert (told.state, told.rule) == ("deferred", "breaker:pay")


@pytest.mark.req("SEQ-HND-5")
def test_a_success_in_between_begins_the_count_anew_and_the_breaker_stays_known():
    hall = Hall()
    broken(hall, 4)
    hall.gate.close_breaker("pay", 0)
    broken(hall, 4)
    assert hall.ask("a", breaker="pay").state == "granted"
    hall.gate.close_breaker("pay", 0)
    assert stored(hall).failures == 0


@pytest.mark.req("SEQ-HND-5")
def test_one_probe_passes_when_the_cool_down_is_over_and_its_success_lets_all_others_go():
    hall = Hall()
    broken(hall)
    for name in "abc":
        hall.ask(name, breaker="pay")
    assert hall.gate.next_due() == COOLDOWN
    assert hall.call(COOLDOWN - 1) == []
    ((name, answer),) = hall.answers(COOLDOWN)
    assert (name, answer.state, answer.rule) == ("a", "granted", PROBE)
    assert stored(hall).state(COOLDOWN) == "half_open"
    assert hall.call(COOLDOWN) == []
    assert hall.ask("d", COOLDOWN, breaker="pay").state == "deferred"
    hall.gate.close_breaker("pay", COOLDOWN + 3)
    assert hall.call(COOLDOWN + 3) == ["b", "c", "d"]
    assert stored(hall).state(COOLDOWN + 3) == "closed"


@pytest.mark.req("SEQ-HND-5")
def test_a_probe_that_fails_opens_it_for_another_cool_down():
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    hall.ask("b", breaker="pay")
    assert hall.call(COOLDOWN) == ["a"]
    broken(hall, 1, tick=COOLDOWN + 5)
    assert stored(hall).state(COOLDOWN + 5) == "open"
    assert hall.drain(until=2 * COOLDOWN + 4) == []
    assert hall.call(2 * COOLDOWN + 5) == ["b"]


@pytest.mark.req("SEQ-HND-5")
def test_a_probe_that_nobody_answers_makes_room_for_the_next_after_a_cool_down():
    hall = Hall()
    broken(hall)
    for name in "abc":
        hall.ask(name, breaker="pay")
    seen = [(tick, name) for tick, name, _ in hall.drain()]
    assert seen == [(COOLDOWN, "a"), (2 * COOLDOWN, "b"), (3 * COOLDOWN, "c")]


def test_a_call_that_began_before_may_still_fail_and_puts_the_probe_off():
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    broken(hall, 1, tick=COOLDOWN - 1)
    assert hall.call(COOLDOWN) == []
    assert hall.gate.next_due() == 2 * COOLDOWN - 1


def test_handlers_and_their_breakers_are_apart():
    hall = Hall()
    broken(hall)
    assert hall.ask("a", breaker="pay").state == "deferred"
    assert hall.ask("b", breaker="mail").state == "granted"


def test_whoever_is_called_and_leaves_was_no_probe():
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    hall.ask("b", breaker="pay")
    assert [call.instance for call in hall.gate.call(COOLDOWN, 10)] == ["a"]
    hall.gate.leave("a:1", COOLDOWN)
    assert hall.call(COOLDOWN) == ["b"]


def test_whoever_takes_late_finds_it_open_when_another_call_has_failed_meanwhile():
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    hall.gate.call(COOLDOWN, 10)
    broken(hall, 1, tick=COOLDOWN + 1)
    assert hall.gate.take("a:1", COOLDOWN + 2).state == "late"


@pytest.mark.req("SEQ-HND-5")
@pytest.mark.parametrize("called", [False, True])
def test_an_open_breaker_and_who_waits_for_it_outlive_a_restart(called):
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    hall.ask("b", breaker="pay")
    if called:
        hall.gate.call(COOLDOWN, 10)
    again = hall.restarted(COOLDOWN if called else 7)
    assert again.ask("c", 8, breaker="pay").state == "deferred"
    assert again.call(COOLDOWN) == ["a"]
    again = again.restarted(COOLDOWN + 1)
    assert again.call(2 * COOLDOWN - 1) == []
    again.gate.close_breaker("pay", COOLDOWN + 2)
    assert again.call(COOLDOWN + 2) == ["b", "c"]


def test_a_breaker_and_limits_are_granted_together_or_not_at_all():
    hall = Hall(limits=limited(box=(1, 10)))
    broken(hall)
    hall.ask("a", breaker="pay", limits=("box",))
    assert hall.ask("b", limits=("box",)).state == "granted"  # nothing was used up by who waits
    hall.gate.close_breaker("pay", 5)
    assert hall.call(5) == []
    assert [name for _, name, _ in hall.drain()] == ["a"]


def test_a_step_with_a_fallback_is_the_probe_or_is_told_at_once():
    hall = Hall()
    assert not hall.gate.probe("pay", 0)  # closed: there is nothing to probe
    broken(hall)
    assert not hall.gate.probe("pay", COOLDOWN - 1)
    assert hall.gate.probe("pay", COOLDOWN)
    assert not hall.gate.probe("pay", COOLDOWN)


def test_the_first_in_line_is_promised_its_instant_and_the_others_none():
    for ticket, at in (("a:1", COOLDOWN), ("b:1", None)):
        hall = Hall()
        broken(hall)
        hall.ask("a", breaker="pay")
        hall.ask("b", breaker="pay")
        told = forecast(hall.gate, ticket, 0)
        assert (told.rule, told.at) == ("breaker:pay", at)


def test_the_next_in_line_is_promised_the_end_of_a_probe_that_is_under_way():
    hall = Hall()
    broken(hall)
    hall.ask("a", breaker="pay")
    hall.ask("b", breaker="pay")
    hall.call(COOLDOWN)
    assert forecast(hall.gate, "b:1", COOLDOWN).at == 2 * COOLDOWN


def test_too_many_breakers_forget_the_healthiest_first():
    breakers = Breakers(RESOLUTION_MS)
    for n in range(limits.BREAKERS_PER_TENANT):
        for _ in range(RULES.threshold if n else 2):
            breakers.broke(f"h{n}", 0, RULES)
    breakers.take_rows()
    breakers.broke("new", 0, RULES)
    assert len(breakers.known) == limits.BREAKERS_PER_TENANT
    assert "h0" not in breakers.known
    rows = breakers.take_rows()
    assert rows[("breaker", "h0", 0)] is None
    assert rows[("breaker", "new", 0)] is not None


def test_other_rules_hold_from_the_next_failure_on():
    hall = Hall()
    broken(hall, 2)
    hall.gate.broke("pay", 0, BreakerRules(3, 1_000))
    assert (stored(hall).threshold, stored(hall).cooldown_ms) == (3, 1_000)
    assert stored(hall).until == 1_000 // RESOLUTION_MS


def test_a_cool_down_shorter_than_a_tick_lasts_one():
    breaker = Breaker(threshold=1, cooldown_ms=1)
    breaker.broke(4, BreakerRules(1, 1), RESOLUTION_MS)
    assert breaker.until == 5


def test_an_ask_without_a_breaker_is_stored_as_it_always_was():
    hall = Hall(limits=limited(box=(1, 10)))
    hall.ask("a", limits=("box",))
    hall.ask("b", limits=("box",))
    hall.commit()
    assert b"breaker" not in b"".join(hall.rows.values())
    assert Ask(instance="a", token=1).breaker == ""
