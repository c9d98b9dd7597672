"""Runs of plans: enrolled, executed, listed, paused, cancelled, and told in words."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent.model.limits import CONTACT_CHARS, RUNS_LISTED
from tests.acceptance.campaign import ANN, START, START_MS, WELCOME, Log, opened, person
from tests.acceptance.stage import proved, refused, virtual

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


def status(engine, run):
    return engine.plans.get_run(run.id).status


@pytest.mark.req("PLAN-RUN-1", "PLAN-RUN-2", "PLAN-2")
def test_a_run_speaks_to_its_contact_and_shows_where_it_is(engine, log):
    run = engine.plans.execute(WELCOME, ANN, {"offer": 7})
    engine.advance(DAY)
    shown = engine.plans.get_run(run.id)
    assert (shown.plan_id, shown.plan_version, shown.contact) == ("welcome", 1, ANN)
    assert (shown.status, shown.current_step) == ("WAITING", "pause")
    assert shown.steps_completed == ("hello",)
    assert set(shown.steps_remaining) == {"fork", "thanks", "nudge", "nudged", "ring", "rung"}
    assert (shown.start_tick, shown.started_ms, shown.completed_ms) == (0, START_MS, None)
    assert shown.current_tick == DAY_MS // 100
    assert (shown.outcome, shown.variables) == (None, {"offer": 7})
    engine.run_until_idle()
    ended = engine.plans.get_run(run.id)
    assert (ended.status, ended.outcome, ended.current_step) == ("COMPLETED", "called", None)
    assert ended.steps_completed == ("hello", "pause", "fork", "ring", "rung")
    assert (ended.steps_remaining, ended.completed_ms) == ((), START_MS + 3 * DAY_MS)
    assert ended.variables == {"offer": 7}  # what handlers answer is a result, not a variable
    assert log.sent == [
        ("ann", "email", "welcome", "Hi Ann"),
        ("ann", "voice", "first-call", ""),
    ]


@pytest.mark.req("PLAN-RUN-5")
def test_an_enrolled_run_is_pending_until_it_is_executed(engine, log):
    run = engine.plans.enroll(WELCOME, ANN, {"offer": 7})
    engine.advance(10 * DAY)
    assert (status(engine, run), log.sent) == ("PENDING", [])
    begun = engine.plans.execute(WELCOME, ANN)
    assert (begun.id, begun.status, begun.variables) == (run.id, "ACTIVE", {"offer": 7})
    engine.advance(0)
    assert (status(engine, run), len(log.sent)) == ("WAITING", 1)
    with refused("instance.transition"):
        engine.command(run.id, "begin")
    assert len(log.sent) == 1


@pytest.mark.req("PLAN-RUN-1", "PLAN-RUN-5")
def test_a_run_may_start_later_also_one_that_was_enrolled_before(engine, log):
    later = engine.plans.execute(WELCOME, ANN, start_at=START + 2 * DAY)
    bob = engine.plans.enroll(WELCOME, person("bob"))
    engine.plans.execute(WELCOME, person("bob"), start_at=2 * DAY)
    engine.advance(DAY)
    assert (status(engine, later), status(engine, bob), log.sent) == ("PENDING", "PENDING", [])
    engine.advance(DAY)
    assert (status(engine, later), status(engine, bob)) == ("WAITING", "WAITING")
    assert engine.plans.get_run(bob.id).started_ms == START_MS + 2 * DAY_MS


@pytest.mark.req("PLAN-RUN-5")
def test_the_shown_status_follows_pause_resume_and_failure(engine, log):
    plan = detent.plan(
        "two",
        detent.send_email("a", "t", delay=DAY),
        detent.wait("w", days=1),
        detent.send_email("b", "t"),
    )
    run = engine.plans.execute(plan, ANN)
    assert status(engine, run) == "ACTIVE"  # started and deferred
    assert engine.plans.pause(run.id).status == "PAUSED"
    assert engine.plans.resume(run.id).status == "ACTIVE"
    engine.advance(DAY)
    held = engine.plans.pause(run.id)
    assert (held.status, held.pause_requested) == ("WAITING", True)
    engine.advance(DAY)
    assert status(engine, run) == "PAUSED"
    assert len(log.sent) == 1
    log.answer = detent.Failed("mailbox full", retryable=False)
    assert engine.plans.resume(run.id).status == "ACTIVE"
    engine.advance(0)
    ended = engine.plans.get_run(run.id)
    assert (ended.status, ended.error["message"]) == ("FAILED", "mailbox full")
    assert len(log.sent) == 2


@pytest.mark.req("PLAN-RUN-1")
def test_a_cancelled_run_keeps_the_reason_and_takes_no_more(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    ended = engine.plans.cancel(run.id, "the customer asked us")
    assert (ended.status, ended.reason) == ("CANCELLED", "the customer asked us")
    engine.run_until_idle()
    assert len(log.sent) == 1
    with refused("instance.transition"):
        engine.plans.cancel(run.id, "again")
    with refused("instance.terminal"):
        engine.plans.ingest_event(run.id, "replied", "hello")
    assert engine.plans.get_run(run.id).reason == "the customer asked us"
    with refused("request.invalid"):
        engine.plans.cancel(engine.plans.execute(WELCOME, person("bob")).id, "x" * 2_001)


@pytest.mark.req("PLAN-RUN-4")
def test_a_contact_is_in_a_plan_once_and_a_second_time_is_refused_or_returned(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    with refused("plan.enrolled"):
        engine.plans.execute(WELCOME, ANN)
    with refused("plan.enrolled"):
        engine.plans.enroll(WELCOME, ANN)
    assert engine.plans.execute(WELCOME, ANN, if_enrolled="return").id == run.id
    engine.run_until_idle()
    assert engine.plans.enroll(WELCOME, ANN, if_enrolled="return").status == "COMPLETED"
    with refused("plan.enrolled"):  # also of another version, and after its end
        engine.plans.execute(
            detent.plan("welcome", detent.end("done"), version=2), ANN, if_enrolled="refuse"
        )
    others = [
        engine.plans.execute(WELCOME, person("bob")),
        engine.plans.execute(WELCOME, ANN, tenant="other"),
        engine.plans.execute(WELCOME, ANN, namespace="other"),
        engine.plans.execute(detent.plan("another", detent.end("done")), ANN),
    ]
    assert len({run.id, *(each.id for each in others)}) == 5
    assert len([sent for sent in log.sent if sent[:2] == ("ann", "email")]) == 1


@pytest.mark.req("PLAN-RUN-4")
def test_an_enrolled_run_is_not_started_with_other_variables(engine):
    run = engine.plans.enroll(WELCOME, ANN, {"offer": 7})
    with refused("plan.enrolled"):
        engine.plans.execute(WELCOME, ANN, {"offer": 8})
    with refused("plan.enrolled"):
        engine.plans.enroll(WELCOME, ANN)
    assert status(engine, run) == "PENDING"
    assert engine.plans.execute(WELCOME, ANN, {"offer": 7}).status == "ACTIVE"


@pytest.mark.req("PLAN-1")
def test_active_runs_stay_on_their_version(engine, log):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    second = detent.plan("welcome", detent.send_email("hello", "other"), version=2)
    engine.plans.execute(second, person("bob"))
    engine.run_until_idle()
    assert engine.plans.get_run(run.id).plan_version == 1
    assert engine.plans.get_run(run.id).outcome == "called"
    assert engine.plans.execute("welcome", person("eve")).plan_version == 2
    assert engine.plans.execute("welcome@1", person("kim")).plan_version == 1


@pytest.mark.req("PLAN-RUN-1")
def test_runs_are_listed_by_status_plan_contact_and_start_in_pages(engine):
    runs = []
    for day in range(5):
        runs.append(engine.plans.execute(WELCOME, person(f"c{day}")).id)
        engine.advance(DAY)
    pending = engine.plans.enroll(WELCOME, person("later")).id
    other = detent.plan("other", detent.wait("w", days=9))
    late = engine.plans.execute(other, person("c0")).id
    engine.start(detent.sequence("no-plan", detent.step("s", "noop")))
    engine.advance(0)

    def listed(**wanted):
        found = engine.plans.list_runs(**wanted)
        assert len(found.items) == found.total
        return [run.id for run in found.items]

    assert listed() == [late, pending, *reversed(runs)]
    assert listed(status="PENDING") == [pending]
    assert sorted(listed(status="COMPLETED") + listed(status="WAITING")) == sorted([*runs, late])
    assert listed(plan="other") == [late]
    assert listed(contact="c0") == [late, runs[0]]
    assert listed(contact="c0", plan="welcome") == [runs[0]]
    assert listed(started_after=START + 3 * DAY, plan="welcome") == [runs[4], runs[3]]
    assert listed(started_before=START + 2 * DAY) == [runs[1], runs[0]]
    assert listed(status="FAILED") == []
    assert listed(tenant="other") == []
    seen, cursor = [], None
    while True:
        page = engine.plans.list_runs(limit=3, cursor=cursor)
        assert page.total == 7
        seen += [run.id for run in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == listed()


@pytest.mark.req("PLAN-RUN-1")
@pytest.mark.parametrize(
    "wanted",
    [
        {"status": "RUNNING"},
        {"limit": 0},
        {"limit": RUNS_LISTED + 1},
        {"cursor": "x"},
        {"started_after": "yesterday"},
        {"plan": ""},
        {"colour": "red"},
    ],
)
def test_a_list_that_means_nothing_is_refused(engine, wanted):
    with refused("request.invalid"):
        engine.plans.list_runs(**wanted)


@pytest.mark.req("PLAN-RUN-1")
def test_the_timeline_tells_what_happened_and_why(engine):
    run = engine.plans.execute(WELCOME, ANN)
    engine.advance(DAY)
    engine.plans.ingest_event(run.id, "opened", "hello")
    engine.run_until_idle()
    told = [(each.at_ms - START_MS, each.text) for each in engine.plans.timeline(run.id)]
    assert told == [
        (0, "the run is enrolled"),
        (0, "the run starts"),
        (0, "hello sends an email (welcome): Hi Ann"),
        (0, "pause waits"),
        (DAY_MS, "hello was opened"),
        (3 * DAY_MS, 'fork leads to nudge, because events.hasOpen("hello")'),
        (3 * DAY_MS, "nudge sends an email (nudge)"),
        (3 * DAY_MS, "the run ends: nudged"),
    ]
    (wait,) = [each for each in engine.plans.timeline(run.id) if each.what == "waits"]
    assert wait.until_ms == START_MS + 3 * DAY_MS
    received = engine.plans.logs(run.id, action="event.received")
    assert [entry.input["kind"] for entry in received] == ["opened"]
    assert engine.plans.replay(run.id).identical
    assert engine.plans.debug(run.id) is not None


@pytest.mark.parametrize(
    "contact",
    [
        None,
        {"email": "a@b"},
        {"id": "", "email": "a@b"},
        {"id": "x" * (CONTACT_CHARS + 1), "email": "a@b"},
        {"id": "a"},
        {"id": "a", "email": 7},
        {"id": "a", "email": "a@b", "attributes": []},
        {"id": "a", "email": "a@b", "unsubscribed": "no"},
        {"id": "a", "email": "a@b", "colour": "red"},
    ],
)
def test_a_contact_that_is_none_is_refused_with_nothing_written(engine, contact):
    with refused("request.invalid"):
        engine.plans.execute(WELCOME, contact)
    assert engine.plans.list_runs().total == 0


def test_other_arguments_are_checked_too(engine):
    with refused("calendar.zone"):
        engine.plans.execute(WELCOME, person("x", timezone="Mars/Olympus"))
    with refused("request.invalid"):
        engine.plans.execute(WELCOME, ANN, [1])
    with refused("request.invalid"):
        engine.plans.execute(WELCOME, ANN, if_enrolled="perhaps")
    with refused("plan.expected"):
        engine.plans.execute(detent.sequence("s", detent.step("a", "noop")), ANN)
    made = engine.start(detent.sequence("s", detent.step("a", "noop")))
    engine.run_until_idle()
    with refused("plan.expected"):
        engine.plans.get_run(made)
    with refused("instance.not_found"):
        engine.plans.get_run("nobody")
    run = engine.plans.execute(WELCOME, ANN)
    with refused("instance.not_found"):
        engine.plans.get_run(run.id, tenant="other")


def test_a_handler_that_may_be_repeated_blindly_does_not_send():
    @detent.handler("email")
    def email(template: str):
        return {}

    with virtual(handlers=[email]) as engine:
        with refused("plan.send_repeatable"):
            engine.plans.execute(detent.plan("p", detent.send_email("a", "t")), ANN)
        quiet = detent.plan("q", detent.wait("w", days=1))
        assert engine.plans.execute(quiet, ANN).status == "WAITING"
    with virtual(workers=True) as engine, refused("plan.send_repeatable"):
        engine.plans.execute(detent.plan("p", detent.send_email("a", "t")), ANN)
    with virtual() as engine, refused("handler.unknown"):
        engine.plans.execute(detent.plan("p", detent.send_email("a", "t")), ANN)


def test_a_dry_run_says_nothing_to_anybody(engine, log):
    run = engine.plans.execute(WELCOME, ANN, dry_run=True)
    engine.run_until_idle()
    assert (engine.plans.get_run(run.id).outcome, log.sent) == ("called", [])
    assert engine.plans.execute(WELCOME, ANN).id != run.id
