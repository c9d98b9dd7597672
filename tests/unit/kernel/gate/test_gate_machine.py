"""A gate against brute force: random asks, calls, leaves, changes and restarts, in random order."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from detent.kernel.gate import waiting
from detent.kernel.gate.asks import Ask
from detent.kernel.gate.forecast import forecast
from detent.kernel.gate.lines import PATIENCE
from detent.kernel.gate.needs import needs_of
from tests.unit.kernel.gate.brute import Brute, cap_of, day_of, exceeded, in_hours
from tests.unit.kernel.gate.hall import DAY, IN_HOURS, ROOM, Hall, limited, pooled

LIMITS = limited(a=(2, 3), b=(1, 4.5), m1=(1, 2))
POOLS = {
    "p": pooled(r1={"key": "m1", "weight": 2}, r2={"key": "m2", "daily_cap": 3}),
    "q": pooled(
        s1={"key": "m1", "daily_cap": 2, "timezone": "America/New_York"},
        s2={"key": "m3", "daily_cap": 9, "warmup_start": day_of(0, "UTC"), "warmup_days": 2},
    ),
}
SLOTS = {"k1": 1, "k2": 2}

limits_wanted = st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("b", "a"), ("m1",)])
pool_wanted = st.sampled_from(["", "", "p", "q"])
steps = st.builds(
    lambda hours, **ask: {**ask, **hours},
    limits=limits_wanted,
    pool=pool_wanted,
    resource=st.sampled_from(["", "", "", "r1", "r2", "s1"]),
    sticky=st.sampled_from(["", "r1", "s2"]),
    priority=st.sampled_from([0, 1, 1, 2]),
    back=st.sampled_from([False, False, False, True]),
    hours=st.sampled_from([{}, {}, {}, IN_HOURS]),
).filter(lambda ask: ask["limits"] or ask["pool"])
slots = st.builds(
    lambda key, priority, back: {
        "slot": key,
        "slots": SLOTS[key],
        "priority": priority,
        "back": back,
    },
    st.sampled_from(list(SLOTS)),
    st.sampled_from([0, 1, 1, 2]),
    st.booleans(),
)


class GateMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.hall = Hall(limits=LIMITS, pools=POOLS)
        self.brute = Brute(self.hall.config)
        self.tick = 1
        self.names = 0
        self.place = 0
        self.waiting = {}  # ticket -> (ask, place in line)
        self.called = {}  # ticket -> (ask, place, grant or None)
        self.permits = {}  # ticket -> (ask, grant) of calls that have not begun
        self.used = []  # grants of calls that have begun
        self.prompt = True  # calls begin when they are granted
        self.since = 1  # of the last change of a limit

    # what people do ------------------------------------------------------------------------------

    @initialize(crowd=st.lists(st.one_of(steps, steps, slots), min_size=10, max_size=10))
    def many_ask_first(self, crowd):
        for wanted in crowd * 2:
            self.ask(wanted, 1)

    @rule(wanted=st.one_of(steps, steps, slots), again=st.integers(1, 6))
    def ask(self, wanted, again):
        for _ in range(again):
            self.names += 1
            self.ask_one(Ask(instance=f"i{self.names}", token=1, **wanted))

    def ask_one(self, ask):
        if ask.window and not in_hours(self.tick):  # a step looks at its windows before it asks
            ask = replace(ask, window="", hours=None)
        fitted = self.brute.fits(ask, self.tick)
        kept = self.brute.resource_free(ask.pool, ask.sticky, self.tick) if self.sticks(ask) else 0
        equals = [each for each, _ in self.waiting.values() if self.needs(each) == self.needs(ask)]
        answer = self.hall.gate.ask(ask, self.tick)
        if ask.pool and ask.pool not in self.brute.config.pools:
            assert answer.state == "refused"
            return
        if answer.state == "deferred":
            self.place += 1
            self.waiting[ask.ticket] = (ask, self.place)
            return
        assert answer.state == "granted"
        assert fitted
        assert not equals, "it went past somebody who needs the same"
        assert not kept or answer.resource == ask.sticky
        self.use(ask, self.brute.count(ask, answer.resource))

    def sticks(self, ask):
        """Whether its last resource is one it could have again."""
        pool = self.brute.config.pools.get(ask.pool)
        return pool is not None and ask.sticky in pool.resources and not self.brute.bound_to(ask)

    @rule(by=st.integers(1, 6))
    def time_passes(self, by):
        self.tick += by

    @rule(times=st.integers(1, 6), late=st.sampled_from([False, False, True]))
    def time_passes_from_event_to_event(self, times, late):
        for _ in range(times):
            due = self.hall.gate.next_due()
            if due is not None and due < self.tick + 3 * DAY:
                self.tick = max(self.tick, due)
                self.call(ROOM, late)

    @rule(room=st.sampled_from([1, 2, ROOM, ROOM]), late=st.sampled_from([False, False, True]))
    def call(self, room, late):
        made = self.hall.gate.call(self.tick, room)
        assert len(made) <= room
        for call in made:
            self.came(f"{call.instance}:{call.token}")
        if len(made) < room:
            self.everything_that_fits_was_called()
        if not late:
            self.take_all()

    @precondition(lambda self: self.called)
    @rule()
    def take_all(self):
        for name in list(self.called):
            self.take(name)

    @precondition(lambda self: self.waiting or self.called)
    @rule(which=st.integers(0, 99))
    def leave(self, which):
        there = sorted([*self.waiting, *self.called])
        name = there[which % len(there)]
        self.hall.gate.leave(name, self.tick)
        self.waiting.pop(name, None)
        ask, _, grant = self.called.pop(name, (None, 0, None))
        if grant is not None:
            self.brute.undo(ask, grant)

    @rule()
    def calls_are_slow_or_prompt(self):
        self.prompt = not self.prompt

    @precondition(lambda self: self.permits)
    @rule(which=st.integers(0, 99), made=st.sampled_from([True, True, False]))
    def a_call_begins_or_is_not_made(self, which, made):
        name = sorted(self.permits)[which % len(self.permits)]
        if made:
            self.begin(name)
            return
        ask, grant = self.permits.pop(name)
        self.hall.gate.leave(name, self.tick)
        if ask.slot:
            self.brute.holders.pop(ask.instance, None)
        self.brute.grants = [each for each in self.brute.grants if each is not grant]

    def begin(self, name):
        _, grant = self.permits.pop(name)
        self.hall.gate.begin(name, self.tick)
        self.brute.begin(grant, self.tick)
        self.used.append(grant)

    @precondition(lambda self: self.brute.holders)
    @rule(which=st.integers(0, 99))
    def let_go(self, which):
        taken = {ask.instance for ask, _, _ in self.called.values()}
        held = sorted(set(self.brute.holders) - taken)
        if held:
            instance = held[which % len(held)]
            self.hall.gate.let_go(self.brute.holders.pop(instance), instance, self.tick)

    @rule(key=st.sampled_from(["a", "b", "m1", "m2"]), span=st.integers(1, 9))
    def close(self, key, span):
        until = self.tick + span
        self.hall.gate.close(key, until)
        self.brute.closed[key] = max(until, self.brute.closed.get(key, 0))

    @rule(key=st.sampled_from(list(LIMITS)), most=st.integers(0, 3))
    def change_a_limit(self, key, most):
        limits = dict(self.hall.config.limits)
        if most:
            limits[key] = replace(LIMITS[key], max=most)
        else:
            if limits.pop(key, None) is not None:
                self.brute.closed.pop(key, None)
            self.brute.forget(key)
        self.hall.configure(self.tick, limits=limits)
        self.brute.config = self.hall.config
        self.since = self.tick

    @rule(pool=st.sampled_from(["p", "q"]), id=st.sampled_from(["r1", "r2", "s1", "s2"]))
    def turn_a_resource_off_or_on(self, pool, id):
        found = self.hall.config.pools.get(pool)
        if found is None or id not in found.resources:
            return
        was = found.resources[id]
        resources = {**found.resources, id: replace(was, enabled=not was.enabled)}
        pools = {**self.hall.config.pools, pool: replace(found, resources=resources)}
        self.hall.configure(self.tick, pools=pools)
        self.brute.config = self.hall.config

    @rule(pool=st.sampled_from(["p", "q"]))
    def delete_or_make_a_pool(self, pool):
        pools = dict(self.hall.config.pools)
        if pools.pop(pool, None) is None:
            pools[pool] = POOLS[pool]
        self.hall.configure(self.tick, pools=pools)
        self.brute.config = self.hall.config

    @rule()
    def crash(self):
        """All that is left are the rows: who was called and had not come is in line again."""
        self.hall = self.hall.restarted(self.tick)
        for name, (ask, place, grant) in self.called.items():
            self.waiting[name] = (ask, place)
            if grant is not None:
                self.brute.undo(ask, grant)
        self.called = {}

    # what must follow ----------------------------------------------------------------------------

    def came(self, name):
        """Somebody was called: it had waited, and nobody with equal needs stood before it."""
        ask, place = self.waiting.pop(name)
        ahead = [
            other
            for other, n in self.waiting.values()
            if self.needs(other) == self.needs(ask) and (not other.back, n) < (not ask.back, place)
        ]
        assert not ahead, f"{name} went past {ahead}"
        grant = self.hall.gate._called[name].grant
        if grant is None:
            assert ask.pool not in self.brute.config.pools
        else:
            assert self.brute.fits(ask, self.tick)
            bound = self.brute.bound_to(ask)
            assert not bound or grant.resource == bound
            grant = self.brute.count(ask, grant.resource)
        self.called[name] = (ask, place, grant)

    def take(self, name):
        ask, _, grant = self.called.pop(name)
        anew = self.hall.gate._called[name].grant
        anew = anew is not None and anew.tick != self.tick
        answer = self.hall.gate.take(name, self.tick)
        if answer.state == "granted" and not anew:
            self.use(ask, grant)
            return
        if grant is not None:
            self.brute.undo(ask, grant)
        if ask.pool and ask.pool not in self.brute.config.pools:
            assert answer.state == "refused"
        elif answer.state == "granted":
            self.use(ask, self.brute.count(ask, answer.resource))
        else:
            assert answer.state == "late"
            assert grant is None or not self.brute.fits(ask, self.tick)

    def use(self, ask, grant):
        self.permits[ask.ticket] = (ask, grant)
        if self.prompt:
            self.begin(ask.ticket)

    def needs(self, ask):
        bound = self.brute.bound_to(ask)
        return (ask.priority, ask.limits, ask.pool, bound, ask.slot, ask.window)

    def everything_that_fits_was_called(self):
        kept = self.kept()
        for ask, _ in self.waiting.values():
            if not set(self.rules_of(ask)) & kept:
                assert not self.brute.fits(ask, self.tick), f"{ask} waits for nothing"

    def kept(self):
        """The rules that are kept for a ticket that was passed over often enough."""
        line = self.hall.gate._line
        kept = set()
        for rule_, bar in line._bars.items():
            if bar.holder is not None:
                first = line._lines[bar.holder].first(line.tickets)
                assert first.passed > waiting.PATIENCE
                kept.add(rule_)
        return kept

    def rules_of(self, ask):
        return needs_of(self.hall.gate.meters, ask).rules()

    @invariant()
    def no_window_holds_one_too_many(self):
        for key, limit in self.hall.config.limits.items():
            ticks = [
                each.tick for each in self.used if key in each.limits and each.tick > self.since
            ]
            assert exceeded(ticks, limit.max, limit.window_ms) == []

    @invariant()
    def no_day_has_more_than_its_cap(self):
        for name, pool in POOLS.items():
            for id, resource in pool.resources.items():
                days = [
                    day_of(each.tick, resource.timezone)
                    for each in self.used
                    if (each.pool, each.resource) == (name, id)
                ]
                for day in set(days):
                    cap = cap_of(resource, day)
                    assert cap is None or days.count(day) <= cap

    @invariant()
    def no_key_is_held_by_too_many(self):
        for key, most in SLOTS.items():
            assert self.brute.held(key) <= most
            assert self.hall.gate.meters.held.get(key, 0) == self.brute.held(key)

    @invariant()
    def it_waits_no_longer_than_until_the_first_one_fits(self):
        if self.called:
            return
        due = self.hall.gate.next_due()
        kept = self.kept()
        free = [ask for ask, _ in self.waiting.values() if not set(self.rules_of(ask)) & kept]
        fits = [self.brute.first_fit(ask, self.tick, 8) for ask in free]
        first = min((each for each in fits if each is not None), default=None)
        assert first is None or (due is not None and due <= first)

    @invariant()
    def those_who_wait_are_those_it_knows(self):
        assert set(self.hall.gate._line.tickets) == set(self.waiting)
        assert set(self.hall.gate._called) == set(self.called)

    def teardown(self):
        self.the_same_happens_after_a_restart()
        self.nothing_is_left_when_all_have_gone()

    def the_same_happens_after_a_restart(self):
        """The gate, one read from its rows, and the forecasts of a third tell the same story.

        Who was called comes first: what nobody came for is taken back by the next process.
        """
        self.take_all()
        for name in list(self.permits):
            self.begin(name)
        told = {
            name: forecast(self.hall.restarted(self.tick).gate, name, self.tick)
            for name in list(self.waiting)[:5]
        }
        other = self.hall.restarted(self.tick)
        until = self.tick + 2 * DAY
        seen = self.hall.drain(until, 40, self.tick)
        assert seen == other.drain(until, 40, self.tick)
        for at, name, _ in seen:
            expected = told.get(f"{name}:1")
            assert expected is None or expected.at == max(at, self.tick)

    def nothing_is_left_when_all_have_gone(self):
        gate, later = self.hall.gate, self.tick + 10 * DAY
        for name in list(gate._line.tickets):
            gate.leave(name, later)
        for instance, (key, _) in list(gate.meters.holders.items()):
            gate.let_go(key, instance, later)
        assert gate.next_due() is None
        self.hall.commit()
        assert not [key for key in self.hall.rows if key[0] in ("ask", "slot", "permit")]
        for key, most in SLOTS.items():
            for n in range(most):
                assert self.hall.ask(f"new{key}{n}", later, slot=key, slots=most).state == "granted"
        for key, limit in self.hall.config.limits.items():
            for n in range(limit.max):
                assert self.hall.ask(f"new{key}{n}", later, limits=(key,)).state == "granted"


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-2", "SEQ-LIM-3", "SEQ-LIM-4")
@pytest.mark.parametrize("patience", [PATIENCE, 0])
def test_a_gate_keeps_every_rule_whatever_happens_in_whatever_order(patience, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", patience)
    run_state_machine_as_test(
        GateMachine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None)
    )
