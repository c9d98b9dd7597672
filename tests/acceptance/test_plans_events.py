"""Events of runs: conditions, exits, waits that stay as long as they are, and what a step sees."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from tests.acceptance.campaign import ANN, START_MS, WELCOME, Log, opened, person
from tests.acceptance.stage import actions, proved, refused

DAY = dt.timedelta(days=1)
DAY_MS = 86_400_000


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def engine(log):
    with opened(log) as engine:
        yield engine
        proved(engine)


def outcome(engine, run):
    return engine.plans.get_run(run.id).outcome


@pytest.mark.req("PLAN-COND-1")
@pytest.mark.parametrize(
    ("condition", "events", "taken"),
    [
        ('events.hasReply("hello")', [("replied", "")], True),
        ('events.hasReply("hello")', [("opened", "")], False),
        ("events.hasOpen(any)", [("opened", "")], True),
        ('events.hasClick("hello")', [("clicked", "")], True),
        ('events.hasClick("ring")', [("clicked", "")], False),
        ("contact.bounced", [("bounced", "")], True),
        ("contact.unsubscribed", [("unsubscribed", "")], True),
        ("contact.unsubscribed", [("delivered", "")], False),
        ('call.outcome("hello") == "answered"', [("called", "answered")], True),
        ('call.outcome("hello") == "answered"', [("called", "busy")], False),
        ('call.outcome("hello") == null', [], True),
        ("contact.vip && contact.first_name == 'Ann'", [], True),
        ("contact.attributes.vip == true && contact.unknown == null", [], True),
        ("events.opens.hello.count == 2", [("opened", ""), ("opened", "")], True),
        ("run.variables.score * 2 > 13", [], True),
        ("default", [], True),
    ],
)
def test_a_branch_goes_by_what_has_happened(engine, condition, events, taken):
    plan = _branching(condition)
    run = engine.plans.execute(plan, ANN, {"score": 7})
    engine.advance(0)
    for kind, call in events:
        engine.plans.ingest_event(run.id, kind, "hello", outcome=call)
    engine.run_until_idle()
    assert outcome(engine, run) == ("yes" if taken else "no")


def _branching(condition):
    ways = [] if condition == "default" else [(condition, "yes")]
    return detent.plan(
        "p",
        detent.send_email("hello", "t"),
        detent.wait("w", days=1),
        detent.branch("early", ("false", "ring"), ("false", "no"), default="b"),
        detent.send_voice("ring", "s"),
        detent.branch("b", *ways, default="yes" if condition == "default" else "no"),
        detent.end("no", "no"),
        detent.end("yes", "yes"),
        transitions=[("hello", "w"), ("w", "early"), ("ring", "yes")],
    )


@pytest.mark.req("PLAN-COND-2")
def test_an_event_counts_from_the_snapshot_after_it_and_never_before(engine):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(3 * DAY)  # the branch was taken at this very tick
    assert engine.plans.get_run(run.id).status == "COMPLETED"
    late = engine.plans.execute(WELCOME, person("bob"))
    engine.advance(3 * DAY - dt.timedelta(milliseconds=100))
    engine.plans.ingest_event(late.id, "replied", "hello")
    engine.advance(100)
    assert (outcome(engine, run), outcome(engine, late)) == ("called", "replied")


@pytest.mark.req("PLAN-COND-2")
def test_an_event_that_comes_while_a_step_sends_is_seen_by_the_next_branch(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    engine.plans.ingest_event(run.id, "opened", "hello")  # before any outcome of the send
    assert engine.plans.get_run(run.id).current_step == "hello"
    engine.run_until_idle()
    assert outcome(engine, run) == "nudged"
    assert log.seen[0]["events"]["opens"] == {}
    assert log.seen[1]["events"]["opens"]["hello"] == {"count": 1, "first": 0, "last": 0}


@pytest.mark.req("PLAN-COND-2", "CORE-RPL-2")
def test_without_the_reply_it_would_have_been_another_way(engine):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    engine.plans.ingest_event(run.id, "replied", "hello")
    engine.run_until_idle()
    (told,) = engine.plans.logs(run.id, action="event.received")
    dropped = detent.InputChange(seq=told.seq, index=0, verb="drop")
    other = engine.inspect.what_if(run.id, detent.Changes(inputs=(dropped,)))
    planned = [each.node for each in other.changes if each.action == "effect.planned"]
    assert planned == ["plan[3:ring]/ring"]
    assert other.outputs["fork"] == {"goto": "ring"}
    assert engine.inspect.show(run.id).outputs["fork"] == {"goto": "thanks"}


@pytest.mark.req("PLAN-5", "PLAN-RUN-6")
def test_an_exit_ends_the_run_in_the_turn_of_its_event(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    engine.plans.ingest_event(run.id, "unsubscribed", "hello")
    ended = engine.plans.get_run(run.id)
    assert (ended.status, ended.outcome) == ("COMPLETED", "unsubscribed")
    assert ended.completed_ms == START_MS + DAY_MS
    entries = [(entry.seq, entry.action) for entry in engine.plans.logs(run.id)]
    (seq,) = [seq for seq, action in entries if action == "event.received"]
    assert [action for row, action in entries if row == seq][-1] == "run.completed"
    engine.run_until_idle()
    assert len(log.sent) == 1


@pytest.mark.req("PLAN-RUN-6")
def test_an_event_during_a_wait_does_not_shorten_it(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    for kind in ("delivered", "opened", "clicked", "replied"):
        engine.plans.ingest_event(run.id, kind, "hello")
    shown = engine.plans.get_run(run.id)
    assert (shown.status, shown.current_step) == ("WAITING", "pause")
    assert engine.inspect.show(run.id).summary.due_ms == START_MS + 3 * DAY_MS
    engine.advance(3 * DAY - DAY - dt.timedelta(milliseconds=100))
    assert engine.plans.get_run(run.id).status == "WAITING"
    engine.advance(100)
    ended = engine.plans.get_run(run.id)
    assert (ended.outcome, ended.completed_ms) == ("replied", START_MS + 3 * DAY_MS)


@pytest.mark.req("PLAN-5")
@pytest.mark.parametrize("when", ["enrolled", "later", "deferred", "sending", "paused", "waiting"])
def test_an_exit_ends_a_run_wherever_it_stands(engine, log, when):
    plan = detent.plan(
        "p",
        detent.send_email("hello", "t", delay=DAY if when in ("deferred", "paused") else None),
        detent.wait("w", days=9),
        exit_conditions=[detent.exit_when("contact.unsubscribed", "unsubscribed")],
    )
    if when == "enrolled":
        run = engine.plans.enroll(plan, ANN)
    else:
        run = engine.plans.execute(plan, ANN, start_at=DAY if when == "later" else None)
    if when == "paused":
        engine.plans.pause(run.id)
    if when == "waiting":
        engine.advance(0)
    engine.plans.ingest_event(run.id, "unsubscribed", "hello")
    ended = engine.plans.get_run(run.id)
    assert (ended.status, ended.outcome) == ("COMPLETED", "unsubscribed")
    engine.run_until_idle()
    assert len(log.sent) == (1 if when == "waiting" else 0)  # a planned send is withdrawn


@pytest.mark.req("PLAN-5")
def test_an_exit_that_holds_before_a_step_ends_the_run_there(engine, log):
    plan = detent.plan(
        "p",
        detent.send_email("hello", "t"),
        detent.send_email("again", "t"),
        exit_conditions=[
            detent.exit_when("run.step_results.hello.output.status == 'failed'", "undelivered"),
            detent.exit_when("contact.unsubscribed", "unsubscribed"),
        ],
    )
    log.answer = {"status": "failed"}
    run = engine.plans.execute(plan, ANN)
    never = engine.plans.execute(plan, person("bob", unsubscribed=True))
    engine.run_until_idle()
    assert (outcome(engine, run), outcome(engine, never)) == ("undelivered", "unsubscribed")
    assert [sent[0] for sent in log.sent] == ["ann"]
    assert engine.plans.get_run(never.id).steps_completed == ()


@pytest.mark.req("PLAN-5")
def test_the_first_exit_that_holds_gives_the_outcome(engine):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(0)
    engine.plans.ingest_event(run.id, "bounced", "hello")
    assert outcome(engine, run) == "undeliverable"


@pytest.mark.req("PLAN-5")
def test_an_exit_that_cannot_be_told_fails_the_run_and_nothing_more_is_sent(engine, log):
    plan = detent.plan(
        "p",
        detent.send_email("hello", "t"),
        detent.wait("w", days=1),
        detent.send_email("again", "t"),
        exit_conditions=[detent.exit_when("events.hasOpen(any) && contact.name > 3", "odd")],
    )
    run = engine.plans.execute(plan, person("bob", attributes={"name": "Bob"}))
    engine.run_until_idle()
    failed = engine.plans.get_run(run.id)
    assert (failed.status, failed.error["code"]) == ("FAILED", "expression.type")
    assert log.sent == []
    engine.retry(run.id)  # entered afresh, it fails again; nothing half-done is left
    engine.run_until_idle()
    assert (engine.plans.get_run(run.id).status, log.sent) == ("FAILED", [])


@pytest.mark.req("PLAN-CTX-1")
def test_a_step_sees_run_contact_events_and_clock(engine, log):
    run = engine.plans.execute(WELCOME, ANN, {"offer": 7})
    engine.advance(DAY)
    engine.plans.ingest_event(run.id, "opened", "hello", payload={"agent": "x"})
    engine.plans.ingest_event(run.id, "called", "ring", outcome="busy")
    engine.run_until_idle()
    first, second = log.seen
    assert first["run"] == {
        "id": run.id,
        "plan_id": "welcome",
        "plan_version": 1,
        "current_step": "hello",
        "started_at": START_MS,
        "step_results": {},
        "variables": {"offer": 7},
    }
    assert first["clock"] == {"tick": 0, "resolution_ms": 100, "epoch_ms": START_MS}
    assert second["contact"] == {
        **ANN["attributes"],
        **ANN,
        "unsubscribed": False,
        "bounced": False,
    }
    assert second["run"]["current_step"] == "nudge"
    results = second["run"]["step_results"]
    assert list(results) == ["hello", "pause", "fork"]
    assert results["hello"] == {"status": "completed", "tick": 0, "output": log.answer}
    assert results["fork"]["output"] == {"goto": "nudge"}
    tick = DAY_MS // 100
    assert second["events"]["opens"] == {"hello": {"count": 1, "first": tick, "last": tick}}
    assert second["events"]["outcomes"] == {"ring": "busy"}
    assert second["clock"]["tick"] == 3 * DAY_MS // 100


@pytest.mark.req("PLAN-CTX-1")
def test_what_a_handler_writes_into_what_it_sees_changes_nothing():
    @detent.handler("email", on_doubt="once")
    def email(ctx, template: str):
        ctx.plan["contact"]["vip"] = False
        ctx.plan["run"]["variables"]["offer"] = 0
        ctx.plan["events"]["opens"]["hello"] = {"count": 9}
        return {"offer": 1}

    plan = detent.plan(
        "p",
        detent.send_email("hello", "t"),
        detent.branch(
            "b",
            ("contact.vip && run.variables.offer == 7 && !events.hasOpen(any)", "same"),
            default="other",
        ),
        detent.end("same", "same"),
        detent.end("other", "other"),
    )
    with detent.Engine(handlers=[email], clock="virtual", seed="x") as engine:
        run = engine.plans.execute(plan, ANN, {"offer": 7})
        engine.run_until_idle()
        assert outcome(engine, run) == "same"
        proved(engine)


@pytest.mark.req("PLAN-CTX-1", "PLAN-2")
def test_a_step_that_was_skipped_says_so_in_its_result(engine, log):
    plan = detent.plan(
        "p",
        detent.send_email("hello", "t", when="contact.phone == null"),
        detent.branch("b", ("run.step_results.hello.status == 'skipped'", "yes"), default="no"),
        detent.end("yes", "yes"),
        detent.end("no", "no"),
    )
    run = engine.plans.execute(plan, ANN)
    engine.run_until_idle()
    assert (outcome(engine, run), log.sent) == ("yes", [])
    result = engine.plans.get_run(run.id).step_results["hello"]
    assert result == {"status": "skipped", "tick": 0, "why": "when", "output": None}


@pytest.mark.req("PLAN-RUN-1")
def test_an_event_told_twice_counts_once_and_one_that_means_nothing_is_refused(engine):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(0)
    for _ in range(2):
        engine.plans.ingest_event(run.id, "opened", "hello", id="mail-7")
    assert actions(engine, run.id, "event.received") == ["event.received"]
    for wrong in (
        ("sneezed", "hello", ""),
        ("called", "ring", ""),
        ("called", "ring", "asleep"),
        ("opened", "hello", "busy"),
        ("opened", "", ""),
    ):
        with refused("request.invalid"):
            engine.plans.ingest_event(run.id, wrong[0], wrong[1], outcome=wrong[2])
    with refused("request.invalid"):
        engine.plans.ingest_event(run.id, "opened", "nowhere")
    with refused("instance.not_found"):
        engine.plans.ingest_event("nobody", "opened", "hello")
    other = engine.start(detent.sequence("s", detent.wait("w", signal="go")))
    engine.advance(0)
    with refused("request.invalid"):
        engine.plans.ingest_event(other, "opened", "hello")
    assert actions(engine, run.id, "event.received") == ["event.received"]


@pytest.mark.req("PLAN-2")
def test_a_wait_goes_on_to_a_local_time_on_a_business_day(engine):
    plan = detent.plan(
        "p",
        detent.wait("w", days=2, until="09:30", business_day=True, holidays=["2026-01-05"]),
        detent.wait("date", until="2026-02-01T08:00:00", business_day=True),
    )
    run = engine.plans.execute(plan, ANN)
    engine.advance(0)
    berlin = dt.timezone(dt.timedelta(hours=1))

    def due():
        ms = engine.inspect.show(run.id).summary.due_ms
        return dt.datetime.fromtimestamp(ms / 1000, berlin).isoformat()

    assert due() == "2026-01-06T09:30:00+01:00"  # Saturday, Sunday and the holiday are left out
    engine.advance(6 * DAY)
    assert due() == "2026-02-02T08:00:00+01:00"  # the first of February is a Sunday
    engine.run_until_idle()
    assert outcome(engine, run) == "completed"
    assert engine.inspect.recompute(run.id) == []
