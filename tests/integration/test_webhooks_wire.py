"""Webhooks over a real wire: a running engine, a client, and a receiver that verifies."""

from __future__ import annotations

import base64
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

import detent
from detent.definition.system import WEBHOOK
from detent.kernel.webhooks import verify
from detent.ports.store import Page

SECRET = "whsec_" + base64.b64encode(b"a key of twenty-four byte").decode()
FINE = detent.sequence("fine", detent.step("s", "noop"))


@pytest.fixture
def server():
    """A receiver on the loopback that verifies what it gets."""
    got = []
    seen = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = int(headers["webhook-timestamp"])
            got.append((verify(SECRET, headers, body, given), msgspec.json.decode(body)))
            self.send_response(204 if len(got) > 1 else 503)
            self.end_headers()
            if len(got) > 1:
                seen.set()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got, seen
    server.shutdown()
    server.server_close()


@pytest.mark.req("SEQ-WHK-1")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_delivery_goes_over_the_wire_by_a_running_engine(server, tmp_path, writer):
    url, got, seen = server

    delivery = {"secrets": [SECRET], "backoff_ms": 1}
    settings = {"webhooks": [{"url": url}], "webhook_delivery": delivery}
    settings["allowed_internal_hosts"] = ["127.0.0.1"]
    with detent.Engine(tmp_path / "store.db", writer=writer, **settings) as engine:
        instance = engine.start(FINE)
        assert seen.wait(30)
        (row,) = engine.inspect.instances(Page(namespace="detent")).items
        engine.wait_for(row.id, "completed")
        assert (row.definition, engine.inspect.show(row.id).summary.state) == (
            WEBHOOK.hash,
            "completed",
        )
        assert engine.inspect.verify().valid
        assert engine.replay(row.id).identical
    assert [(good, body["instance_id"]) for good, body in got] == [(True, instance)] * 2
