"""A store that another process owns: reading works, and requests reach the owner."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import apsw
import pytest

from detent import RequestError
from detent.bootstrap.visitor import Visitor
from tests.unit.cli.commands import SOURCE, detent, process

OWNER = """
import sys
from detent import Engine, handler, sequence, step, wait

@handler("note")
def note(n: int) -> dict:
    return {"noted": n}

d = sequence("d", wait("w", signal="go", store_as="said"), step("n", note, params={"n": 5}))
with Engine(sys.argv[1], handlers=[note]) as engine:
    print(engine.start(d), flush=True)
    sys.stdin.read()
"""


class Owner:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self.instance = self.process.stdout.readline().strip()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.stop()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "owned.db"


@pytest.fixture
def owner(path):
    owner = Owner(path)
    yield owner
    if owner.process.poll() is None:
        owner.stop()


def test_requests_reach_the_owner_and_its_handlers_run(path, owner):
    shown = detent("--db", path, "instance", "signal", owner.instance, "go", '"now"', "-o", "json")
    assert shown.json["owner"] is True
    with Visitor(path) as visitor:
        assert visitor.wait_for(owner.instance, timeout=20) == "completed"
    data = detent("--db", path, "instance", "show", owner.instance, "-o", "json").json["data"]
    assert data == {"said": "now", "noted": 5}


def test_an_ask_gets_the_verdict_of_the_owner_also_when_it_is_no(path, owner):
    with Visitor(path) as visitor:
        visitor.wait_for(owner.instance, "waiting", timeout=20)
    assert detent("--db", path, "instance", "pause", owner.instance).code == 0
    refused = detent("--db", path, "instance", "retry", owner.instance)
    assert refused.code == 4
    assert "[instance.transition]" in refused.err
    assert detent("--db", path, "instance", "cancel", owner.instance).code == 0
    view = detent("--db", path, "instance", "show", owner.instance, "-o", "json").json
    assert view["summary"]["state"] == "cancelled"


@pytest.mark.req("CORE-INB-2")
def test_the_same_id_asked_twice_gets_the_same_verdict(path, owner):
    with Visitor(path) as visitor:
        visitor.wait_for(owner.instance, "waiting", timeout=20)
        first = visitor.command(owner.instance, "cancel", id="once-only")
        again = visitor.command(owner.instance, "cancel", id="once-only")
        assert again == first


def test_a_visitor_starts_instances_of_what_is_stored(path, owner):
    with Visitor(path) as visitor:
        made = visitor.start("d", key="mine")
        assert visitor.start("d", key="mine") == made
        assert visitor.wait_for(made, "waiting", timeout=20) == "waiting"
        with pytest.raises(RequestError) as caught:
            visitor.start("unknown")
        assert caught.value.code == "definition.unknown"


def test_another_run_on_an_owned_store_is_told_who_owns_it(path, owner, tmp_path):
    file = tmp_path / "d.yaml"
    file.write_text("name: x\nversion: 1\nblocks:\n  - {type: step, id: a, handler: noop}\n")
    shown = process("--db", path, "run", file)
    assert shown.code == 5
    assert str(owner.process.pid) in shown.err
    assert "[store.owned]" in shown.err


def test_an_owner_that_does_not_answer_is_told_from_one_that_is_gone(path, owner):
    with Visitor(path) as visitor:
        visitor.wait_for(owner.instance, "waiting", timeout=20)
    owner.process.send_signal(19)  # stopped: alive, and silent
    try:
        with Visitor(path, timeout_ms=300) as visitor, pytest.raises(RequestError) as caught:
            visitor.pause(owner.instance)
        assert caught.value.code == "request.timeout"
        assert str(owner.process.pid) in caught.value.message
        assert caught.value.details["id"] in caught.value.message
    finally:
        owner.process.send_signal(18)


def test_an_owner_that_is_stopped_for_longer_than_its_lease_is_still_named(path, owner):
    with Visitor(path) as visitor:
        visitor.wait_for(owner.instance, "waiting", timeout=20)
    owner.process.send_signal(19)
    try:
        with apsw.Connection(str(path)) as store:  # half a minute later
            store.execute("UPDATE owner SET lease_until = 0")
            store.execute("UPDATE partition SET lease_until = 0")
        with Visitor(path, timeout_ms=300) as visitor, pytest.raises(RequestError) as caught:
            visitor.pause(owner.instance)
        said = f"process {owner.process.pid} on {socket.gethostname()} holds the store's lock"
        assert said in caught.value.message
    finally:
        owner.process.send_signal(18)


def test_after_a_killed_owner_a_request_is_carried_out_here(path, owner):
    with Visitor(path) as visitor:
        visitor.wait_for(owner.instance, "waiting", timeout=20)
    owner.kill()
    with Visitor(path, timeout_ms=200) as visitor, pytest.raises(RequestError) as caught:
        visitor.pause(owner.instance)
    assert "nobody owns the store" in caught.value.message
    shown = detent("--db", path, "instance", "cancel", owner.instance, "-o", "json")
    assert shown.code == 0, shown.err
    assert shown.json["owner"] is False
