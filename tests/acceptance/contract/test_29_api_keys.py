"""API keys (contract §29)."""

from __future__ import annotations

import re
import uuid

import pytest

from tests.integration.web.house import sequence_body

pytestmark = pytest.mark.contract("29")


def make(server, tenant, **fields):
    return server.post("/api-keys", {"tenant_id": tenant, **fields}, tenant=None)


def test_a_key_has_every_field_and_shows_its_secret_once(server, tenant):
    answer = make(server, tenant)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert set(made) == {
        "id",
        "tenant_id",
        "name",
        "capabilities",
        "secret",
        "created_at",
        "expires_at",
    }
    assert re.fullmatch(r"ak_[0-9a-f]{32}", made["id"])
    assert made["secret"].startswith("sk_")
    assert (made["name"], made["capabilities"], made["expires_at"]) == ("", ["operator"], None)
    (row,) = server.get(f"/api-keys?tenant_id={tenant}", tenant=None).json()
    assert set(row) == {
        "id",
        "tenant_id",
        "name",
        "capabilities",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked",
    }
    assert made["secret"] not in str(row)
    assert (row["revoked"], row["last_used_at"]) == (False, None)


def test_a_key_is_revoked_once(server, tenant):
    made = make(server, tenant).json()
    assert server.delete(f"/api-keys/{made['id']}", tenant=None).status_code == 204
    (row,) = server.get(f"/api-keys?tenant_id={tenant}", tenant=None).json()
    assert row["revoked"] is True
    assert server.delete("/api-keys/ak_nobody", tenant=None).status_code == 404


def test_only_the_root_deals_with_keys(server, tenant):
    secret = make(server, tenant).json()["secret"]
    for answer in (
        server.get("/api-keys", key=secret, tenant=None),
        server.post("/api-keys", {"tenant_id": tenant}, key=secret, tenant=None),
        server.delete("/api-keys/ak_x", key=secret, tenant=None),
    ):
        assert answer.status_code == 403
        assert "API key management requires the root API key" in answer.text


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"tenant_id": ""}, 400), ({"capabilities": ["magic"]}, 400), ({"expires_at": "soon"}, 422)],
)
def test_what_cannot_be_is_refused(server, tenant, fields, status):
    assert make(server, tenant, **fields).status_code in (status, 400, 422)


CALLS = {
    "sequence": ("POST", "/sequences"),
    "sequences": ("GET", "/sequences"),
    "instances": ("GET", "/instances"),
    "start": ("POST", "/instances"),
    "poll": ("POST", "/workers/tasks/poll"),
    "handlers": ("GET", "/handlers"),
    "approvals": ("GET", "/approvals"),
    "signal": ("POST", "/instances/00000000-0000-7000-8000-000000000000/signals"),
    "credential": ("POST", "/credentials"),
}
OPENS = {
    "operator": set(CALLS),
    "worker": {"poll", "handlers"},
    "publisher": {"sequence", "sequences"},
    "approver": {"approvals", "signal"},
    "auditor": {"sequences", "instances", "handlers", "approvals"},
    "device": set(),
}


@pytest.mark.parametrize("capability", OPENS)
def test_a_capability_opens_what_it_should_and_nothing_else(server, tenant, capability):
    secret = make(server, tenant, capabilities=[capability]).json()["secret"]
    for name, (method, path) in CALLS.items():
        body = {"nothing": 1} if method == "POST" else None
        answer = server.call(method, path, body, key=secret, tenant=None)
        if name in OPENS[capability]:
            assert answer.status_code not in (401, 403), (name, answer.text)
        else:
            assert (answer.status_code, answer.content) == (403, b""), name


def test_capabilities_add_up(server, tenant):
    both = make(server, tenant, capabilities=["worker", "publisher"]).json()["secret"]
    body = sequence_body(tenant_id=tenant)
    assert server.post("/sequences", body, key=both, tenant=None).status_code == 201
    poll = {"handler_name": uuid.uuid4().hex, "worker_id": "w"}
    assert server.post("/workers/tasks/poll", poll, key=both, tenant=None).json() == []
    assert server.get("/instances", key=both, tenant=None).status_code == 403
