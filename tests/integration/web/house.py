"""What tests of the API share: a served engine, and a client that speaks as one tenant."""

from __future__ import annotations

import uuid
from contextlib import contextmanager

import httpx2

from detent import Engine
from detent.testing.serving import served
from detent.web.api.settings import ApiSettings

ROOT = "root-key"
VAULT = "5e" * 32  # a key that seals the secrets of tests


class House:
    """A server and the calls that a client makes of it."""

    def __init__(self, engine, url):
        self.engine = engine
        self.url = url
        self.http = httpx2.Client(base_url=url, timeout=20)

    @property
    def streams(self):
        """The open streams of the server."""
        return self.served.api.house.streams

    def call(self, method, path, body=None, *, tenant="acme", key=ROOT, **more):
        headers = dict(more.pop("headers", {}))
        if tenant:
            headers["x-tenant-id"] = tenant
        if key:
            headers["x-api-key"] = key
        if body is not None:
            more["json"] = body
        return self.http.request(method, path, headers=headers, **more)

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body, **more)

    def patch(self, path, body=None, **more):
        return self.call("PATCH", path, body, **more)

    def put(self, path, body=None, **more):
        return self.call("PUT", path, body, **more)

    def delete(self, path, **more):
        return self.call("DELETE", path, **more)

    def sequence(self, *blocks, tenant="acme", **fields):
        """Store a sequence of these blocks; its id."""
        body = sequence_body(*blocks, tenant_id=tenant, **fields)
        made = self.post("/sequences", body, tenant=tenant)
        assert made.status_code == 201, made.text
        return body["id"]

    def instance(self, sequence, data=None, *, tenant="acme", **fields):
        """Start an instance; its id."""
        body = instance_body(sequence, data, tenant_id=tenant, **fields)
        made = self.post("/instances", body, tenant=tenant)
        assert made.status_code in (200, 201), made.text
        return made.json()["id"]

    def shown(self, instance):
        """The instance as it stands."""
        answer = self.get(f"/instances/{instance}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def outputs(self, instance):
        """The outputs so far, as (block id, output)."""
        rows = self.get(f"/instances/{instance}/outputs").json()
        return [(row["block_id"], row["output"]) for row in rows]

    def signal(self, instance, name, payload=None):
        """Send a signal of one's own."""
        body = {"signal_type": {"custom": name}, "payload": payload}
        sent = self.post(f"/instances/{instance}/signals", body)
        assert sent.status_code == 201, sent.text

    def settle(self, instance, state=None):
        """Wait until the instance is in a state, by default any terminal one."""
        return self.engine.wait_for(instance, state)


def step(id, handler="noop", **options):
    return {"type": "step", "id": id, "handler": handler, **options}


def sequence_body(*blocks, **fields):
    return {
        "id": str(uuid.uuid4()),
        "tenant_id": "acme",
        "namespace": "default",
        "name": f"seq-{uuid.uuid4().hex[:8]}",
        "version": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "blocks": list(blocks) or [step("s1")],
        **fields,
    }


def instance_body(sequence, data=None, **fields):
    return {
        "sequence_id": sequence,
        "tenant_id": "acme",
        "namespace": "default",
        "context": {"data": data},
        **fields,
    }


@contextmanager
def house(path, handlers=(), api=None, **settings):
    """A served engine on a store, with a vault and the circuit breakers that a server has."""
    settings = {"vault_key": VAULT, "breaker_threshold": 5, **settings}
    with (
        Engine(path, handlers=handlers, **settings) as engine,
        served(engine, api or ApiSettings(api_key=ROOT)) as server,
    ):
        made = House(engine, server.url)
        made.served = server
        try:
            yield made
        finally:
            made.http.close()
