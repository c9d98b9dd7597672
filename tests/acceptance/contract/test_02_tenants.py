"""Authentication, tenants and namespaces (contract §2)."""

from __future__ import annotations

import uuid

import pytest

from detent.web.api.settings import ApiSettings
from tests.integration.web.house import ROOT, house, instance_body, sequence_body, step

pytestmark = pytest.mark.contract("2")

WAIT = {"type": "wait", "id": "w", "signal": "x"}


@pytest.fixture(scope="module")
def lax(tmp_path_factory):
    """A server with a key that asks for no tenant."""
    settings = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path_factory.mktemp("lax") / "s.db", api=settings, workers=True) as made:
        yield made


def other_tenants_key(server, tenant, **fields):
    body = {"tenant_id": tenant, **fields}
    made = server.post("/api-keys", body, tenant=None)
    assert made.status_code == 201, made.text
    return made.json()


# who is let in -----------------------------------------------------------------------------------


def test_the_key_is_asked_for_before_the_tenant(server):
    assert server.get("/instances", key=None, tenant=None).status_code == 401
    assert server.get("/instances", tenant=None).status_code == 400
    assert server.get("/instances").status_code == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/info"])
def test_these_are_public(server, path):
    assert server.get(path, key=None, tenant=None).status_code == 200


def test_a_signed_call_needs_no_key(server):
    answer = server.post("/webhooks/nobody-here", {}, key=None, tenant=None)
    assert answer.status_code == 404  # not 401: there is no such trigger


def test_metrics_and_the_description_need_a_key(server):
    assert server.get("/metrics", key=None, tenant=None).status_code == 401
    assert server.get("/metrics", tenant=None).status_code == 200


def test_without_a_key_every_caller_is_the_operator(open_server):
    assert open_server.get("/api-keys", key=None, tenant=None).status_code == 200


def test_a_tenants_key_is_fixed_to_its_tenant(server, tenant):
    key = other_tenants_key(server, tenant)["secret"]
    mine = server.sequence(tenant=tenant)
    assert server.get(f"/sequences/{mine}", key=key, tenant=None).status_code == 200
    assert server.get(f"/sequences/{mine}", key=key, tenant=tenant).status_code == 200
    answer = server.get(f"/sequences/{mine}", key=key, tenant="acme")
    assert (answer.status_code, answer.content) == (403, b"")


def test_a_key_that_is_revoked_or_over_is_401(server, tenant):
    gone = other_tenants_key(server, tenant)
    assert server.delete(f"/api-keys/{gone['id']}", tenant=None).status_code == 204
    over = other_tenants_key(server, tenant, expires_at="2020-01-01T00:00:00Z")
    for key in (gone, over):
        answer = server.get("/instances", key=key["secret"], tenant=None)
        assert (answer.status_code, answer.content) == (401, b"")


# creating ----------------------------------------------------------------------------------------


def creations(tenant, sequence):
    """Everything that is created with a tenant in its body."""
    id = uuid.uuid4().hex
    return {
        "/sequences": sequence_body(tenant_id=tenant),
        "/instances": instance_body(sequence["id"], tenant_id=tenant),
        "/sessions": {"tenant_id": tenant, "session_key": id},
        "/pools": {"tenant_id": tenant, "name": id},
        "/credentials": {"id": id, "name": "n", "value": "v", "tenant_id": tenant},
        "/triggers": {"slug": id, "sequence_name": sequence["name"], "tenant_id": tenant},
        "/cron": {
            "tenant_id": tenant,
            "namespace": "default",
            "sequence_id": sequence["id"],
            "cron_expr": "0 0 1 1 *",
        },
        "/events": {
            "tenant_id": tenant,
            "event_name": "e",
            "producer_event_id": id,
            "correlation_key": id,
        },
    }


def stored(server, tenant, **fields):
    body = sequence_body(tenant_id=tenant, **fields)
    assert server.post("/sequences", body, tenant=tenant).status_code == 201
    return body


def test_a_body_that_names_another_tenant_than_the_header_is_403(server, tenant):
    sequence = stored(server, tenant)
    for path, body in creations(tenant, sequence).items():
        answer = server.post(path, body, tenant="somebody-else")
        assert answer.status_code == 403, (path, answer.text)
        assert answer.json()["error"].startswith("forbidden: ")
        assert server.post(path, body, tenant=tenant).status_code in (200, 201), path


def test_without_a_header_the_body_names_the_tenant(lax, tenant):
    sequence = stored(lax, tenant)
    for path, body in creations(tenant, sequence).items():
        answer = lax.post(path, body, tenant=None)
        assert answer.status_code in (200, 201), (path, answer.text)
    shown = lax.get("/instances", tenant=None, params={"tenant_id": tenant}).json()["items"]
    assert [each["tenant_id"] for each in shown] == [tenant]


def test_with_neither_it_is_the_default_tenant(lax):
    made = lax.post("/pools", {"name": uuid.uuid4().hex, "tenant_id": ""}, tenant=None)
    assert (made.status_code, made.json()["tenant_id"]) == (201, "default")


@pytest.mark.parametrize("path", ["/sequences", "/instances", "/events", "/triggers", "/sessions"])
def test_an_empty_tenant_in_a_body_is_a_refusal_or_the_callers_own(server, tenant, path):
    sequence = stored(server, tenant)
    body = creations(tenant, sequence)[path] | {"tenant_id": ""}
    answer = server.post(path, body, tenant=tenant)
    assert answer.status_code in (200, 201, 400, 403, 422), answer.text


# one object --------------------------------------------------------------------------------------


def belongings(server, tenant):
    """One of each, with the calls that look at, change or remove it."""
    sequence = stored(server, tenant, blocks=[WAIT])
    made = {}
    for path, body in creations(tenant, sequence).items():
        answer = server.post(path, body, tenant=tenant)
        assert answer.status_code == 201, (path, answer.text)
        made[path] = body.get("slug") or answer.json().get("id") or answer.json().get("event_id")
    instance = made["/instances"]
    return [
        ("GET", f"/sequences/{sequence['id']}", None),
        ("POST", f"/sequences/{sequence['id']}/deprecate", None),
        ("POST", f"/sequences/{sequence['id']}/status", {"status": "unpublished"}),
        ("GET", f"/sequences/{sequence['id']}/preflight", None),
        ("GET", f"/instances/{instance}", None),
        ("GET", f"/instances/{instance}/outputs", None),
        ("GET", f"/instances/{instance}/tree", None),
        ("GET", f"/instances/{instance}/audit", None),
        ("GET", f"/instances/{instance}/logs", None),
        ("GET", f"/instances/{instance}/timeline", None),
        ("GET", f"/instances/{instance}/effects", None),
        ("GET", f"/instances/{instance}/children", None),
        ("GET", f"/instances/{instance}/stream", None),
        ("GET", f"/instances/{instance}/checkpoints", None),
        ("POST", f"/instances/{instance}/checkpoints", {"checkpoint_data": 1}),
        ("PATCH", f"/instances/{instance}/state", {"state": "paused"}),
        ("PATCH", f"/instances/{instance}/context", {"context": {}}),
        ("POST", f"/instances/{instance}/retry", None),
        ("POST", f"/instances/{instance}/signals", {"signal_type": "pause"}),
        ("POST", f"/instances/{instance}/inject-blocks", {"blocks": [step("x")]}),
        ("POST", f"/instances/{instance}/fork", {"from_block_id": "w"}),
        ("POST", f"/instances/{instance}/resume-from/w", None),
        ("GET", f"/sessions/{made['/sessions']}", None),
        ("PATCH", f"/sessions/{made['/sessions']}/data", {"data": 1}),
        ("GET", f"/pools/{made['/pools']}", None),
        ("DELETE", f"/pools/{made['/pools']}", None),
        ("GET", f"/credentials/{made['/credentials']}", None),
        ("PATCH", f"/credentials/{made['/credentials']}", {"name": "x"}),
        ("DELETE", f"/credentials/{made['/credentials']}", None),
        ("GET", f"/triggers/{made['/triggers']}", None),
        ("POST", f"/triggers/{made['/triggers']}/fire", {}),
        ("DELETE", f"/triggers/{made['/triggers']}", None),
        ("GET", f"/cron/{made['/cron']}", None),
        ("PUT", f"/cron/{made['/cron']}", {"enabled": False}),
        ("DELETE", f"/cron/{made['/cron']}", None),
        ("GET", f"/events/{made['/events']}", None),
        ("DELETE", f"/sequences/{sequence['id']}", None),
    ]


def test_an_object_of_another_tenant_does_not_exist(server, tenant):
    for method, path, body in belongings(server, tenant):
        answer = server.call(method, path, body, tenant="somebody-else")
        assert answer.status_code == 404, (method, path, answer.text)


def test_without_a_tenant_every_id_can_be_read(lax, tenant):
    for method, path, _body in belongings(lax, tenant):
        if method != "GET" or path.endswith("/stream"):
            continue
        answer = lax.get(path, tenant=None)
        assert answer.status_code == 200, (path, answer.text)


# lists -------------------------------------------------------------------------------------------


LISTS = ["/sequences", "/instances", "/instances/dlq", "/triggers", "/credentials", "/cron"]


def tenants_of(answer):
    found = answer.json()
    rows = found["items"] if isinstance(found, dict) else found
    return {row["tenant_id"] for row in rows}


def broken(server, tenant):
    """A tenant with one of each, one instance of it failed."""
    belongings(server, tenant)
    sequence = stored(server, tenant, blocks=[step("f", "fail")])
    made = server.post("/instances", instance_body(sequence["id"], tenant_id=tenant), tenant=tenant)
    server.settle(made.json()["id"])


@pytest.mark.parametrize("path", LISTS)
def test_the_callers_tenant_overrides_the_one_that_is_asked_for(lax, path):
    mine, other = (f"t-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for each in (mine, other):
        broken(lax, each)
    assert tenants_of(lax.get(path, tenant=mine, params={"tenant_id": other})) == {mine}
    assert tenants_of(lax.get(path, tenant=None, params={"tenant_id": other})) == {other}
    assert {mine, other} <= tenants_of(lax.get(path, tenant=None, params={"limit": 1000}))


def test_what_cannot_be_done_for_all_at_once_needs_a_tenant(lax):
    filtered = {"filter": {}}
    refused = [
        lax.patch("/instances/bulk/state", {**filtered, "state": "paused"}, tenant=None),
        lax.patch("/instances/bulk/reschedule", {**filtered, "offset_secs": 1}, tenant=None),
        lax.post("/instances/batch-action", {**filtered, "action": "pause"}, tenant=None),
        lax.get("/changes", tenant=None),
        lax.get("/events", tenant=None),
    ]
    for answer in refused:
        assert answer.status_code == 400, answer.url
        assert "tenant" in answer.text
    assert lax.get("/pools", tenant=None).json() == []


# other tenants' sequences ------------------------------------------------------------------------


def test_a_start_of_another_tenants_sequence_finds_none_and_a_batch_is_forbidden(server, tenant):
    foreign = stored(server, "owner-of-it")["id"]
    body = instance_body(foreign, tenant_id=tenant)
    assert server.post("/instances", body, tenant=tenant).status_code == 404
    batch = {"instances": [body]}
    assert server.post("/instances/batch", batch, tenant=tenant).status_code == 403


def test_schedules_triggers_and_migrations_stay_within_a_tenant(server, tenant):
    foreign = stored(server, "owner-of-it")
    own = creations(tenant, foreign)
    assert server.post("/cron", own["/cron"], tenant=tenant).status_code == 403
    assert server.post("/triggers", own["/triggers"], tenant=tenant).status_code == 404
    instance = server.instance(server.sequence(WAIT, tenant=tenant), tenant=tenant)
    body = {"instance_id": instance, "target_sequence_id": foreign["id"]}
    assert server.post("/sequences/migrate-instance", body, tenant=tenant).status_code == 403


# namespaces --------------------------------------------------------------------------------------


def test_a_namespace_is_part_of_the_identity_and_a_filter(server, tenant):
    first = stored(server, tenant, namespace="one")
    twin = first | {"id": str(uuid.uuid4()), "namespace": "two"}
    assert server.post("/sequences", twin, tenant=tenant).status_code == 201
    listed = server.get("/sequences?namespace=two", tenant=tenant).json()["items"]
    assert [row["id"] for row in listed] == [twin["id"]]
    body = instance_body(first["id"], tenant_id=tenant, namespace="one")
    made = server.post("/instances", body, tenant=tenant).json()["id"]
    found = server.get("/instances?namespace=one", tenant=tenant).json()["items"]
    assert [row["id"] for row in found] == [made]
    assert server.get("/instances?namespace=two", tenant=tenant).json()["items"] == []


def test_a_namespace_is_needed_on_instances_and_default_on_triggers(server, tenant):
    sequence = stored(server, tenant)
    body = instance_body(sequence["id"], tenant_id=tenant)
    del body["namespace"]
    assert server.post("/instances", body, tenant=tenant).status_code == 422
    blank = instance_body(sequence["id"], tenant_id=tenant, namespace=" ")
    assert server.post("/instances", blank, tenant=tenant).status_code == 400
    made = server.post("/triggers", creations(tenant, sequence)["/triggers"], tenant=tenant)
    assert made.json()["namespace"] == "default"
