"""Bytes from step to step: kept beside their instance, and nobody else's to read."""

from __future__ import annotations

import hashlib
import signal

import pytest

import detent
from detent import sequence, step
from detent.service.artifacts import read_artifact
from tests.acceptance.stage import refused, state, virtual
from tests.integration.engine_processes import run
from tests.integration.web.house import house
from tests.integration.web.house import step as raw_step
from tests.unit.handlers.network.loopback import Loopback, answer

pytestmark = pytest.mark.req("SEQ-HND-1")

BYTES = bytes(range(256)) * 4_000  # about a megabyte, and no text


def saying(seen):
    """A tool that draws, and one that takes what is drawn."""
    if seen.path == "/draw":
        return answer(200, BYTES, ["Content-Type: image/png"])
    return answer(200, {"taken": hashlib.sha256(seen.body).hexdigest()})


def story(tool):
    fetched = {"url": f"{tool.url}/draw", "response_as": "artifact"}
    sent = {"url": f"{tool.url}/take", "body_artifact": "{{ outputs.draw.artifact }}"}
    return sequence(
        "story", step("draw", "tool_call", params=fetched), step("take", "tool_call", params=sent)
    )


def test_what_one_step_brings_another_sends_on_and_the_record_stays_small():
    with Loopback(saying) as tool, virtual(allow_internal_urls=True) as engine:
        instance = engine.start(story(tool))
        engine.run_until_idle()
        outputs = engine.inspect.show(instance).outputs
        digest = hashlib.sha256(BYTES).hexdigest()
        assert outputs["take"]["result"] == {"taken": digest}
        assert outputs["draw"]["artifact"]["size"] == len(BYTES)
        rows = engine._parts.read(lambda store: store.journal(store.instance(instance).n, 0, 100))
        assert max(len(row.body) for row in rows) < 10_000
        assert engine.replay(instance).identical
        assert engine.inspect.verify().valid


def test_an_artifact_of_another_tenant_does_not_exist():
    with Loopback(saying) as tool, virtual(allow_internal_urls=True) as engine:
        owner = engine.start(story(tool), tenant="acme")
        engine.run_until_idle()
        key = engine.inspect.show(owner).outputs["draw"]["artifact"]["key"]
        takes = {"url": f"{tool.url}/take", "body_artifact": "{{ data.key }}"}
        thief = sequence("thief", step("take", "tool_call", params=takes))
        before = len(tool.seen)
        for tenant, ends in (("beta", "failed"), ("acme", "completed")):
            instance = engine.start(thief, {"key": key}, tenant=tenant)
            engine.run_until_idle()
            assert state(engine, instance) == ends
        assert len(tool.seen) == before + 1


LIFE = """
draw = {"url": args[0] + "/draw", "response_as": "artifact"}
take = {"url": args[0] + "/take", "body_artifact": "{{ outputs.draw.artifact }}"}
steps = step("draw", "tool_call", params=draw), step("take", "tool_call", params=take)
story = sequence("s", *steps)
with detent.Engine(path, allow_internal_urls=True) as engine:
    say(engine.wait_for(engine.start(story, key="once")))
"""


def test_after_a_crash_between_the_keeping_and_the_outcome_the_tool_is_asked_again(
    tmp_path, monkeypatch
):
    """The bytes are kept, and whoever kept them dies before the outcome is durable."""
    path = tmp_path / "s.db"
    with Loopback(saying) as tool:
        monkeypatch.setenv("DETENT_FAILPOINT", "between_outcome_and_commit:2")  # of the first call
        assert run(LIFE, path, tool.url) == (-signal.SIGKILL, [])
        assert [seen.path for seen in tool.seen] == ["/draw"]
        monkeypatch.delenv("DETENT_FAILPOINT")
        assert run(LIFE, path, tool.url) == (0, ["completed"])
        assert [seen.path for seen in tool.seen] == ["/draw", "/draw", "/take"]
    with detent.Engine(path) as engine:
        (row,) = engine.inspect.instances().items
        kept = engine.inspect.show(row.id).outputs["draw"]["artifact"]
        assert kept["id"] == hashlib.sha256(BYTES).hexdigest()
        assert engine.inspect.verify().valid


def test_artifacts_are_read_over_http_by_their_tenant(tmp_path):
    with Loopback(saying) as tool, house(tmp_path / "s.db", allow_internal_urls=True) as server:
        params = {"url": f"{tool.url}/draw", "response_as": "artifact"}
        instance = server.instance(server.sequence(raw_step("d", "tool_call", params=params)))
        server.settle(instance)
        ((_, output),) = server.outputs(instance)
        path = f"/artifacts/{output['artifact']['key']}"
        found = server.get(path)
        assert (found.status_code, found.content) == (200, BYTES)
        assert found.headers["content-type"] == "application/octet-stream"
        assert found.headers["content-disposition"] == "attachment"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert server.get(f"/api/v1{path}").content == BYTES
        for bad in (
            server.get(path, tenant="other"),
            server.get(path[:-1] + ("0" if path[-1] != "0" else "1")),
            server.get(f"/artifacts/{instance}/x"),
        ):
            assert (bad.status_code, bad.json()["code"]) == (404, "artifact.not_found")


def test_bytes_that_were_changed_in_the_store_are_not_given_out():
    with Loopback(saying) as tool, virtual(allow_internal_urls=True) as engine:
        instance = engine.start(story(tool))
        engine.run_until_idle()
        made = engine.inspect.show(instance).outputs["draw"]["artifact"]

        def spoil(store):
            store._connection.execute(
                "UPDATE blob SET body = x'00' WHERE digest = ?", (made["id"],)
            )

        engine._parts.write(spoil)
        with refused("store.corrupt"):
            engine._parts.read(lambda store: read_artifact(store, instance, made["id"], None))
