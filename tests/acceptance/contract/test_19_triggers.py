"""Triggers and inbound webhooks (contract §19)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid

import pytest

from tests.integration.web.house import sequence_body, step

pytestmark = pytest.mark.contract("19")

SECRET = "hush-hush"


def fresh():
    return f"t-{uuid.uuid4().hex}"


@pytest.fixture
def name(server):
    made = f"seq-{uuid.uuid4().hex[:8]}"
    server.sequence(step("s", "transform", params={"got": "{{context.data}}"}), name=made)
    return made


def trigger(server, name, **fields):
    body = {"slug": fresh(), "sequence_name": name, "tenant_id": "acme", **fields}
    made = server.post("/triggers", body)
    assert made.status_code == 201, made.text
    return made.json()


# the object --------------------------------------------------------------------------------------


def test_a_trigger_has_every_field_and_its_defaults(server, name):
    made = trigger(server, name)
    assert set(made) == {
        "slug",
        "sequence_name",
        "tenant_id",
        "namespace",
        "enabled",
        "trigger_type",
        "config",
        "created_at",
        "updated_at",
    }
    assert (made["namespace"], made["enabled"], made["trigger_type"]) == (
        "default",
        True,
        "webhook",
    )
    full = trigger(server, name, secret=SECRET, version=1, config={"a": 1}, trigger_type="event")
    assert (full["secret"], full["version"], full["config"]) == ("[REDACTED]", 1, {"a": 1})


@pytest.mark.parametrize("kind", ["webhook", "event", "nats", "file_watch", "activepieces_poll"])
def test_every_type_is_taken(server, name, kind):
    assert trigger(server, name, trigger_type=kind)["trigger_type"] == kind


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"slug": None}, 422),
        ({"sequence_name": None}, 422),
        ({"tenant_id": None}, 422),
        ({"slug": ""}, 400),
        ({"sequence_name": ""}, 400),
        ({"slug": "x" * 256}, 400),
        ({"sequence_name": "x" * 256}, 400),
        ({"secret": ""}, 400),
        ({"sequence_name": "nobody-has-it"}, 404),
        ({"trigger_type": "magic"}, 422),
        ({"version": "new"}, 422),
    ],
)
def test_what_cannot_be_is_refused(server, name, change, status):
    body = {"slug": fresh(), "sequence_name": name, "tenant_id": "acme"} | change
    body = {key: value for key, value in body.items() if value is not None}
    assert server.post("/triggers", body).status_code == status


def test_slugs_are_global(server, name, tenant):
    slug = trigger(server, name)["slug"]
    assert (
        server.post(
            "/triggers", {"slug": slug, "sequence_name": name, "tenant_id": "acme"}
        ).status_code
        == 409
    )
    body = sequence_body(tenant_id=tenant)
    server.post("/sequences", body, tenant=tenant)
    other = {"slug": slug, "sequence_name": body["name"], "tenant_id": tenant}
    assert server.post("/triggers", other, tenant=tenant).status_code == 409


def test_a_trigger_is_listed_shown_and_removed(server, tenant):
    body = sequence_body(tenant_id=tenant)
    server.post("/sequences", body, tenant=tenant)
    slugs = [fresh() for _ in range(3)]
    for slug in slugs:
        new = {"slug": slug, "sequence_name": body["name"], "tenant_id": tenant}
        server.post("/triggers", new, tenant=tenant)
    listed = server.get("/triggers", tenant=tenant).json()
    assert {row["slug"] for row in listed} == set(slugs)
    assert len(server.get("/triggers?limit=2", tenant=tenant).json()) == 2
    assert server.get(f"/triggers/{slugs[0]}", tenant=tenant).json() in listed
    assert server.delete(f"/triggers/{slugs[0]}", tenant=tenant).status_code == 204
    for method in ("GET", "DELETE"):
        assert server.call(method, f"/triggers/{slugs[0]}", tenant=tenant).status_code == 404


def test_without_a_tenant_a_trigger_can_be_read_by_its_slug(open_server):
    body = sequence_body(tenant_id="somebody")
    open_server.post("/sequences", body, tenant=None)
    new = {"slug": fresh(), "sequence_name": body["name"], "tenant_id": "somebody"}
    assert open_server.post("/triggers", new, tenant=None).status_code == 201
    assert open_server.get(f"/triggers/{new['slug']}", tenant=None).status_code == 200
    assert open_server.get(f"/triggers/{new['slug']}", tenant="other").status_code == 404


# firing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [{"a": 1}, [1, 2], "text", 5])
def test_a_fire_starts_an_instance_with_the_body_as_its_data(server, name, data):
    slug = trigger(server, name)["slug"]
    answer = server.post(f"/triggers/{slug}/fire", json=data)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert set(told) == {"instance_id", "trigger", "sequence_name"}
    assert (told["trigger"], told["sequence_name"]) == (slug, name)
    server.settle(told["instance_id"])
    shown = server.shown(told["instance_id"])
    assert shown["context"]["data"] == data
    assert (shown["priority"], shown["timezone"]) == ("Normal", "UTC")
    meta = shown["metadata"]
    assert (meta["_trigger"], meta["_trigger_type"]) == (slug, "webhook")
    assert meta["_trigger_event"]["source"] == "http_fire"


def test_a_secret_is_asked_for(server, name):
    slug = trigger(server, name, secret=SECRET)["slug"]
    path = f"/triggers/{slug}/fire"
    for headers in ({}, {"x-trigger-secret": "wrong"}, {"x-trigger-secret": ""}):
        answer = server.post(path, {}, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"].startswith("unauthorized")
    assert server.post(path, {}, headers={"x-trigger-secret": SECRET}).status_code == 201


def test_a_closed_or_unknown_door_lets_nobody_in(server, name):
    slug = trigger(server, name)["slug"]
    assert server.patch(f"/triggers/{slug}", {"enabled": False}).status_code == 200
    assert server.post(f"/triggers/{slug}/fire", {}).status_code == 400
    assert server.post("/triggers/nobody-here/fire", {}).status_code == 404


def test_the_version_is_found_when_it_fires(server):
    name = f"seq-{uuid.uuid4().hex[:8]}"
    server.sequence(step("one"), name=name, version=1)
    pinned = trigger(server, name, version=1)["slug"]
    latest = trigger(server, name)["slug"]
    second = server.sequence(step("two"), name=name, version=2)

    def fired(slug):
        instance = server.post(f"/triggers/{slug}/fire", {}).json()["instance_id"]
        server.settle(instance)
        return [block for block, _ in server.outputs(instance)]

    assert (fired(pinned), fired(latest)) == (["one"], ["two"])
    server.post(f"/sequences/{second}/deprecate")
    assert fired(latest) == ["one"]


# signed calls ------------------------------------------------------------------------------------


def signed(body, secret=SECRET, *, at=None, nonce=None, header="x-orch8-signature"):
    stamp = str(int(time.time() if at is None else at))
    nonce = uuid.uuid4().hex if nonce is None else nonce
    digest = hmac.new(secret.encode(), f"{stamp}.{nonce}.".encode() + body, hashlib.sha256)
    mark = base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
    return {"x-trigger-timestamp": stamp, "x-trigger-nonce": nonce, header: f"v1={mark}"}


def call(server, slug, body, headers):
    return server.http.post(f"/webhooks/{slug}", content=body, headers=headers)


@pytest.fixture
def door(server, name):
    return trigger(server, name, secret=SECRET)["slug"]


@pytest.mark.parametrize("header", ["x-orch8-signature", "x-detent-signature"])
def test_a_signed_call_starts_an_instance(server, door, header):
    body = json.dumps({"n": 1}).encode()
    answer = call(server, door, body, signed(body, header=header))
    assert answer.status_code == 202, answer.text
    assert set(answer.json()) == {"instance_id", "trigger"}
    assert answer.json()["trigger"] == door
    shown = server.shown(answer.json()["instance_id"])
    assert shown["context"]["data"] == {"n": 1}
    assert shown["metadata"]["_trigger_event"]["source"] == "public_webhook"


def refused(answer, status=401):
    assert answer.status_code == status, answer.text


def test_a_call_that_is_old_early_or_not_dated_is_refused(server, door):
    now = time.time()
    for at in (now - 310, now + 70):
        refused(call(server, door, b"{}", signed(b"{}", at=at)))
    for at in (now - 280, now + 50):
        assert call(server, door, b"{}", signed(b"{}", at=at)).status_code == 202
    for stamp in ("", "soon", "-5", "1e9"):
        refused(call(server, door, b"{}", signed(b"{}") | {"x-trigger-timestamp": stamp}))
    headers = signed(b"{}")
    del headers["x-trigger-timestamp"]
    refused(call(server, door, b"{}", headers))


@pytest.mark.parametrize("nonce", ["", "short", "x" * 15, "x" * 129, "with space and more"])
def test_a_bad_nonce_is_refused(server, door, nonce):
    refused(call(server, door, b"{}", signed(b"{}", nonce=nonce)))


def test_a_nonce_is_used_once_for_each_door(server, name, door):
    headers = signed(b"{}", nonce="n" * 16 + uuid.uuid4().hex)
    assert call(server, door, b"{}", headers).status_code == 202
    refused(call(server, door, b"{}", headers))
    other = trigger(server, name, secret=SECRET)["slug"]
    assert call(server, other, b"{}", headers).status_code == 202


def test_a_wrong_signature_is_refused(server, door):
    good = signed(b"{}")
    refused(call(server, door, b'{"a":1}', good))
    refused(call(server, door, b"{}", signed(b"{}", "other")))
    mark = good["x-orch8-signature"]
    for wrong in ("", mark[3:], f"v2={mark[3:]}", f"{mark}=", mark.upper()):
        refused(call(server, door, b"{}", good | {"x-orch8-signature": wrong}))


def test_a_door_without_a_secret_or_of_another_type_or_closed_is_none(server, name):
    bare = trigger(server, name)["slug"]
    refused(call(server, bare, b"{}", signed(b"{}")))
    event = trigger(server, name, secret=SECRET, trigger_type="event")["slug"]
    refused(call(server, event, b"{}", signed(b"{}")), 404)
    closed = trigger(server, name, secret=SECRET)["slug"]
    server.patch(f"/triggers/{closed}", {"enabled": False})
    refused(call(server, closed, b"{}", signed(b"{}")), 404)
    refused(call(server, "nobody-here", b"{}", signed(b"{}")), 404)


def test_a_signed_body_that_is_no_json_is_400(server, door):
    refused(call(server, door, b"{", signed(b"{")), 400)
