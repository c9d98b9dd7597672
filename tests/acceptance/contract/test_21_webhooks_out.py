"""Outbound webhooks (contract §21): what a receiver gets.

`tests/integration/web/test_deliveries.py` has the operator's routes,
`tests/acceptance/test_webhooks_out.py` retries, parking and crashes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integration.web.following import until
from tests.integration.web.house import house, step

pytestmark = pytest.mark.contract("21")

SECRET = "plain text secret"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A server that tells a receiver of ends, and what that got: headers and bytes."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(({name.lower(): text for name, text in self.headers.items()}, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    settings = {
        "webhooks": [{"url": f"http://127.0.0.1:{receiver.server_port}/hook"}],
        "webhook_delivery": {"secrets": [SECRET]},
        "allowed_internal_hosts": ["127.0.0.1"],
    }
    with house(tmp_path_factory.mktemp("hooks") / "s.db", **settings) as server:
        yield server, got
    receiver.shutdown()
    receiver.server_close()


def message(told, instance, kind):
    """What the receiver was told of an instance."""
    _server, got = told

    def found():
        return [
            (headers, body)
            for headers, body in got
            if json.loads(body)["instance_id"] == instance
            and json.loads(body)["event_type"] == kind
        ]

    until(found)
    (one,) = found()
    return one


def test_a_completed_instance_is_told_and_signed(told):
    server, _ = told
    instance = server.instance(server.sequence())
    server.settle(instance)
    headers, body = message(told, instance, "instance.completed")
    sent = json.loads(body)
    assert set(sent) == {"event_type", "instance_id", "timestamp", "data"}
    assert sent["data"] == {}
    assert re.match(r"\d{4}-\d\d-\d\dT", str(sent["timestamp"]))
    stamp = headers["x-detent-timestamp"]
    digest = hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["x-detent-signature"] == f"sha256={digest}"


def test_a_failed_instance_says_why(told):
    server, _ = told
    instance = server.instance(server.sequence(step("f", "fail", params={"message": "boom"})))
    server.settle(instance)
    _, body = message(told, instance, "instance.failed")
    data = json.loads(body)["data"]
    assert (data["error"], data["block_id"]) == ("boom", "f")


def test_a_breached_service_level_is_told_while_it_runs(told):
    server, _ = told
    sequence = server.sequence(
        step("slow", "sleep", params={"duration_ms": 400}), sla={"max_step_runtime": 50}
    )
    instance = server.instance(sequence)
    server.settle(instance)
    _, body = message(told, instance, "instance.sla_breached")
    data = json.loads(body)["data"]
    assert set(data) >= {"type", "limit_ms", "elapsed_ms", "step_id", "sequence_id", "tenant_id"}
    assert (data["limit_ms"], data["step_id"]) == (50, "slow")
    assert (data["sequence_id"], data["tenant_id"]) == (sequence, "acme")


def test_nobody_is_told_of_a_cancel(told):
    server, got = told
    instance = server.instance(server.sequence({"type": "wait", "id": "w", "signal": "x"}))
    server.post(f"/instances/{instance}/cancel")
    server.settle(instance, "cancelled")
    last = server.instance(server.sequence())
    message(told, last, "instance.completed")
    assert instance not in [json.loads(body)["instance_id"] for _, body in got]
