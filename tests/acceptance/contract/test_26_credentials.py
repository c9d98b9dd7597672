"""Credentials (contract §26)."""

from __future__ import annotations

import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integration.web.house import house, step

pytestmark = pytest.mark.contract("26")


def fresh():
    return f"c-{uuid.uuid4().hex}"


def make(server, tenant="acme", **fields):
    body = {"id": fresh(), "name": "Mail", "value": "t0p-secret", **fields}
    return server.post("/credentials", body, tenant=tenant)


def test_a_credential_has_every_field_but_its_secret(server):
    answer = make(server)
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert set(shown) == {
        "id",
        "tenant_id",
        "name",
        "kind",
        "enabled",
        "has_refresh_token",
        "created_at",
        "updated_at",
    }
    assert (shown["kind"], shown["enabled"], shown["has_refresh_token"]) == ("api_key", True, False)
    full = make(
        server,
        kind="oauth2",
        expires_at="2099-01-01T00:00:00Z",
        refresh_url="https://auth.example.com/token",
        refresh_token="again-secret",
        description="of ours",
    ).json()
    assert set(full) - set(shown) == {"expires_at", "refresh_url", "description"}
    assert full["has_refresh_token"] is True
    assert "secret" not in str(full)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"id": ""}, 400),
        ({"name": ""}, 400),
        ({"value": ""}, 400),
        ({"id": "x" * 256}, 400),
        ({"id": "with space"}, 400),
        ({"id": "a/b"}, 400),
        ({"kind": "magic"}, 422),
        ({"value": 5}, 422),
        ({"kind": "oauth2", "refresh_url": "https://auth.example.com/t"}, 400),
        ({"refresh_url": "http://127.0.0.1/t", "refresh_token": "x", "kind": "oauth2"}, 400),
        ({"refresh_url": "http://10.0.0.1/t", "refresh_token": "x", "kind": "oauth2"}, 400),
        ({"value": "x" * (256 * 1024 + 1)}, 413),
    ],
)
def test_what_cannot_be_is_refused(server, change, status):
    assert make(server, **change).status_code == status


@pytest.mark.parametrize("kind", ["api_key", "oauth2", "basic"])
def test_every_kind_is_taken_and_ids_are_global(server, kind):
    made = make(server, kind=kind).json()
    assert made["kind"] == kind
    assert make(server, id=made["id"]).status_code == 409
    assert make(server, tenant="other", id=made["id"]).status_code == 409


def test_own_and_global_ones_are_listed(server, open_server, tenant):
    mine = [make(server, tenant=tenant).json()["id"] for _ in range(3)]
    assert [row["id"] for row in server.get("/credentials", tenant=tenant).json()] == mine
    assert len(server.get("/credentials?limit=2", tenant=tenant).json()) == 2
    everybodys = make(open_server, tenant=None).json()
    assert everybodys["tenant_id"] == ""
    listed = open_server.get("/credentials", tenant=tenant).json()
    assert everybodys["id"] in [row["id"] for row in listed]


def test_what_is_named_is_changed_and_removed(server):
    made = make(server).json()
    path = f"/credentials/{made['id']}"
    change = {"name": "Post", "enabled": False, "description": "x", "kind": "basic"}
    answer = server.patch(path, change)
    assert answer.status_code == 200
    assert change.items() <= answer.json().items()
    assert server.get(path).json() == answer.json()
    assert server.patch(path, {"name": ""}).status_code == 400
    assert server.delete(path).status_code == 204
    for method in ("GET", "DELETE", "PATCH"):
        body = {"name": "x"} if method == "PATCH" else None
        assert server.call(method, path, body).status_code == 404


# in steps ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def house_with_echo(tmp_path_factory):
    """A server that may call a receiver here, and the headers that the receiver got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            got.append(self.headers["x-key"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"seen")

        def log_message(self, *_):
            pass

    echo = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=echo.serve_forever, daemon=True).start()
    settings = {"allowed_internal_hosts": ["127.0.0.1"], "workers": True}
    with house(tmp_path_factory.mktemp("echo") / "s.db", **settings) as server:
        yield server, f"http://127.0.0.1:{echo.server_port}/", got
    echo.shutdown()
    echo.server_close()


def called(served, reference):
    server, url, _ = served
    params = {"url": url, "headers": {"x-key": reference}}
    instance = server.instance(server.sequence(step("s", "http_request", params=params)))
    return instance, server.settle(instance)


def test_a_reference_is_replaced_by_the_value_or_one_field_of_it(house_with_echo):
    server, _url, got = house_with_echo
    plain = make(server).json()["id"]
    fields = make(server, value='{"user": "ada", "key": "k3y-inside"}').json()["id"]
    assert called(house_with_echo, f"credentials://{plain}")[1] == "completed"
    assert got[-1] == "t0p-secret"
    instance, end = called(house_with_echo, f"credentials://{fields}/key")
    assert (end, got[-1]) == ("completed", "k3y-inside")
    assert "k3y-inside" not in str(server.get(f"/instances/{instance}/audit?all=true").json())


def test_a_missing_disabled_or_foreign_credential_fails_the_step(house_with_echo):
    server, _url, got = house_with_echo
    before = len(got)
    off = make(server).json()["id"]
    server.patch(f"/credentials/{off}", {"enabled": False})
    foreign = make(server, tenant="other").json()["id"]
    plain = make(server).json()["id"]
    for reference in (
        "credentials://nobody-has-it",
        f"credentials://{off}",
        f"credentials://{foreign}",
        f"credentials://{plain}/no-such-field",
    ):
        assert called(house_with_echo, reference)[1] == "failed", reference
    assert len(got) == before
