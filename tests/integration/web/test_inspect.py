"""Whole views and commands over HTTP: what a client of the engine's own verbs needs."""

from __future__ import annotations

import threading
import time
import uuid

import msgspec
import pytest

from detent.service.instances import InstanceView, Listing
from tests.integration.web.house import step

WAIT = {"type": "wait", "id": "w", "signal": "go"}


@pytest.fixture
def waiting(server):
    instance = server.instance(server.sequence(step("a"), WAIT))
    server.settle(instance, "waiting")
    return instance


def test_an_instance_is_shown_as_the_engine_shows_it(server, waiting):
    shown = server.get(f"/inspect/instances/{waiting}")
    view = msgspec.json.decode(shown.content, type=InstanceView)
    assert view == server.engine.inspect.show(waiting)
    listing = server.get("/api/v1/inspect/instances", params={"state": "waiting", "limit": 1})
    assert len(msgspec.json.decode(listing.content, type=Listing).items) == 1


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize(
    "view",
    ["", "/tree", "/outputs", "/timeline", "/audit", "/effects", "/explain", "/replay", "/state"],
)
def test_no_view_shows_the_instance_of_another_tenant(server, waiting, view):
    path = f"/inspect/instances/{waiting}{view}"
    assert server.get(path).status_code == 200
    other = server.get(path, tenant="other")
    assert (other.status_code, other.headers["x-detent-code"]) == (404, "instance.not_found")


def test_who_waits_for_a_state_is_answered_when_it_is_reached(server, waiting):
    path = f"/inspect/instances/{waiting}/state"
    timer = threading.Timer(0.3, lambda: server.engine.signal(waiting, "go"))
    timer.start()
    found = server.get(path, params={"until": "completed,failed", "wait_ms": 15_000})
    assert found.json() == {"id": waiting, "state": "completed"}
    timer.join()
    began = time.monotonic()
    assert server.get(path, params={"wait_ms": 15_000}).json()["state"] == "completed"
    assert time.monotonic() - began < 5


def test_who_has_waited_long_enough_is_told_what_it_has_come_to(server, waiting):
    path = f"/inspect/instances/{waiting}/state"
    assert server.get(path, params={"wait_ms": 50}).json()["state"] == "waiting"
    assert server.get(path, params={"wait_ms": 10**9}).status_code == 400
    assert server.get(path, params={"until": "asleep"}).status_code == 400


@pytest.mark.req("CORE-INB-2")
def test_a_command_gets_the_kernels_verdict_and_one_id_the_same_one(server):
    sequence = server.sequence(step("a"))
    instance = server.instance(sequence, next_fire_at="2099-01-01T00:00:00Z")
    path = f"/instances/{instance}/commands"
    first = server.post(path, {"verb": "pause", "id": "p1"})
    assert first.json()["result"]["state"] == "paused"
    server.post(path, {"verb": "resume"})
    assert server.post(path, {"verb": "pause", "id": "p1"}).json() == first.json()
    assert server.get(f"/instances/{instance}").json()["state"] == "scheduled"
    refused = server.post(path, {"verb": "resume"})
    assert (refused.status_code, refused.json()["code"]) == (400, "instance.transition")
    assert server.post(path, {"verb": "explode"}).status_code == 422
    assert server.post(path, {"verb": "pause"}, tenant="other").status_code == 404


def test_an_id_of_one_tenant_says_nothing_to_another(server):
    mine = server.instance(server.sequence(WAIT))
    theirs = server.instance(server.sequence(WAIT, tenant="other"), tenant="other")
    body = {"signal_type": {"custom": "go"}, "signal_id": "the-same"}
    assert server.post(f"/instances/{mine}/signals", body).json() == {"signal_id": "the-same"}
    server.post(f"/instances/{theirs}/signals", body, tenant="other")
    assert server.settle(mine) == server.settle(theirs) == "completed"


def test_a_command_moves_an_instance_to_a_definition_of_its_own_tenant_only(server, waiting):
    name = server.engine.inspect.show(waiting).summary.name
    newer = {"name": name, "version": 2, "blocks": [step("a"), WAIT, step("more")]}
    foreign = {**newer, "version": 3, "blocks": [step("a"), WAIT], "tenant_id": "other"}
    theirs = server.put("/sequences", foreign, tenant="other").json()["hash"]
    path = f"/instances/{waiting}/commands"
    for digest in (theirs, "0" * 64, 7, ""):
        refused = server.post(path, {"verb": "migrate", "args": {"to": digest}})
        assert (refused.status_code, refused.json()["code"]) == (404, "definition.unknown")
    assert server.engine.inspect.show(waiting).summary.version == 1
    ours = server.put("/sequences", {**newer, "tenant_id": "acme"}).json()["hash"]
    assert server.post(path, {"verb": "migrate", "args": {"to": ours}}).status_code == 200
    assert server.engine.inspect.show(waiting).summary.version == 2


MADE_UP = {
    "no state": ("set_state", {"state": 7}),
    "no tick": ("set_state", {"state": "scheduled", "next_fire_at": "soon"}),
    "a tick before all time": ("set_state", {"state": "scheduled", "next_fire_at": -1}),
    "a tick beyond all time": ("set_state", {"state": "scheduled", "next_fire_at": 2**62}),
    "no span": ("reschedule", {"offset_ms": "1h"}),
    "a span beyond all time": ("reschedule", {"offset_ms": 2**62}),
    "no block": ("resume_from", {"block": None}),
    "data that is no object": ("resume_from", {"block": "w", "data": [1]}),
    "a signal that is none": ("resume_from", {"block": "w", "signals": ["go"]}),
    "no arguments": ("inject", None),
    "blocks that are no list": ("inject", {"blocks": {"a": 1}}),
    "a place that is none": ("inject", {"blocks": [step("x")], "position": -1}),
    "a block without a handler": ("inject", {"blocks": [{"type": "step", "id": "x"}]}),
    "a handler nobody has": ("inject", {"blocks": [step("x", "nobody_has_it")]}),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_arguments_that_somebody_made_up_are_refused_and_change_nothing(server, waiting, name):
    before = server.engine.inspect.show(waiting)
    tree = server.engine.inspect.tree(waiting)
    verb, args = MADE_UP[name]
    refused = server.post(f"/instances/{waiting}/commands", {"verb": verb, "args": args})
    assert refused.status_code == 400, refused.text
    after = server.engine.inspect.show(waiting)
    assert (after.summary.state, after.data) == (before.summary.state, before.data)
    assert server.engine.inspect.tree(waiting) == tree


def test_what_would_have_been_is_asked_with_definitions_of_the_same_tenant_only(server, waiting):
    foreign = {"name": "theirs", "version": 1, "blocks": [step("z")], "tenant_id": "other"}
    theirs = server.put("/sequences", foreign, tenant="other").json()["hash"]
    path = f"/inspect/instances/{waiting}/what-if"
    for digest in (theirs, "0" * 64):
        refused = server.post(path, {"definition": digest})
        assert (refused.status_code, refused.json()["code"]) == (404, "definition.unknown")
    assert server.post(path, {}, tenant="other").status_code == 404
    assert server.post(path, {}).json()["same"] is True
    nothing = {"inputs": [{"seq": 99, "index": 0, "verb": "drop"}]}
    assert server.post(path, nothing).status_code == 400


def test_a_batch_tells_its_ids_to_who_asks(server):
    sequence = server.sequence(step("a"))
    item = {"sequence_id": sequence, "tenant_id": "acme", "namespace": "default"}
    body = {"instances": [item, item]}
    told = server.post("/instances/batch", body, params={"ids": "true"}).json()
    assert told["count"] == 2
    assert [server.settle(id) for id in told["ids"]] == ["completed", "completed"]
    assert server.post("/instances/batch", body).json() == {"count": 2}


def test_an_instance_begins_after_a_span_of_the_engines_clock(server):
    sequence = server.sequence(step("a"))
    instance = server.instance(sequence, start_in_ms=3_600_000)
    due = server.engine.inspect.show(instance).summary.due_ms
    assert due / 1000 - time.time() == pytest.approx(3_600, abs=60)
    wrong = {"sequence_id": sequence, "tenant_id": "acme", "namespace": "default"}
    both = {**wrong, "start_in_ms": 1, "next_fire_at": "2099-01-01T00:00:00Z"}
    assert server.post("/instances", both).status_code == 400
    assert server.post("/instances", {**wrong, "start_in_ms": 10**15}).status_code == 400


def test_an_error_tells_programs_its_details(server):
    sequence = server.sequence(step("a", "nobody_has_it"))
    body = {"sequence_id": sequence, "tenant_id": "acme", "namespace": "default"}
    refused = server.post("/instances", body).json()
    assert refused["details"] == {"handlers": ["nobody_has_it"]}


def test_a_migration_is_previewed_to_a_name_or_a_definition(server, waiting):
    name = server.engine.inspect.show(waiting).summary.name
    path = f"/inspect/instances/{waiting}/migration"
    assert server.post(path, {"to": f"{name}@1"}).json() == []
    other = {"name": name, "version": 2, "blocks": [step("z")]}
    assert server.post(path, {"definition": other}).json() != []
    assert server.post(path, {}).status_code == 400
    assert server.post(path, {"to": "nobody"}).status_code == 404
    assert (
        server.post(f"/inspect/instances/{uuid.uuid4()}/migration", {"to": name}).status_code == 404
    )
