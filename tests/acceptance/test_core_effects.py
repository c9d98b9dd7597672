"""Effects and the ledger: planned, marked, called, settled (CORE-EFF)."""

from __future__ import annotations

from itertools import pairwise

import pytest

import detent
from detent import Failed, loop, sequence, step, wait
from detent.model import limits
from detent.testing import Calls
from tests.acceptance.stage import (
    HOUR_MS,
    finished,
    rows,
    state,
    virtual,
)

DOUBTS = ("repeatable", "keyed", "queryable", "once")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


def run(engine, handler, **options):
    engine.register(handler)
    name = handler.detent_name
    return finished(engine, sequence(f"one-{name}", step("a", handler, **options)))


@pytest.mark.req("CORE-EFF-1")
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_call_is_marked_before_it_is_made_unless_it_may_be_repeated(path, doubt):
    seen = []

    def look(_params):
        seen.extend(rows(path, "flight", "effect, dispatch"))
        return {}

    calls = Calls()
    with virtual(path) as engine:
        shown = run(engine, calls.handler("act", look, on_doubt=doubt))
        assert shown.summary.state == "completed"
    (call,) = calls.made
    if doubt == "repeatable":
        assert seen == []
    else:
        ((effect, dispatch),) = seen
        assert effect == call.key
        assert dispatch > 0
    assert rows(path, "flight") == []


@pytest.mark.req("CORE-EFF-1")
def test_a_keyed_handler_that_cannot_be_withdrawn_skips_the_mark(path, calls):
    seen = []

    def look(_params):
        seen.extend(rows(path, "flight"))
        return {}

    with virtual(path) as engine:
        run(engine, calls.handler("act", look, on_doubt="keyed", withdrawable=False))
    assert seen == []
    assert calls.count("act") == 1


@pytest.mark.req("CORE-EFF-1", "CORE-EFF-3")
def test_an_effect_that_was_not_called_is_withdrawn_with_its_node_and_never_called(path, calls):
    """The handler is not there: its order waits, and a cancel comes first."""
    act = calls.handler("act", on_doubt="once")
    with virtual(path, [act]) as engine:
        instance = engine.start(sequence("s", wait("w", signal="go"), step("a", act)))
    with virtual(path) as engine:
        engine.signal(instance, "go")
        engine.advance(0)
        engine.cancel(instance)
        assert state(engine, instance) == "cancelled"
        (effect,) = engine.inspect.effects(instance)
        assert effect.state == "withdrawn"
        engine.register(act)
        engine.run_until_idle()
    with virtual(path, [act]) as engine:
        engine.run_until_idle()
    assert calls.made == ()


@pytest.mark.req("CORE-EFF-2")
def test_every_visit_attempt_and_generation_has_a_key_of_its_own(engine, calls):
    act = calls.handler("act", Failed("no"), Failed("no"), {})
    engine.register(act)
    retry = detent.retry(2, initial_backoff="1s")
    looped = sequence("looped", loop("l", "true", step("a", act, retry=retry), max_iterations=3))
    instance = engine.start(looped)
    assert engine.wait_for(instance) == "failed"
    engine.retry(instance)
    assert engine.wait_for(instance) == "completed"
    keys = [call.key for call in calls.made]
    assert len(keys) == len(set(keys)) == 5
    assert [call.attempt for call in calls.made] == [1, 2, 1, 1, 1]
    assert [call.node for call in calls.made] == ["l[0]/a"] * 3 + ["l[1]/a", "l[2]/a"]


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-4")
def test_after_doubt_the_key_is_the_same_and_so_is_the_attempt(engine, calls):
    lost = ConnectionError("lost")
    shown = run(engine, calls.handler("act", lost, lost, {"ok": 1}, on_doubt="keyed"))
    assert shown.summary.state == "completed"
    assert len({call.key for call in calls.made}) == 1
    assert [call.attempt for call in calls.made] == [1, 1, 1]


@pytest.mark.req("CORE-EFF-2")
def test_keys_differ_between_instances_and_are_equal_in_a_replay(tmp_path):
    keys = []
    for name in ("a.db", "b.db"):
        calls = Calls()
        with virtual(tmp_path / name, [act := calls.handler("act", {})]) as engine:
            made = [engine.start(sequence("s", step("a", act)), key=f"k{n}") for n in range(3)]
            engine.run_until_idle()
            assert all(engine.replay(id).identical for id in made)
        keys.append({call.instance: call.key for call in calls.made})
    assert keys[0] == keys[1]
    assert len(set(keys[0].values())) == 3


@pytest.mark.req("CORE-EFF-4")
def test_an_exception_is_a_failure_where_a_call_may_be_repeated_and_doubt_elsewhere(engine):
    ends = {}
    for doubt in DOUBTS:
        calls = Calls()
        act = calls.handler(f"act-{doubt}", ValueError("what?"), {"n": 1}, on_doubt=doubt)
        ends[doubt] = (run(engine, act).summary.state, len(calls.made))
    assert ends == {
        "repeatable": ("failed", 1),  # no retry policy
        "keyed": ("completed", 2),
        "queryable": ("failed", 1),  # its reconcile found nothing, and there is no retry policy
        "once": ("waiting", 1),
    }


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("doubt", DOUBTS)
def test_failed_says_that_nothing_happened_in_every_class(engine, calls, doubt):
    act = calls.handler("act", Failed("declined", retryable=False, code="card"), on_doubt=doubt)
    shown = run(engine, act, retry=detent.retry(5))
    assert shown.summary.state == "failed"
    assert shown.error["message"] == "declined"
    assert shown.error["code"] == "card"
    assert len(calls.made) == 1


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_result_that_cannot_be_read_is_doubt_but_for_what_may_be_repeated(engine, doubt):
    calls = Calls()
    shown = run(engine, calls.handler("act", object(), {"n": 1}, on_doubt=doubt))
    assert (
        shown.summary.state
        == {
            "repeatable": "failed",
            "keyed": "completed",
            "queryable": "failed",
            "once": "waiting",
        }[doubt]
    )


@pytest.mark.req("CORE-EFF-4", "CORE-CLK-3")
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_call_without_an_outcome_meets_its_deadline_without_any_dispatcher(path, doubt):
    """Nobody has the handler: the deadline is a wait and fires by itself."""
    act = Calls().handler("act", on_doubt=doubt)
    definition = sequence("s", wait("w", signal="go"), step("a", act))
    with virtual(path, [act]) as engine:
        instance = engine.start(definition)
    with virtual(path) as engine:
        engine.signal(instance, "go")
        engine.advance(limits.EFFECT_DEADLINE_MS - 100)
        assert state(engine, instance) == "running"
        engine.advance(100)
        assert state(engine, instance) == "failed"
        assert "deadline" in engine.inspect.show(instance).error["message"]


@pytest.mark.req("CORE-EFF-5", "CORE-REC-1")
@pytest.mark.parametrize("doubt", DOUBTS)
def test_an_effect_with_an_outcome_is_not_called_again_after_a_restart(path, doubt):
    calls = Calls()
    act = calls.handler("act", {"n": 1}, on_doubt=doubt)
    definition = sequence("s", step("a", act), wait("w", "1d"), step("b", act))
    with virtual(path, [act]) as engine:
        instance = engine.start(definition)
        engine.advance(HOUR_MS)
    for _ in range(3):
        with virtual(path, [act]) as engine:
            engine.advance(HOUR_MS)
    assert calls.count("act") == 1
    with virtual(path, [act]) as engine:
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.show(instance).outputs["a"] == {"n": 1}
    assert calls.count("act") == 2


@pytest.mark.req("CORE-EFF-7")
def test_a_retry_is_a_wait_with_growing_pauses_and_a_cap(engine, calls):
    policy = detent.retry(5, initial_backoff="1s", max_backoff="5s", backoff_multiplier=2.0)
    shown = run(engine, calls.handler("act", Failed("no")), retry=policy)
    assert shown.summary.state == "failed"
    assert len(calls.made) == 5
    planned = engine.inspect.audit(shown.summary.id, action="effect.planned")
    pauses = [later.tick - early.tick for early, later in pairwise(planned)]
    assert pauses == [10, 20, 40, 50]


@pytest.mark.req("CORE-EFF-7")
def test_a_retry_waits_over_a_restart_and_shows_when_it_comes(path):
    calls = Calls()
    act = calls.handler("act", Failed("no"), {"n": 1})
    retry = detent.retry(2, initial_backoff="1h")
    with virtual(path, [act]) as engine:
        instance = engine.start(sequence("s", step("a", act, retry=retry)))
        engine.advance(HOUR_MS // 2)
        assert state(engine, instance) == "scheduled"
        due = engine.explain(instance).earliest
    with virtual(path, [act]) as engine:
        assert engine.explain(instance).earliest == due
        engine.advance(to=due - 1)
        assert calls.count("act") == 1
        engine.advance(to=due)
        assert state(engine, instance) == "completed"


@pytest.mark.req("CORE-EFF-7")
def test_jitter_differs_between_instances_and_is_the_same_each_time(tmp_path):
    seen = []
    for name in ("a.db", "b.db"):
        calls = Calls()
        act = calls.handler("act", lambda _: (_ for _ in ()).throw(Failed("no")))
        retry = detent.retry(2, initial_backoff="1h", jitter=600_000)
        with virtual(tmp_path / name, [act]) as engine:
            made = [
                engine.start(sequence("s", step("a", act, retry=retry)), key=f"k{n}")
                for n in range(20)
            ]
            engine.advance(0)
            seen.append([engine.explain(id).earliest for id in made])
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 10
    assert all(abs(due - 36_000) <= 6_000 for due in seen[0])


CLASSES = {
    "expression": step("a", "transform", params={"x": "{{ nowhere.x }}"}),
    "logic": step("a", "fail"),
    "definition": step("a", "sleep", params={"duration_ms": "long"}),
    "timeout": step("a", "noop", wait_for_input={"timeout": "1h"}),
    "authorization": step("a", "act"),
    "transport": step("a", "break"),
}


@pytest.mark.req("CORE-EFF-8")
@pytest.mark.parametrize("kind", CLASSES)
def test_every_failure_carries_its_class(kind):
    @detent.handler
    def act():
        return {}

    @detent.handler("break")
    def break_down():
        raise OSError("no route")

    @detent.policy
    def never():
        return detent.fail("not you")

    policies = [never] if kind == "authorization" else []
    with virtual(handlers=[act, break_down, never], policies=policies) as engine:
        shown = finished(engine, sequence("s", CLASSES[kind]))
        assert shown.summary.state == "failed"
        assert shown.error["kind"] == kind
