"""Outbound webhooks under an operator's hands (contract §21)."""

from __future__ import annotations

import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from detent.web.api.settings import ApiSettings
from tests.integration.web.following import until
from tests.integration.web.house import ROOT, house


class Receiver:
    """A server that answers what it is told to, and remembers what it got."""

    def __init__(self):
        self.status = 204
        self.got = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(self.headers["webhook-id"])
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


async def post(url, headers, body, timeout_ms):
    async with httpx2.AsyncClient(timeout=timeout_ms / 1000) as client:
        answer = await client.post(url, headers=dict(headers), content=body)
    return answer.status_code, answer.headers, answer.text


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A server that tells a receiver of ends, and the receiver."""
    receiver = Receiver()
    settings = {
        "webhooks": [{"url": receiver.url}],
        "webhook_delivery": {"backoff_ms": 1, "retries": 1},
        "webhook_post": post,
    }
    with house(tmp_path_factory.mktemp("hooks") / "s.db", **settings) as server:
        yield server, receiver
    receiver.close()


def operator(server, method, path, **more):
    return server.call(method, path, tenant=more.pop("tenant", ""), **more)


def ended(told, status, tenant="acme"):
    """End an instance while the receiver answers a status; its delivery when that has ended."""
    server, receiver = told
    receiver.status = status
    instance = server.instance(server.sequence(tenant=tenant), tenant=tenant)
    server.settle(instance)
    until(lambda: told_of(server, instance))  # the next turn takes its delivery in
    (id,) = told_of(server, instance)
    server.settle(id)
    return id


def told_of(server, instance):
    """The deliveries that tell of an instance."""
    rows = operator(server, "GET", "/webhooks/deliveries?limit=1000").json()
    return [row["id"] for row in rows if row["instance_id"] == instance]


@pytest.mark.req("SEQ-WHK-1")
def test_a_delivery_that_arrived_is_shown_and_not_in_the_outbox(told):
    server, _receiver = told
    id = ended(told, 204)
    shown = operator(server, "GET", f"/webhooks/deliveries/{id}").json()
    assert (shown["delivered"], shown["state"], shown["attempts"]) == (True, "delivered", 1)
    assert (shown["event_type"], shown["payload"]["data"]) == ("instance.completed", {})
    assert id not in [row["id"] for row in operator(server, "GET", "/webhooks/outbox").json()]
    for method, path in (
        ("POST", f"/webhooks/outbox/{id}/redeliver"),
        ("DELETE", f"/webhooks/outbox/{id}"),
    ):
        refused = operator(server, method, path)
        assert (refused.status_code, refused.json()["code"]) == (409, "webhook.state")


@pytest.mark.req("SEQ-WHK-1")
def test_a_parked_delivery_is_tried_again_under_the_same_id(told):
    server, receiver = told
    id = ended(told, 503)
    (row,) = [r for r in operator(server, "GET", "/webhooks/outbox").json() if r["id"] == id]
    assert (row["state"], row["attempts"], row["url"]) == ("parked", 2, receiver.url)
    assert row["last_error"]
    seen = operator(server, "GET", f"/webhooks/outbox/{id}/redeliver-preview").json()
    assert (seen["url"], seen["headers"]["webhook-id"]) == (receiver.url, id)
    failed = operator(server, "POST", f"/webhooks/outbox/{id}/redeliver")
    assert (failed.status_code, failed.json()["code"]) == (502, "webhook.undelivered")
    assert failed.json()["error"].startswith("bad gateway: ")
    receiver.status = 200
    again = operator(server, "POST", f"/webhooks/outbox/{id}/redeliver")
    assert (again.status_code, again.json()) == (200, {"redelivered": True, "delivery_id": id})
    assert receiver.got.count(id) == 5
    listed = operator(server, "GET", "/webhooks/deliveries?delivered=true").json()
    assert id in [row["id"] for row in listed]


def test_a_parked_delivery_is_dropped_once(told):
    server, _receiver = told
    id = ended(told, 500)
    assert operator(server, "DELETE", f"/webhooks/outbox/{id}").status_code == 204
    assert id not in [row["id"] for row in operator(server, "GET", "/webhooks/outbox").json()]
    assert operator(server, "DELETE", f"/webhooks/outbox/{id}").status_code == 409
    shown = operator(server, "GET", f"/webhooks/deliveries/{id}").json()
    assert (shown["state"], shown["delivered"]) == ("dropped", False)


def test_deliveries_are_filtered(told):
    server, receiver = told
    id = ended(told, 500)
    for query, found in (
        ("delivered=false&limit=1000", True),
        ("delivered=true&limit=1000", False),
        ("event_type=instance.completed&limit=1000", True),
        ("event_type=instance.failed&limit=1000", False),
        (f"url={receiver.url}&limit=1000", True),
        ("url=http://elsewhere.test&limit=1000", False),
    ):
        rows = operator(server, "GET", f"/webhooks/deliveries?{query}").json()
        assert (id in [row["id"] for row in rows]) is found, query
    assert operator(server, "GET", "/webhooks/deliveries?limit=0").status_code == 400
    assert operator(server, "GET", "/webhooks/deliveries?delivered=maybe").status_code == 400


def test_a_tenant_that_is_named_sees_its_own_deliveries_only(told):
    server, _receiver = told
    id = ended(told, 500)
    for method, path in (
        ("GET", f"/webhooks/deliveries/{id}"),
        ("GET", f"/webhooks/outbox/{id}/redeliver-preview"),
        ("POST", f"/webhooks/outbox/{id}/redeliver"),
        ("DELETE", f"/webhooks/outbox/{id}"),
        ("GET", f"/webhooks/deliveries/{uuid.uuid4()}"),
    ):
        assert operator(server, method, path, tenant="other").status_code == 404
    assert operator(server, "GET", "/webhooks/outbox", tenant="other").json() == []
    own = operator(server, "GET", f"/webhooks/deliveries/{id}", tenant="acme").json()
    assert own["state"] == "parked"


def test_without_the_root_key_nothing_is_shown(told):
    server, _receiver = told
    assert server.get("/webhooks/outbox", key="", tenant="").status_code == 401


def test_a_receiver_that_is_slow_is_waited_for(tmp_path):
    """The delivery ends while the caller waits, woken by the move and not by the clock."""
    receiver = Receiver()
    receiver.status = 500
    settings = {
        "webhooks": [{"url": receiver.url}],
        "webhook_delivery": {"backoff_ms": 300, "retries": 1},
        "webhook_post": post,
    }
    api = ApiSettings(api_key=ROOT)
    with house(tmp_path / "s.db", api=api, **settings) as server:
        id = ended((server, receiver), 500)
        answer = operator(server, "POST", f"/webhooks/outbox/{id}/redeliver")
        assert answer.status_code == 502
        assert receiver.got.count(id) == 4
    receiver.close()
