"""Commands and the server on PostgreSQL: the URL is the store, and its password is never shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from detent import Engine, handler, sequence, step, wait
from detent.testing.postgres import PostgresServer
from tests.integration.test_cli_serve import served
from tests.integration.web.house import instance_body, sequence_body
from tests.integration.web.house import step as api_step
from tests.postgres_fixture import fresh_url
from tests.unit.cli.commands import detent, process

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECRET = "hunter2"


@pytest.fixture(scope="module")
def guarded():
    """A server that wants a password."""
    with PostgresServer(password=SECRET) as server:
        yield server


@pytest.fixture
def url(guarded):
    return fresh_url(guarded, tcp=True)


def run(url, *arguments):
    """Run a command; whatever it says, the password is not in it."""
    done = detent("--db", url, *arguments)
    assert SECRET not in done.out + done.err
    return done


@handler("greet_on_postgres")
def greet(name: str) -> dict[str, str]:
    return {"greeting": f"hello {name}"}


GREETING = sequence(
    "greeting",
    step("greet", greet, params={"name": "{{data.name}}"}),
    wait("answer", signal="go"),
    step("end", "noop"),
)


@pytest.fixture
def waiting(url):
    with Engine(url, handlers=[greet], clock="virtual", seed="cli") as engine:
        instance = engine.start(GREETING, {"name": "Ada"}, key="k1")
        engine.run_until_idle()
        return instance


def test_every_command_that_looks_takes_a_url(url, waiting):
    for command in (
        ["instance", "list"],
        ["instance", "show", waiting],
        ["instance", "tree", waiting],
        ["instance", "timeline", waiting],
        ["instance", "explain", waiting],
        ["audit", "export", waiting],
        ["audit", "anchor"],
        ["instance", "replay", waiting],
        ["effect", "list"],
        ["definition", "list"],
        ["definition", "show", "greeting"],
        ["audit", "verify"],
        ["limit", "list"],
        ["pool", "list"],
        ["cron", "list"],
    ):
        done = run(url, *command)
        assert done.code == 0, (command, done.err)
    assert run(url, "instance", "list", "-o", "json").json["instances"][0]["id"] == waiting


def test_commands_that_steer_take_a_url(url, waiting):
    assert run(url, "instance", "pause", waiting).code == 0
    assert run(url, "instance", "resume", waiting).code == 0
    assert run(url, "instance", "signal", waiting, "go").code == 0
    shown = run(url, "instance", "show", waiting, "-o", "json").json["summary"]
    assert shown["state"] == "completed"
    assert run(url, "instance", "pause", waiting).code == 4
    assert run(url, "limit", "set", "mails", "--max", "5", "--window", "1m").code == 0
    assert "mails" in run(url, "limit", "list").out


def test_a_first_command_makes_the_store_and_says_so_without_the_password(url):
    absent = run(url, "instance", "list")
    assert absent.code == 5
    assert "store.unavailable" in absent.err
    done = run(url, "limit", "set", "mails", "--max", "5", "--window", "1m")
    assert done.code == 0
    assert "made the store postgresql://detent:***@127.0.0.1" in done.err
    assert "made the store" not in run(url, "limit", "set", "x", "--max", "1", "--window", "1m").err


def test_run_works_on_a_server_and_hints_without_the_password(url):
    done = run(url, "run", EXAMPLES / "shipping.json", "--handlers", EXAMPLES / "warehouse.py")
    assert done.code in (0, 1)
    assert "detent:***@" in done.out


def test_the_doctor_looks_at_the_server_instead_of_a_file(url, waiting):
    done = run(url, "doctor", "-o", "json")
    found = {each["name"]: each for each in done.json["findings"]}
    assert found["server"]["said"].startswith("PostgreSQL ")
    assert found["server"]["level"] == "warn"  # this one does not sync
    assert "disk" not in found
    assert "log" not in found
    assert found["integrity"]["level"] == "ok"
    assert "***" in found["store"]["said"]


@pytest.mark.parametrize("wrong", ["x:y@127.0.0.1:9/x", "detent:hunter2@127.0.0.1:9/x"])
def test_a_server_that_is_not_there_is_one_sentence_and_exit_code_5(wrong):
    done = run(f"postgresql://{wrong}", "instance", "list")
    assert done.code == 5
    assert "[store.unreachable]" in done.err
    assert done.err.count("\n") == 1
    checked = run(f"postgresql://{wrong}", "doctor")
    assert checked.code == 5


def test_a_traceback_for_us_does_not_hold_the_password_either():
    done = process(
        "--db", "postgresql://detent:hunter2@127.0.0.1:9/x", "instance", "list", DETENT_DEBUG="1"
    )
    assert "Traceback" in done.err
    assert SECRET not in done.err


def test_serve_works_on_a_server_stops_and_goes_on_where_it_stood(url):
    headers = {"x-tenant-id": "acme"}
    body = sequence_body({"type": "wait", "id": "w", "signal": "go"}, api_step("s"))
    with served(url) as (address, running):
        with httpx2.Client(base_url=address, headers=headers) as http:
            assert http.post("/sequences", json=body).status_code == 201
            made = http.post("/instances", json=instance_body(body["id"])).json()["id"]
        running.terminate()
        assert running.wait(20) == 0
        assert SECRET not in running.stderr.read()
    with served(url) as (address, _), httpx2.Client(base_url=address, headers=headers) as http:
        sent = http.post(f"/instances/{made}/signals", json={"signal_type": {"custom": "go"}})
        assert sent.status_code == 201
        while http.get(f"/instances/{made}").json()["state"] != "completed":
            pass
        assert http.get("/changes").json()["changes"]
        assert http.get("/health/ready").status_code == 200


def test_serve_says_where_it_serves_without_the_password(url):
    command = [sys.executable, "-m", "detent.cli", "serve", "--db", url, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        line = running.stderr.readline()
        running.terminate()
    assert line.startswith("serving postgresql://detent:***@127.0.0.1")
