"""Rate limits (SEQ-LIM-1): never one over, never dropped, and called at the next free slot."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detent import Failed, retry, sequence, step
from tests.acceptance.post import Post, most_in_a_window
from tests.acceptance.stage import refused

TEN_S = 101  # ticks from one grant until it counts no longer: the window, and one tick


@pytest.fixture
def post():
    with Post().open() as post:
        yield post


BURSTS = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 4)), min_size=1, max_size=12)


@pytest.mark.req("SEQ-LIM-1", "CORE-CLK-3", "CORE-POL-2")
@settings(max_examples=40)
@given(bursts=BURSTS, most=st.integers(1, 4), window=st.integers(1, 6_050))
@example(bursts=[(0, 4), (1, 4), (59, 4), (1, 4)], most=2, window=5_950)
def test_no_window_ever_holds_one_too_many_and_no_slot_is_left_unused(bursts, most, window):
    """Whenever instances come; the log is the handler's own."""
    with Post().open() as post:
        post.engine.limits.set("box", max=most, window=window)
        definition = post.mail("box")
        came = []
        for gap, count in bursts:
            post.advance(gap)
            post.start(definition, *(f"{len(came) + n:03}" for n in range(count)))
            came += [post.tick] * count
        post.engine.run_until_idle()
        ticks = [sent.at for sent in post.log]
        assert [sent.who for sent in post.log] == [f"{n:03}" for n in range(len(came))]
        assert most_in_a_window(ticks, window) <= most
        span = -(-window // 100) + 1
        for n, tick in enumerate(ticks):  # as early as the ones before allow, to the tick
            assert tick == max(came[n], ticks[n - most] + span if n >= most else 0)


@pytest.mark.req("SEQ-LIM-1", "CORE-CLK-3")
def test_over_the_limit_a_step_is_called_at_the_very_next_free_slot(post):
    post.engine.limits.set("box", max=2, window="10s")
    post.start(post.mail("box"), "a")
    post.advance(30)
    *_, last = post.start(post.mail("box"), "b", "c", "d", "e")
    post.advance(1)
    assert post.state(last) == "scheduled"
    assert post.engine.explain(last).earliest == 2 * TEN_S
    post.engine.run_until_idle()
    assert post.times() == [
        (0, "a"),
        (30, "b"),
        (TEN_S, "c"),
        (30 + TEN_S, "d"),
        (2 * TEN_S, "e"),
    ]


@pytest.mark.req("SEQ-LIM-1", "CORE-EXP-1")
def test_explain_names_the_limit_and_the_tick_of_each_in_line(post):
    post.engine.limits.set("box", max=1, window="10s")
    ids = post.start(post.mail("box"), "a", "b", "c", "d")
    post.advance(1)
    for n, instance in enumerate(ids[1:], start=1):
        assert post.keeps_its_promise(instance, "rate limit 'box'") == n * TEN_S
        post.advance(0)
        assert post.state(instance) == "completed"


@pytest.mark.req("SEQ-LIM-1")
def test_the_line_is_in_order_of_coming_within_a_priority(post):
    post.engine.limits.set("box", max=1, window="10s")
    definition = post.mail("box")
    post.start(definition, "first")
    post.start(definition, "low1", "low2", priority="Low")
    post.start(definition, "normal1", "normal2")
    post.start(definition, "high1", "high2", priority="High")
    post.start(definition, "urgent", priority="Critical")
    post.engine.run_until_idle()
    assert [sent.who for sent in post.log] == [
        "first",
        "urgent",
        "high1",
        "high2",
        "normal1",
        "normal2",
        "low1",
        "low2",
    ]


@pytest.mark.req("SEQ-LIM-1")
def test_a_low_one_waits_no_longer_than_seven_others(post):
    post.engine.limits.set("box", max=1, window="10s")
    definition = post.mail("box")
    post.start(definition, "first")
    post.start(definition, "low", priority="Low")
    post.start(definition, *(f"high{n}" for n in range(20)), priority="High")
    post.engine.run_until_idle()
    order = [sent.who for sent in post.log]
    assert 2 < order.index("low") <= 8


@pytest.mark.req("SEQ-LIM-1", "CORE-POL-2")
def test_several_limits_on_a_step_all_hold_and_nothing_is_used_up_by_waiting(post):
    post.engine.limits.set("box", max=1, window="10s")
    post.engine.limits.set("company", max=2, window="60s")
    post.start(post.mail("box", "company"), "a", "b", "c")
    post.start(post.mail("company"), "d")  # came last, and only needs what b waits without
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (0, "d"), (601, "b"), (702, "c")]


@pytest.mark.req("SEQ-LIM-1")
@settings(max_examples=25)
@given(
    work=st.lists(
        st.tuples(st.integers(0, 25), st.sets(st.sampled_from("xyz"), min_size=1)), max_size=25
    )
)
def test_composed_limits_are_never_exceeded_and_everybody_gets_through(work):
    rules = {"x": (1, 700), "y": (2, 1_500), "z": (3, 3_000)}
    with Post().open() as post:
        for key, (most, window) in rules.items():
            post.engine.limits.set(key, max=most, window=window)
        for n, (gap, keys) in enumerate(work):
            post.advance(gap)
            post.start(post.mail(*sorted(keys)), f"{n}:{''.join(sorted(keys))}")
        post.engine.run_until_idle()
        assert len(post.log) == len(work)
        for key, (most, window) in rules.items():
            ticks = [sent.at for sent in post.log if key in sent.who.partition(":")[2]]
            assert not ticks or most_in_a_window(ticks, window) <= most


@pytest.mark.req("SEQ-LIM-1")
def test_a_key_may_be_a_template_and_each_value_is_a_limit_of_its_own(post):
    post.engine.limits.set("box:ann", max=1, window="10s")
    post.engine.limits.set("box:ben", max=1, window="20s")
    post.start(post.mail("box:{{data.to}}"), "ann", "ann", "ben", "ben", "cem", "cem")
    post.engine.run_until_idle()
    assert sorted(post.times()) == sorted(
        [(0, "ann"), (TEN_S, "ann"), (0, "ben"), (201, "ben"), (0, "cem"), (0, "cem")]
    )


@pytest.mark.req("SEQ-LIM-1")
def test_a_key_that_comes_out_empty_fails_the_step_and_sends_nothing(post):
    (instance,) = post.start(post.mail("{{data.nobody}}"), "a")
    post.engine.run_until_idle()
    shown = post.engine.inspect.show(instance)
    assert (shown.summary.state, post.log) == ("failed", [])
    assert "rate_limit_key" in shown.error["message"]


@pytest.mark.req("SEQ-LIM-1")
def test_a_key_without_a_limit_is_unlimited(post):
    post.engine.limits.set("box", max=1, window="10s")
    post.start(post.mail("bx"), *"abcdef")
    post.engine.run_until_idle()
    assert [at for at, _ in post.times()] == [0] * 6


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-6")
def test_the_limit_of_one_tenant_is_not_that_of_another(post):
    post.engine.limits.set("box", max=1, window="10s")
    post.engine.limits.set("box", max=2, window="10s", tenant="acme")
    post.start(post.mail("box"), "a", "b")
    post.start(post.mail("box"), "x", "y", "z", tenant="acme")
    post.engine.run_until_idle()
    assert sorted(post.times()) == [(0, "a"), (0, "x"), (0, "y"), (TEN_S, "b"), (TEN_S, "z")]


# changed while instances wait ---------------------------------------------------------------------


@pytest.mark.req("SEQ-LIM-1")
def test_a_raised_limit_lets_those_go_on_who_wait_and_counts_what_was_used(post):
    post.engine.limits.set("box", max=1, window="10s")
    ids = post.start(post.mail("box"), *"abcde")
    post.advance(20)
    post.engine.limits.set("box", max=3, window="10s")
    post.advance(1)
    assert post.times() == [(0, "a"), (20, "b"), (20, "c")]
    assert post.engine.explain(ids[4]).earliest == 20 + TEN_S
    post.engine.run_until_idle()
    assert post.times()[3:] == [(TEN_S, "d"), (20 + TEN_S, "e")]


@pytest.mark.req("SEQ-LIM-1")
def test_a_lowered_limit_holds_those_who_wait_longer(post):
    post.engine.limits.set("box", max=2, window="10s")
    ids = post.start(post.mail("box"), *"abcd")
    post.advance(20)
    assert post.engine.explain(ids[3]).earliest == TEN_S
    post.engine.limits.set("box", max=1, window="30s")
    assert post.keeps_its_promise(ids[2], "rate limit 'box'") == 301
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (0, "b"), (301, "c"), (602, "d")]


@pytest.mark.req("SEQ-LIM-1", "CORE-AUD-2")
def test_a_deleted_limit_lets_everybody_go_on_and_the_audit_says_why(post):
    post.engine.limits.set("box", max=1, window="10s")
    ids = post.start(post.mail("box"), *"abc")
    post.advance(5)
    post.engine.limits.delete("box")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (5, "b"), (5, "c")]
    told = {
        name: [e.detail for e in post.engine.inspect.audit(id, action="gate.granted")]
        for name, id in zip("abc", ids, strict=True)
    }
    why = [{"why": "the limit 'box' it waited for was deleted"}]
    assert told == {"a": [], "b": why, "c": why}


@pytest.mark.req("SEQ-LIM-1")
def test_of_two_limits_only_the_deleted_one_lets_go(post):
    post.engine.limits.set("box", max=1, window="10s")
    post.engine.limits.set("company", max=1, window="30s")
    ids = post.start(post.mail("box", "company"), "a", "b")
    post.advance(5)
    post.engine.limits.delete("company")
    assert post.keeps_its_promise(ids[1], "rate limit 'box'") == TEN_S
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (TEN_S, "b")]


@pytest.mark.req("SEQ-LIM-1")
def test_a_closed_limit_lets_nobody_through_until_then(post):
    post.engine.limits.set("box", max=5, window="10s")
    post.engine.limits.close("box", for_="30s")
    ids = post.start(post.mail("box"), "a", "b")
    post.advance(1)
    assert post.keeps_its_promise(ids[1], "rate limit 'box'") == 300
    post.engine.run_until_idle()
    assert post.times() == [(300, "a"), (300, "b")]


@pytest.mark.req("SEQ-LIM-1")
def test_an_opened_limit_goes_on_at_once_and_what_was_used_still_counts(post):
    post.engine.limits.set("box", max=2, window="10s")
    post.start(post.mail("box"), "a")
    post.advance(1)
    post.engine.limits.close("box", for_="1h")
    post.start(post.mail("box"), "b", "c")
    post.advance(50)
    assert post.times() == [(0, "a")]
    post.engine.limits.open("box")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (51, "b"), (TEN_S, "c")]


@pytest.mark.req("SEQ-LIM-1")
def test_a_handler_that_is_told_to_come_back_later_closes_the_keys_of_its_step(post):
    post.trouble = [Failed("too many", retry_after=60)]
    post.engine.limits.set("box", max=9, window="1s")
    definition = post.mail("box", "other", retry=retry(2, initial_backoff="5s"))
    (first,) = post.start(definition, "a")
    post.advance(10)
    _, later = post.start(post.mail("other"), "b"), post.start(post.mail("box"), "c")[0]
    post.advance(0)
    assert "rate limit 'box'" in post.engine.explain(later).summary
    assert post.engine.explain(later).earliest == 600
    post.advance(45)
    post.keeps_its_promise(first, "rate limit")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (600, "a"), (600, "b"), (600, "c")]
    closed = [e.detail for e in post.engine.inspect.audit(first, action="gate.closed")]
    assert closed == [{"keys": ["box", "other"], "until": 600}]


@pytest.mark.req("SEQ-LIM-1")
def test_a_handler_that_fails_otherwise_closes_nothing(post):
    post.trouble = [Failed("no"), Failed("still no", retry_after=0)]
    post.engine.limits.set("box", max=9, window="1s")
    post.start(post.mail("box"), "a", "b")
    post.advance(1)
    post.start(post.mail("box"), "c")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (0, "b"), (1, "c")]


@pytest.mark.req("SEQ-LIM-1", "CORE-POL-1")
def test_each_attempt_counts_and_a_retry_stands_in_line_as_everybody(post):
    post.trouble = [Failed("busy")]
    post.engine.limits.set("box", max=1, window="10s")
    post.start(post.mail("box", retry=retry(3, initial_backoff="1s")), "a")
    post.advance(1)
    post.start(post.mail("box"), "b")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (TEN_S, "b"), (2 * TEN_S, "a")]


@pytest.mark.req("SEQ-LIM-1")
def test_a_dry_run_uses_nothing_and_waits_for_nothing(post):
    post.engine.limits.set("box", max=1, window="10s")
    post.start(post.mail("box"), "a")
    dry = post.start(post.mail("box"), "b", "c", dry_run=True)
    post.advance(1)
    assert [post.state(each) for each in dry] == ["completed"] * 2
    assert post.times() == [(0, "a")]
    post.advance(TEN_S - 1)
    dry = post.start(post.mail("box"), "d", dry_run=True)
    post.start(post.mail("box"), "e")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (TEN_S, "e")]


@pytest.mark.req("SEQ-LIM-1")
def test_a_step_may_name_eight_keys_and_not_nine(post):
    for n in range(8):
        post.engine.limits.set(f"k{n}", max=1, window=f"{n + 1}s")
    eight = [f"k{n}" for n in range(8)]
    post.start(post.mail(*eight), "a", "b")
    post.engine.run_until_idle()
    assert post.times() == [(0, "a"), (81, "b")]
    with refused("definition.invalid"):
        post.mail(*eight, "k8")
    with refused("definition.invalid"):
        sequence("none", step("s", "send", rate_limit_key=""))
