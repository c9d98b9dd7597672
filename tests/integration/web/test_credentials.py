"""Credentials over HTTP (contract §26)."""

from __future__ import annotations

import uuid

import pytest

from detent.web.api.settings import ApiSettings
from tests.integration.web.house import ROOT, house

pytestmark = pytest.mark.req("SEQ-HND-5")
SECRET = "s3cret-s3cret"


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def body(**fields):
    return {"id": f"c-{uuid.uuid4().hex}", "name": "Mail", "value": SECRET, **fields}


def oauth(**fields):
    return body(
        kind="oauth2",
        refresh_url="https://auth.example.com/token",
        refresh_token=SECRET + "-token",
        expires_at="2030-01-01T02:00:00+02:00",
        **fields,
    )


def test_a_credential_is_made_shown_listed_changed_and_removed_without_its_secrets(server, tenant):
    made = server.post("/credentials", oauth(description="d"), tenant=tenant)
    assert made.status_code == 201, made.text
    shown = made.json()
    path = f"/credentials/{shown['id']}"
    assert shown == {
        "id": shown["id"],
        "tenant_id": tenant,
        "name": "Mail",
        "kind": "oauth2",
        "enabled": True,
        "has_refresh_token": True,
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
        "expires_at": "2030-01-01T00:00:00Z",
        "refresh_url": "https://auth.example.com/token",
        "description": "d",
    }
    assert server.get(path, tenant=tenant).json() == shown
    assert server.get("/credentials", tenant=tenant).json() == [shown]
    change = {"name": "Other", "enabled": False, "value": "an0ther", "description": None}
    changed = server.patch(path, change, tenant=tenant)
    assert changed.status_code == 200, changed.text
    assert (changed.json()["name"], changed.json()["enabled"]) == ("Other", False)
    assert "description" not in changed.json()
    moved = server.patch(path, {"expires_at": "2031-01-01T00:00:00+01:00"}, tenant=tenant)
    assert moved.json()["expires_at"] == "2030-12-31T23:00:00Z"
    for answer in (made, changed, moved, server.get(path, tenant=tenant)):
        assert SECRET not in answer.text
    assert server.delete(path, tenant=tenant).status_code == 204
    for gone in (server.get, server.delete):
        assert gone(path, tenant=tenant).status_code == 404
    assert server.patch(path, {}, tenant=tenant).status_code == 404


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (400, {"id": ""}),
        (400, {"name": ""}),
        (400, {"value": ""}),
        (400, {"id": "x" * 256}),
        (400, {"id": "a/b"}),
        (400, {"id": "ümlaut"}),
        (400, {"kind": "oauth2", "refresh_url": "https://auth.example.com"}),
        (400, {"refresh_url": "http://127.0.0.1/token"}),
        (400, {"refresh_url": "http://10.0.0.1/token"}),
        (413, {"value": "x" * (256 * 1024 + 1)}),
        (422, {"kind": "password"}),
        (422, {"value": 7}),
        (422, {"value": None}),
        (422, {"expires_at": "2030-01-01T00:00:00"}),
        (403, {"tenant_id": "somebody-else"}),
    ],
)
def test_a_credential_that_is_wrong_is_refused(server, tenant, status, fields):
    answer = server.post("/credentials", body(**fields), tenant=tenant)
    assert answer.status_code == status, answer.text
    assert SECRET not in answer.text
    assert server.get("/credentials", tenant=tenant).json() == []


@pytest.mark.parametrize("missing", ["id", "name", "value"])
def test_a_missing_field_cannot_be_read(server, tenant, missing):
    given = body()
    del given[missing]
    assert server.post("/credentials", given, tenant=tenant).status_code == 422


def test_ids_are_the_same_for_all_and_what_is_another_tenants_is_not_there(server, tenant):
    made = body()
    path = f"/credentials/{made['id']}"
    assert server.post("/credentials", made, tenant=tenant).status_code == 201
    again = server.post("/credentials", made, tenant="other")
    assert (again.status_code, again.json()["code"]) == (409, "credential.exists")
    assert again.json()["error"].startswith("already exists: ")
    assert server.get(path, tenant="other").status_code == 404
    assert server.patch(path, {"name": "mine"}, tenant="other").status_code == 404
    assert server.delete(path, tenant="other").status_code == 404
    listed = server.get(f"/credentials?tenant_id={tenant}", tenant="other").json()
    assert made["id"] not in [each["id"] for each in listed]
    assert server.get(path, tenant=tenant).json()["name"] == "Mail"


def test_the_operator_makes_global_ones_that_tenants_see_and_cannot_change(tmp_path):
    lax = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=lax) as server:
        made = server.post("/credentials", body(), tenant="").json()
        path = f"/credentials/{made['id']}"
        assert made["tenant_id"] == ""
        assert server.get(path, tenant="acme").status_code == 200
        assert [each["id"] for each in server.get("/credentials").json()] == [made["id"]]
        assert server.patch(path, {"enabled": False}, tenant="acme").status_code == 404
        assert server.delete(path, tenant="acme").status_code == 404
        assert server.patch(path, {"enabled": False}, tenant="").status_code == 200
        own = server.post("/credentials", body(tenant_id="acme"), tenant="").json()
        assert own["tenant_id"] == "acme"
        assert server.get(f"/credentials/{own['id']}", tenant="").status_code == 200


def test_without_a_vault_no_secret_is_taken(tmp_path):
    with house(tmp_path / "s.db", vault_key=None) as server:
        answer = server.post("/credentials", body())
        assert (answer.status_code, answer.json()["code"]) == (503, "vault.locked")
        assert server.get("/credentials").json() == []
        assert server.get("/health/ready").status_code == 200


def test_a_token_may_be_refreshed_at_a_private_address_where_that_is_allowed(tmp_path):
    inside = {"refresh_url": "http://10.0.0.1/token"}
    with house(tmp_path / "s.db", allow_internal_urls=True) as server:
        assert server.post("/credentials", body(**inside)).status_code == 201
