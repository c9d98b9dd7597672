"""Triggers over HTTP, fired with a key or by signed calls from outside (contract §19)."""

from __future__ import annotations

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.model import limits
from detent.service.inbound import PeerRates, signature
from tests.integration.web.house import house

pytestmark = pytest.mark.req("SEQ-WHK-2")
SECRET = "s3cret-s3cret"


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


@pytest.fixture
def name(server, tenant):
    return sequence(server, tenant)


def sequence(server, tenant, **fields):
    """A stored sequence; its name."""
    id = server.sequence(tenant=tenant, **fields)
    return server.get(f"/sequences/{id}", tenant=tenant).json()["name"]


def body(tenant, name, **fields):
    slug = f"hook-{uuid.uuid4().hex}"
    return {"slug": slug, "sequence_name": name, "tenant_id": tenant, **fields}


def door(server, tenant, name, **fields):
    """A new trigger; its slug."""
    made = server.post("/triggers", body(tenant, name, **fields), tenant=tenant)
    assert made.status_code == 201, made.text
    return made.json()["slug"]


# triggers


def test_a_trigger_is_made_shown_listed_closed_and_removed(server, tenant, name):
    given = body(tenant, name, secret=SECRET, config={"a": 1})
    made = server.post("/triggers", given, tenant=tenant)
    shown = made.json()
    assert made.status_code == 201, made.text
    assert shown == {
        "slug": given["slug"],
        "sequence_name": name,
        "tenant_id": tenant,
        "namespace": "default",
        "enabled": True,
        "trigger_type": "webhook",
        "config": {"a": 1},
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
        "secret": "[REDACTED]",
    }
    path = f"/triggers/{given['slug']}"
    assert server.get(path, tenant=tenant).json() == shown
    assert server.get("/triggers", tenant=tenant).json() == [shown]
    closed = server.patch(path, {"enabled": False}, tenant=tenant)
    assert (closed.status_code, closed.json()["enabled"]) == (200, False)
    assert server.patch(path, {}, tenant=tenant).status_code == 422
    assert server.delete(path, tenant=tenant).status_code == 204
    assert server.get(path, tenant=tenant).status_code == 404
    assert server.delete(path, tenant=tenant).status_code == 404


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (400, {"slug": ""}),
        (400, {"slug": "x" * 256}),
        (400, {"sequence_name": ""}),
        (400, {"secret": ""}),
        (422, {"slug": None}),
        (422, {"trigger_type": "carrier_pigeon"}),
        (404, {"sequence_name": "nothing"}),
        (404, {"version": 9}),
        (404, {"namespace": "elsewhere"}),
        (403, {"tenant_id": "somebody-else"}),
    ],
)
def test_a_trigger_that_is_wrong_is_refused(server, tenant, name, status, fields):
    given = {**body(tenant, name), **fields}
    assert server.post("/triggers", given, tenant=tenant).status_code == status
    assert server.get("/triggers", tenant=tenant).json() == []


@pytest.mark.parametrize("missing", ["slug", "sequence_name", "tenant_id"])
def test_a_missing_field_cannot_be_read(server, tenant, name, missing):
    given = body(tenant, name)
    del given[missing]
    assert server.post("/triggers", given, tenant=tenant).status_code == 422


def test_slugs_are_the_same_for_all_and_what_is_another_tenants_is_not_there(server, tenant, name):
    given = body(tenant, name)
    assert server.post("/triggers", given, tenant=tenant).status_code == 201
    assert server.post("/triggers", given, tenant=tenant).status_code == 409
    path = f"/triggers/{given['slug']}"
    for answer in (
        server.get(path, tenant="other"),
        server.patch(path, {"enabled": False}, tenant="other"),
        server.delete(path, tenant="other"),
        server.post(f"{path}/fire", {}, tenant="other"),
    ):
        assert answer.status_code == 404
    assert server.get(path, tenant=tenant).json()["enabled"] is True
    assert server.get("/instances", tenant=tenant).json()["items"] == []


# firing


def test_firing_starts_the_sequence_with_the_body_as_its_data(server, tenant, name):
    slug = door(server, tenant, name)
    fired = server.post(f"/triggers/{slug}/fire", {"n": 1}, tenant=tenant)
    assert fired.status_code == 201, fired.text
    instance = fired.json()["instance_id"]
    assert fired.json() == {"instance_id": instance, "trigger": slug, "sequence_name": name}
    shown = server.get(f"/instances/{instance}", tenant=tenant).json()
    assert shown["context"]["data"] == {"n": 1}
    assert (shown["priority"], shown["timezone"]) == ("Normal", "UTC")
    assert shown["metadata"] == {
        "_trigger": slug,
        "_trigger_type": "webhook",
        "_trigger_event": {"source": "http_fire"},
    }
    assert server.settle(instance) == "completed"


def test_the_version_is_found_when_it_fires(server, tenant, name):
    newest, pinned = door(server, tenant, name), door(server, tenant, name, version=1)
    second = server.sequence(tenant=tenant, name=name, version=2)

    def fired(slug):
        made = server.post(f"/triggers/{slug}/fire", {}, tenant=tenant).json()
        id = server.get(f"/instances/{made['instance_id']}", tenant=tenant).json()["sequence_id"]
        return server.get(f"/sequences/{id}", tenant=tenant).json()["version"]

    assert (fired(newest), fired(pinned)) == (2, 1)
    server.post(f"/sequences/{second}/deprecate", tenant=tenant)
    assert fired(newest) == 1


def test_a_trigger_with_a_secret_fires_for_who_knows_it_and_a_closed_one_for_nobody(
    server, tenant, name
):
    slug = door(server, tenant, name, secret=SECRET)
    path = f"/triggers/{slug}/fire"
    for headers in ({}, {"x-trigger-secret": "wrong"}, {"x-trigger-secret": SECRET + "x"}):
        refused = server.post(path, {}, tenant=tenant, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "trigger.refused")
        assert SECRET not in refused.text
    known = {"x-trigger-secret": SECRET}
    assert server.post(path, {}, tenant=tenant, headers=known).status_code == 201
    server.patch(f"/triggers/{slug}", {"enabled": False}, tenant=tenant)
    closed = server.post(path, {}, tenant=tenant, headers=known)
    assert (closed.status_code, closed.json()["code"]) == (400, "trigger.disabled")
    assert server.post("/triggers/nothing/fire", {}, tenant=tenant).status_code == 404
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 1


# calls from outside


def call(slug, content=b'{"n": 1}', *, secret=SECRET, age_s=0, **headers):
    """Path and arguments of a signed call."""
    stamp, nonce = str(int(time.time()) - age_s), uuid.uuid4().hex
    given = {
        "content-type": "application/json",
        "x-trigger-timestamp": stamp,
        "x-trigger-nonce": nonce,
        "x-detent-signature": signature(secret, stamp, nonce, content),
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in given.items() if value is not None}
    return f"/webhooks/{slug}", {"content": content, "headers": kept, "tenant": "", "key": ""}


def send(server, *args, **fields):
    path, more = call(*args, **fields)
    return server.post(path, **more)


def test_a_signed_call_starts_an_instance_without_any_key(server, tenant, name):
    slug = door(server, tenant, name, secret=SECRET)
    taken = send(server, slug)
    assert taken.status_code == 202, taken.text
    instance = taken.json()["instance_id"]
    assert taken.json() == {"instance_id": instance, "trigger": slug}
    shown = server.get(f"/instances/{instance}", tenant=tenant).json()
    assert shown["context"]["data"] == {"n": 1}
    assert shown["metadata"]["_trigger_event"] == {"source": "public_webhook"}
    path, more = call(slug)
    more["headers"]["x-orch8-signature"] = more["headers"].pop("x-detent-signature")
    assert server.post(path, **more).status_code == 202
    assert server.post(f"/api/v1{path}", **more).status_code == 404


def test_a_call_is_taken_once_also_when_many_bring_it_at_once(server, tenant, name):
    slug = door(server, tenant, name, secret=SECRET)
    path, more = call(slug)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: server.post(path, **more), range(8)))
    assert sorted(each.status_code for each in told) == [202, *[401] * 7]
    assert server.post(path, **more).status_code == 401
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 1


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (401, {"age_s": 301}),
        (401, {"age_s": -70}),
        (202, {"age_s": 290}),
        (202, {"age_s": -50}),
        (401, {"x_trigger_timestamp": None}),
        (401, {"x_trigger_timestamp": "soon"}),
        (401, {"x_trigger_nonce": None}),
        (401, {"x_trigger_nonce": "x" * 15}),
        (401, {"x_trigger_nonce": "x" * 129}),
        (401, {"x_detent_signature": None}),
        (401, {"x_detent_signature": "v1=AAAA"}),
        (401, {"secret": "another"}),
        (400, {"content": b"n=1"}),
        (400, {"content": b""}),
        (413, {"content": json.dumps("x" * limits.WEBHOOK_BYTES).encode()}),
    ],
)
def test_a_call_is_checked_in_every_way(server, tenant, name, status, fields):
    slug = door(server, tenant, name, secret=SECRET)
    answer = send(server, slug, **fields)
    assert answer.status_code == status, answer.text
    assert SECRET not in answer.text
    started = server.get("/instances", tenant=tenant).json()["items"]
    assert len(started) == (1 if status == 202 else 0)


def test_only_an_open_webhook_with_a_secret_takes_calls(server, tenant, name):
    bare = door(server, tenant, name)
    event = door(server, tenant, name, secret=SECRET, trigger_type="event")
    closed = door(server, tenant, name, secret=SECRET)
    server.patch(f"/triggers/{closed}", {"enabled": False}, tenant=tenant)
    told = [send(server, slug).status_code for slug in (bare, event, closed, "nothing")]
    assert told == [401, 404, 404, 404]
    assert server.get("/instances", tenant=tenant).json()["items"] == []


def test_a_start_that_was_lost_can_be_asked_for_again(server, tenant):
    given = sequence(server, tenant, blocks=[{"type": "step", "id": "s", "handler": "not_here"}])
    slug = door(server, tenant, given, secret=SECRET)
    path, more = call(slug)
    for _ in range(2):  # the nonce is used up, and still nothing was started
        refused = server.post(path, **more)
        assert (refused.status_code, refused.json()["code"]) == (400, "handler.unknown")
    server.sequence(tenant=tenant, name=given, version=2)
    assert server.post(path, **more).status_code == 202
    assert server.post(path, **more).status_code == 401


def test_a_peer_that_calls_too_often_is_held_up_before_anything_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOKS_PER_SECOND", 2)
    check = PeerRates.check  # as if all came within one second
    monkeypatch.setattr(PeerRates, "check", lambda self, *who: check(self, *who[:2], 0))
    with house(tmp_path / "s.db") as server:
        told = [send(server, "nothing") for _ in range(3)]
        assert [each.status_code for each in told] == [404, 404, 429]
        assert told[2].json()["code"] == "trigger.rate"
        assert send(server, "something").status_code == 404
