"""`detent worker` as a process beside `detent serve`: it carries tasks out, stops, and may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest

from tests.integration.test_cli_serve import served
from tests.integration.web.house import instance_body, sequence_body, step

pytestmark = pytest.mark.req("SEQ-HND-3")

PATIENCE_S = 60
ACME = {"x-tenant-id": "acme"}

HANDLERS = """
import asyncio
import time
from pathlib import Path

import detent

here = Path(__file__).parent


def note(text):
    with (here / "log").open("a") as log:
        log.write(text + "\\n")


@detent.handler
async def quick(n: int):
    note(f"quick {n}")
    return {"seen": n}


@detent.handler
async def pages(ctx: detent.HandlerContext):
    begun = ctx.resume_checkpoint or 0
    for page in range(begun, 5):
        if page == 3 and not (here / "gate").exists():
            await asyncio.Event().wait()
        note(f"page {page}")
        await ctx.checkpoint(page + 1)
    return {"begun": begun}


@detent.handler
def plain(ctx: detent.HandlerContext):
    note("plain begins")
    ctx.checkpoint({"half": True})
    while not (here / "gate").exists():
        time.sleep(0.01)
    note("plain ends")
    return {"half": True}


@detent.policy
def nobody():
    return detent.allow()


some = [quick]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "app.py").write_text(HANDLERS)
    return tmp_path


@contextmanager
def working(place, url, *arguments, module="app.py", **environment):
    """A worker process that has begun to poll."""
    command = [sys.executable, "-m", "detent.cli", "worker", "--module", str(place / module)]
    process = subprocess.Popen(
        [*command, "--url", url, "--tenant", "acme", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        line = process.stderr.readline()
        assert " works on " in line, line
        yield process
    finally:
        process.kill()
        process.wait(20)
        process.stderr.close()


def stopped(process):
    """Tell it to stop; its exit code and last words."""
    process.send_signal(signal.SIGTERM)
    code = process.wait(PATIENCE_S)
    return code, process.stderr.read()


def made(http, *blocks, count=1, data=None):
    """Instances of a sequence of these blocks."""
    body = sequence_body(*blocks)
    assert http.post("/sequences", json=body).status_code == 201
    new = instance_body(body["id"])
    ids = []
    for n in range(count):
        new["context"] = {"data": {"n": n, **(data or {})}}
        ids.append(http.post("/instances", json=new).json()["id"])
    return ids


def settled(http, instance, state="completed"):
    """The data of an instance once it has come to a state."""
    while (shown := http.get(f"/instances/{instance}").json())["state"] != state:
        assert shown["state"] not in {"failed", "cancelled"}, shown
    return shown["context"]["data"]


def task_of(http, instance, holds):
    """The task of an instance, once something holds of it."""
    while True:
        for task in http.get("/workers/tasks").json():
            if task["instance_id"] == instance and holds(task):
                return task


def lines(place):
    return (place / "log").read_text().splitlines()


def numbered():
    return step("q", "quick", params={"n": "{{ data.n }}"})


@contextmanager
def server(place, **environment):
    with (
        served(place / "s.db", **environment) as (url, process),
        httpx2.Client(base_url=url, headers=ACME, timeout=PATIENCE_S) as http,
    ):
        yield url, http, process


def test_fifty_instances_are_carried_through_by_two_workers_each_once(place):
    with server(place) as (url, http, _), working(place, url), working(place, url) as second:
        ids = made(http, numbered(), count=50)
        assert [settled(http, each)["seen"] for each in ids] == list(range(50))
        assert sorted(lines(place)) == sorted(f"quick {n}" for n in range(50))
        stats = http.get("/workers/tasks/stats").json()
        assert stats["by_state"] == {"completed": 50}
        assert len(http.get("/workers").json()) == 2
        code, words = stopped(second)
        assert code == 0
        assert "stopped; " in words


def test_another_worker_goes_on_from_the_checkpoint_of_one_that_was_killed(place):
    with server(place, detent_worker_reaper_stale_secs="1") as (url, http, _):
        with working(place, url) as killed:
            before = made(http, numbered(), count=5)
            assert [settled(http, each)["seen"] for each in before] == list(range(5))
            (long,) = made(http, step("p", "pages"))
            task = task_of(http, long, lambda each: each["checkpoint_seq"] == 3)
            killed.send_signal(signal.SIGKILL)
            killed.wait(PATIENCE_S)
        (place / "gate").touch()
        with working(place, url):
            assert settled(http, long)["begun"] == 3
            after = made(http, numbered(), count=3)
            for each in after:
                settled(http, each)
        again = task_of(http, long, lambda each: each["state"] == "completed")
        assert (again["id"], again["claim_epoch"]) == (task["id"], 2)
        events = [
            each["event"] for each in http.get(f"/workers/tasks/{task['id']}/attempts").json()
        ]
        assert events == ["claimed", "reclaimed", "claimed", "completed"]
        written = lines(place)
        assert [line for line in written if "page" in line] == [f"page {n}" for n in range(5)]
        assert len([line for line in written if "quick" in line]) == len(before) + len(after)


def test_a_worker_that_is_told_to_stop_ends_what_it_has_begun(place):
    with server(place) as (url, http, _), working(place, url) as worker:
        (instance,) = made(http, step("p", "plain"))
        task_of(http, instance, lambda each: each["checkpoint_seq"] == 1)
        worker.send_signal(signal.SIGTERM)
        (place / "gate").touch()
        assert worker.wait(PATIENCE_S) == 0
        assert "stopped; 1 task reported" in worker.stderr.read()
        assert settled(http, instance)["half"] is True


@pytest.mark.parametrize("handler", ["plain", "pages"])
def test_what_is_not_done_within_the_grace_time_is_left_to_others(place, handler):
    with server(place) as (url, http, _):
        with working(place, url, "--grace", "0") as worker:
            (instance,) = made(http, step("p", handler))
            task_of(http, instance, lambda each: each["checkpoint_seq"] > 0)
            code, words = stopped(worker)
            assert code == 1
            assert "0 tasks reported, 1 left to others" in words
        held = task_of(http, instance, lambda _each: True)
        assert held["state"] == "claimed"


def test_a_worker_waits_for_a_server_that_is_away(place):
    with server(place) as (url, http, process), working(place, url) as worker:
        (instance,) = made(http, step("p", "plain"))
        task_of(http, instance, lambda each: each["checkpoint_seq"] == 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        (place / "gate").touch()
        assert "does not answer" in worker.stderr.readline()
        port = url.rpartition(":")[2]
        with (
            served(place / "s.db", "--port", port) as (again, _),
            httpx2.Client(base_url=again, headers=ACME, timeout=PATIENCE_S) as later,
        ):
            assert settled(later, instance)["half"] is True
            assert lines(place) == ["plain begins", "plain ends"]


def test_only_the_queue_and_the_handlers_that_were_named_are_polled_for(place):
    with (
        server(place) as (url, http, _),
        working(place, url, "--queue", "mail", "--name", "w1", module="app.py:some"),
    ):
        ours = step("a", "quick", params={"n": 1}, queue_name="mail")
        (mine,) = made(http, ours)
        (other,) = made(http, step("a", "quick", params={"n": 2}, queue_name="post"))
        assert settled(http, mine)["seen"] == 1
        (worker,) = http.get("/workers").json()
        assert (worker["worker_id"], worker["handlers"]) == ("w1", ["quick"])
        assert worker["queues"] == ["mail"]
        assert http.get(f"/instances/{other}").json()["state"] == "waiting"


def run(*arguments, **environment):
    command = [sys.executable, "-m", "detent.cli", "worker", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, **environment},
    )


def test_a_worker_that_is_not_let_in_says_so_and_ends(place):
    module = str(place / "app.py")
    with served(place / "s.db", detent_api_key="root") as (url, _):
        told = run("--module", module, "--url", url, "--tenant", "acme", DETENT_API_KEY="wrong")
        assert told.returncode == 4
        assert "set DETENT_API_KEY" in told.stderr
        told = run("--module", module, "--url", url, DETENT_API_KEY="root")
        assert told.returncode == 1
        assert "give --tenant" in told.stderr


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("app.py:none", "has no 'none'"),
        ("missing.py", "does not exist"),
        ("empty.py", "no handler in it"),
    ],
)
def test_a_module_without_handlers_is_refused(place, module, words):
    (place / "empty.py").write_text("import detent\n")
    told = run("--module", str(place / module), "--tenant", "acme")
    assert told.returncode != 0
    assert words in told.stderr
