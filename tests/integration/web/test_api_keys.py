"""API keys over HTTP (contract §29), and what they open (§2)."""

from __future__ import annotations

import re
import uuid

import pytest

from detent.model import limits
from detent.service.api_keys import revoke_api_key
from detent.web.api import known_keys

pytestmark = pytest.mark.req("SEQ-OPS-1")


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def make(server, tenant, *capabilities, **fields):
    body = {"tenant_id": tenant, "capabilities": list(capabilities), **fields}
    made = server.post("/api-keys", body, tenant="")
    assert made.status_code == 201, made.text
    return made.json()


def test_a_key_is_made_listed_and_revoked_and_its_secret_is_shown_once(server, tenant):
    made = make(server, tenant, name="ci")
    assert re.fullmatch(r"ak_[0-9a-f]{32}", made["id"])
    assert made["secret"].startswith("sk_")
    assert (made["capabilities"], made["expires_at"]) == (["operator"], None)
    listing = f"/api-keys?tenant_id={tenant}"
    listed = server.get(listing, tenant="")
    assert made["secret"] not in listed.text
    row = listed.json()[0]
    assert row == {
        "id": made["id"],
        "tenant_id": tenant,
        "name": "ci",
        "capabilities": ["operator"],
        "created_at": made["created_at"],
        "last_used_at": None,
        "expires_at": None,
        "revoked": False,
    }
    assert server.delete(f"/api-keys/{made['id']}", tenant="").status_code == 204
    assert server.get(listing, tenant="").json()[0]["revoked"] is True
    assert server.delete("/api-keys/ak_nothing", tenant="").status_code == 404


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (422, {"tenant_id": None}),
        (400, {"tenant_id": ""}),
        (422, {"capabilities": ["everything"]}),
        (422, {"expires_at": "tomorrow"}),
        (400, {"name": "x" * 256}),
    ],
)
def test_a_key_that_is_wrong_is_refused(server, tenant, status, fields):
    body = {"tenant_id": tenant, **fields}
    assert server.post("/api-keys", body, tenant="").status_code == status
    assert server.post("/api-keys", {}, tenant="").status_code == 422
    assert server.get(f"/api-keys?tenant_id={tenant}", tenant="").json() == []


def test_only_the_root_key_deals_with_keys(server, tenant):
    made = make(server, tenant, "operator", "auditor")
    for answer in (
        server.post("/api-keys", {"tenant_id": tenant}, tenant="", key=made["secret"]),
        server.get("/api-keys", tenant="", key=made["secret"]),
        server.delete(f"/api-keys/{made['id']}", tenant="", key=made["secret"]),
    ):
        assert answer.status_code == 403
        assert "API key management requires the root API key" in answer.text
    assert [each["revoked"] for each in listed(server, tenant)] == [False]


def listed(server, tenant):
    return server.get(f"/api-keys?tenant_id={tenant}", tenant="").json()


def test_a_key_speaks_for_its_tenant_and_for_no_other(server, tenant):
    sequence = server.sequence(tenant=tenant)
    secret = make(server, tenant)["secret"]
    for headers in ({}, {"x-tenant-id": tenant}):
        shown = server.get(f"/sequences/{sequence}", tenant="", key=secret, headers=headers)
        assert shown.status_code == 200
    foreign = server.get(f"/sequences/{sequence}", tenant="other", key=secret)
    assert (foreign.status_code, foreign.content) == (403, b"")
    bearer = {"authorization": f"Bearer {secret}"}
    assert server.get("/sequences", tenant="", key="", headers=bearer).status_code == 200
    other = server.sequence(tenant="other")
    assert server.get(f"/sequences/{other}", tenant="", key=secret).status_code == 404


@pytest.mark.parametrize(
    ("capability", "opened", "closed"),
    [
        ("operator", [("GET", "/instances"), ("POST", "/sessions")], []),
        ("auditor", [("GET", "/instances"), ("GET", "/credentials")], [("POST", "/sessions")]),
        ("publisher", [("GET", "/sequences"), ("POST", "/sequences")], [("GET", "/instances")]),
        (
            "approver",
            [("GET", "/approvals"), ("POST", f"/instances/{uuid.uuid4()}/signals")],
            [("GET", "/instances"), ("POST", f"/instances/{uuid.uuid4()}/retry")],
        ),
        (
            "worker",
            [
                ("POST", "/workers/tasks/poll"),
                ("POST", f"/workers/tasks/{uuid.uuid4()}/complete"),
                ("GET", "/workers/tasks/stats"),
                ("GET", "/workers"),
                ("GET", "/handlers"),
            ],
            [("GET", "/instances"), ("GET", "/approvals"), ("GET", "/sequences")],
        ),
        ("device", [], [("GET", "/instances"), ("GET", "/sequences")]),
    ],
)
def test_a_key_opens_what_its_capability_says(server, tenant, capability, opened, closed):
    secret = make(server, tenant, capability)["secret"]
    for method, path in opened:
        for prefix in ("", "/api/v1"):
            body = {} if method == "POST" else None
            answer = server.call(method, prefix + path, body, tenant="", key=secret)
            assert answer.status_code not in (401, 403), (path, answer.status_code)
    for method, path in closed:
        answer = server.call(method, path, tenant="", key=secret)
        assert (answer.status_code, answer.content) == (403, b""), path


def test_an_expired_key_lets_nobody_in(server, tenant):
    old = make(server, tenant, expires_at="2020-01-01T00:00:00Z")
    answer = server.get("/instances", tenant="", key=old["secret"])
    assert (answer.status_code, answer.content) == (401, b"")
    later = make(server, tenant, expires_at="2100-01-01T01:00:00+01:00")
    assert later["expires_at"] == "2100-01-01T00:00:00Z"
    assert server.get("/instances", tenant="", key=later["secret"]).status_code == 200


def test_a_revoked_key_is_refused_at_once(server, tenant):
    made = make(server, tenant)
    for _ in range(2):
        assert server.get("/instances", tenant="", key=made["secret"]).status_code == 200
    assert server.delete(f"/api-keys/{made['id']}", tenant="").status_code == 204
    assert server.get("/instances", tenant="", key=made["secret"]).status_code == 401


def test_a_key_that_another_process_revokes_is_refused_after_a_few_seconds(
    server, tenant, monkeypatch
):
    made = make(server, tenant)
    now = [1_000.0]
    monkeypatch.setattr(known_keys.time, "monotonic", lambda: now[0])
    call = lambda: server.get("/instances", tenant="", key=made["secret"]).status_code  # noqa: E731
    assert call() == 200
    server.engine._parts.write(lambda store: revoke_api_key(store, None, made["id"], 0))
    assert call() == 200  # nobody asks the store
    now[0] += limits.API_KEY_FRESH_MS / 1000
    assert call() == 401


def test_the_last_use_is_written_without_delay_and_not_each_time(server, tenant):
    made = make(server, tenant)
    assert server.get("/instances", tenant="", key=made["secret"]).status_code == 200
    while (used := listed(server, tenant)[0]["last_used_at"]) is None:
        pass
    record = server.engine._parts.read(lambda store: store.record("api_key", made["id"]))
    for _ in range(20):
        server.get("/instances", tenant="", key=made["secret"])
    # Catalogue writes keep their order, so that what was to be written by now is written.
    server.put("/rate-limits/k", {"max_count": 1, "window_ms": 1}, tenant=tenant)
    server.post("/sessions", {"tenant_id": tenant, "session_key": "k"}, tenant=tenant)
    assert listed(server, tenant)[0]["last_used_at"] == used
    again = server.engine._parts.read(lambda store: store.record("api_key", made["id"]))
    assert again.rev == record.rev
