"""Plans on a real clock: both kinds of writers, callers at the same moment, and sudden death."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import detent
from tests.integration.engine_processes import run as in_a_process

ANN = {"id": "ann", "email": "ann@example.com", "attributes": {"vip": True}}
PLAN = detent.plan(
    "p",
    detent.send_email("hello", "t"),
    detent.wait("w", duration=1),
    detent.branch("b", ("contact.vip && run.step_results.hello.output.ok", "e"), default="o"),
    detent.end("e", "good"),
    detent.end("o", "bad"),
)


@detent.handler("email", on_doubt="once")
def email(ctx, template: str):
    seen = ctx.plan
    return {"ok": seen["contact"]["email"] == "ann@example.com" and seen["clock"]["tick"] >= 0}


@pytest.mark.req("PLAN-CTX-1", "PLAN-RUN-1")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_plan_runs_on_a_real_clock(tmp_path, writer):
    with detent.Engine(tmp_path / "store.db", handlers=[email], writer=writer) as engine:
        run = engine.plans.execute(PLAN, ANN)
        assert engine.wait_for(run.id) == "completed"
        assert engine.plans.get_run(run.id).outcome == "good"
        assert engine.plans.replay(run.id).identical
        assert engine.inspect.verify().valid


@pytest.mark.req("PLAN-RUN-4")
def test_of_many_who_enroll_a_contact_at_the_same_moment_one_does(tmp_path):
    plan = detent.plan("quiet", detent.wait("w", days=1))
    with detent.Engine(tmp_path / "store.db") as engine:

        def enroll(_):
            try:
                return engine.plans.execute(plan, ANN).id
            except detent.DetentError as error:
                return error.code

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(enroll, range(24)))
        (run,) = [item.id for item in engine.plans.list_runs().items]
        assert sorted(set(answers)) == sorted({run, "plan.enrolled"})
        assert answers.count(run) == 1


KILLED = """
PLAN = detent.plan(
    "q",
    detent.wait("w", hours=9),
    exit_conditions=[detent.exit_when("contact.unsubscribed", "unsubscribed")],
)
engine = detent.Engine(path, writer=args[0])
run = engine.plans.execute(PLAN, {"id": "ann", "email": "ann@example.com"})
engine.wait_for(run.id, "waiting")
engine.plans.ingest_event(run.id, "opened", "w", id="one")
if args[1] == "exit":
    engine.plans.ingest_event(run.id, "unsubscribed", "w", id="two")
say(run.id)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.req("PLAN-5", "PLAN-RUN-6", "CORE-REC-1")
@pytest.mark.parametrize(
    ("told", "status"), [("exit", ("COMPLETED", "unsubscribed")), ("stay", ("WAITING", None))]
)
def test_an_event_that_was_answered_is_on_disk_when_the_process_is_killed(tmp_path, told, status):
    path = tmp_path / "store.db"
    code, (run,) = in_a_process(KILLED, path, "thread", told)
    assert code == -9
    with detent.Engine(path) as engine:
        shown = engine.plans.get_run(run)
        assert (shown.status, shown.outcome) == status
        assert engine.plans.replay(run).identical
        assert engine.inspect.verify().valid
