"""Long random walks over the same gate and the same brute force, by seed.

Far denser than what shrinks well. A failing seed is repeated by
`pytest tests/unit/kernel/gate/test_gate_walks.py -k <seed>`.
"""

from __future__ import annotations

from random import Random

import pytest

from detent.kernel.gate import waiting
from detent.kernel.gate.lines import PATIENCE
from tests.unit.kernel.gate.hall import IN_HOURS, ROOM
from tests.unit.kernel.gate.test_gate_machine import LIMITS, SLOTS, GateMachine

STEPS = 80
LAWS = (
    "no_window_holds_one_too_many",
    "no_day_has_more_than_its_cap",
    "no_key_is_held_by_too_many",
    "it_waits_no_longer_than_until_the_first_one_fits",
    "those_who_wait_are_those_it_knows",
)


def wanted(rng):
    priority, back = rng.choice([0, 1, 1, 2]), rng.random() < 0.25
    if rng.random() < 0.25:
        key = rng.choice(list(SLOTS))
        return {"slot": key, "slots": SLOTS[key], "priority": priority, "back": back}
    limits, pool = rng.choice(
        [(("a",), ""), (("b",), ""), (("a", "b"), ""), (("m1",), ""), ((), "p"), (("a",), "q")]
    )
    return {
        "limits": limits,
        "pool": pool,
        "resource": rng.choice(["", "", "r1", "s1"]) if pool else "",
        "sticky": rng.choice(["", "r2", "s2"]) if pool else "",
        "priority": priority,
        "back": back,
        **(IN_HOURS if rng.random() < 0.25 else {}),
    }


def walk(machine, rng):
    match rng.randrange(24):
        case 20:
            machine.calls_are_slow_or_prompt()
        case 21 | 22 | 23 if machine.permits:
            machine.a_call_begins_or_is_not_made(rng.randrange(99), rng.random() < 0.7)
        case 0 | 1 | 2 | 3 | 4:
            machine.ask(wanted(rng), rng.randint(1, 3))
        case 5 | 6:
            machine.time_passes(rng.randint(1, 6))
        case 7 | 8 | 9 | 10 | 11:
            machine.time_passes_from_event_to_event(rng.randint(1, 3), rng.random() < 0.3)
        case 12 | 13:
            machine.call(rng.choice([1, 2, ROOM]), rng.random() < 0.3)
        case 14 if machine.called:
            machine.take_all()
        case 15 if machine.waiting or machine.called:
            machine.leave(rng.randrange(99))
        case 16 if machine.brute.holders:
            machine.let_go(rng.randrange(99))
        case 17:
            machine.close(rng.choice(["a", "b", "m1", "m2"]), rng.randint(1, 9))
        case 18:
            machine.crash()
        case 19:
            change(machine, rng)


def change(machine, rng):
    match rng.randrange(4):
        case 0 | 1:
            machine.change_a_limit(rng.choice(list(LIMITS)), rng.randint(0, 3))
        case 2:
            machine.turn_a_resource_off_or_on(rng.choice("pq"), rng.choice(["r1", "s1", "s2"]))
        case 3:
            machine.delete_or_make_a_pool(rng.choice("pq"))


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-2", "SEQ-LIM-3", "SEQ-LIM-4")
@pytest.mark.parametrize("patience", [PATIENCE, 0])
@pytest.mark.parametrize("seed", range(40))
def test_no_walk_finds_a_rule_broken(seed, patience, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", patience)
    rng, machine = Random(seed), GateMachine()
    for _ in range(STEPS):
        walk(machine, rng)
        for law in LAWS:
            getattr(machine, law)()
    machine.teardown()
