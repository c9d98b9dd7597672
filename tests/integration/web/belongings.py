"""One object of each kind that a tenant can own, and requests that name them, for any route.

`MARK` is in every object somewhere, and no request names it: whoever sees it has seen the object.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import types
import uuid
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

import msgspec
from msgspec import NODEFAULT, Struct

from tests.integration.web.house import ROOT, sequence_body, step

MARK = "mark-of-the-owner"
MARKED_COUNT = 918_273  # where there is no room for text


class Owner:
    """A tenant and what it owns; each thing is made when it is first asked for."""

    def __init__(self, server, tenant):
        self.server = server
        self.tenant = tenant
        self._made = {}

    def have(self, kind):
        """The ids of the tenant's thing of a kind, by the names that routes give them."""
        if kind not in self._made:
            self._made[kind] = KINDS[kind](self)
        return self._made[kind]

    def make(self, path, body, tenant=None):
        tenant = self.tenant if tenant is None else tenant
        made = self.server.post(path, body, tenant=tenant)
        assert made.status_code == 201, (path, made.text)
        return made.json()

    def view(self):
        """Everything the tenant sees of what it has, to compare."""
        seen = {}
        for kind, ids in self._made.items():
            for path in VIEWS[kind]:
                at = path.format(
                    **{name: quote(str(value), safe="") for name, value in ids.items()}
                )
                answer = self.server.get(at, tenant=self.tenant)
                assert answer.status_code == 200, (at, answer.text)
                seen[at] = answer.json()
        return seen


def a_sequence(owner):
    body = sequence_body(step(MARK), tenant_id=owner.tenant)
    owner.make("/sequences", body)
    return {"id": body["id"], "name": body["name"]}


def an_instance(owner):
    wait = {"type": "wait", "id": "w", "signal": "go", "store_as": MARK}
    body = sequence_body(wait, step("s"), tenant_id=owner.tenant)
    owner.make("/sequences", body)
    start = {
        "sequence_id": body["id"],
        "tenant_id": owner.tenant,
        "namespace": "default",
        "metadata": {"m": MARK},
        "context": {"data": {"d": MARK}},
    }
    id = owner.make("/instances", start)["id"]
    owner.server.settle(id, "waiting")
    owner.make(f"/instances/{id}/checkpoints", {"checkpoint_data": MARK})
    return {"id": id, "key": "0" * 32, "block": "s"}


def a_limit(owner):
    limit = {"max_count": MARKED_COUNT, "window_ms": 1_000}
    key = f"limit-{uuid.uuid4().hex}"
    made = owner.server.put(f"/rate-limits/{key}", limit, tenant=owner.tenant)
    assert made.status_code == 200, made.text
    return {"key": key}


def a_pool(owner):
    name = f"{MARK}-{uuid.uuid4().hex}"
    pool = owner.make("/pools", {"name": name})["id"]
    resource = {"resource_key": MARK, "name": MARK}
    rid = owner.make(f"/pools/{pool}/resources", resource)["id"]
    return {"id": pool, "rid": rid, "name": name}


def a_cron(owner):
    body = {
        "tenant_id": owner.tenant,
        "namespace": "default",
        "sequence_id": owner.have("sequences")["id"],
        "cron_expr": "0 0 1 1 *",
        "metadata": {"m": MARK},
    }
    return {"id": owner.make("/cron", body)["id"]}


def a_session(owner):
    key = f"session-{uuid.uuid4().hex}"
    body = {"tenant_id": owner.tenant, "session_key": key, "data": MARK}
    return {"id": owner.make("/sessions", body)["id"], "tenant": owner.tenant, "key": key}


def a_trigger(owner):
    slug = f"hook-{uuid.uuid4().hex}"
    body = {
        "slug": slug,
        "sequence_name": owner.have("sequences")["name"],
        "tenant_id": owner.tenant,
        "config": {"c": MARK},
    }
    owner.make("/triggers", body)
    return {"slug": slug}


def a_credential(owner):
    id = f"c-{uuid.uuid4().hex}"
    owner.make("/credentials", {"id": id, "name": MARK, "value": "s3cret-s3cret"})
    return {"id": id}


def an_api_key(owner):
    made = owner.make("/api-keys", {"tenant_id": owner.tenant, "name": MARK}, tenant="")
    return {"id": made["id"]}


def an_event(owner):
    body = {
        "tenant_id": owner.tenant,
        "event_name": MARK,
        "producer_event_id": uuid.uuid4().hex,
        "correlation_key": uuid.uuid4().hex,
        "payload": MARK,
    }
    return {"id": owner.make("/events", body)["event_id"]}


def an_artifact(owner):
    """Bytes as a tool would have brought them."""
    instance, body = an_instance(owner)["id"], f'"{MARK}"'.encode()
    digest = hashlib.sha256(body).hexdigest()
    owner.server.engine._parts.write(lambda store: store.put_blob(instance, digest, body))
    return {"instance": instance, "digest": digest}


def a_rule(owner):
    body = {"handler_name": MARK, "queue_name": "q"}
    return {"id": owner.make("/routing-rules", body)["id"]}


def a_pin(owner):
    body = {"handler_name": f"{MARK}-{uuid.uuid4().hex}", "version": "1"}
    return {"id": owner.make("/workers/version-pins", body)["id"]}


def a_push_target(owner):
    body = {"queue_name": f"{MARK}-{uuid.uuid4().hex}", "url": "https://example.com/"}
    return {"id": owner.make("/queues/dispatch", body)["id"]}


def a_command(owner):
    body = {"worker_id": MARK, "command": "look"}
    return {"id": owner.make("/workers/commands", body)["id"]}


def a_task(owner):
    """One that its worker holds, and one that waits for a worker."""
    handler = f"h-{uuid.uuid4().hex}"
    charge = step("charge", handler, queue_name="q1", params={"p": MARK})
    body = sequence_body(charge, tenant_id=owner.tenant)
    owner.make("/sequences", body)
    start = {"sequence_id": body["id"], "tenant_id": owner.tenant, "namespace": "default"}
    for _ in range(2):
        owner.server.settle(owner.make("/instances", start)["id"], "waiting")
    poll = {"handler_name": handler, "worker_id": "w1"}
    (held,) = owner.server.post("/workers/tasks/poll", poll, tenant=owner.tenant).json()
    return {"id": held["id"], "handler": handler}


def a_breaker(owner):
    """Of a handler whose worker has failed once."""
    handler = a_task(owner)["handler"]
    poll = {"handler_name": handler, "worker_id": "w1"}
    (held,) = owner.server.post("/workers/tasks/poll", poll, tenant=owner.tenant).json()
    report = {"worker_id": "w1", "message": MARK, "retryable": False}
    report["claim_epoch"] = held["claim_epoch"]
    path = f"/workers/tasks/{held['id']}/fail"
    told = owner.server.post(path, report, tenant=owner.tenant)
    assert told.status_code == 200, told.text
    owner.server.settle(held["instance_id"], "failed")
    return {"tenant": owner.tenant, "handler": handler}


# The first segment of a path, or the first two -> what its parameters name.
KINDS = {
    "artifacts": an_artifact,
    "events": an_event,
    "routing-rules": a_rule,
    "workers/version-pins": a_pin,
    "workers/commands": a_command,
    "queues": a_push_target,
    "cluster": lambda _owner: {"id": str(uuid.uuid4())},  # nobody's
    "webhooks/outbox": lambda _owner: {"id": str(uuid.uuid4())},  # made by the engine alone
    "webhooks/deliveries": lambda _owner: {"id": str(uuid.uuid4())},
    "sequences": a_sequence,
    "instances": an_instance,
    "inspect/instances": an_instance,
    "inspect/crons": a_cron,
    "inspect/events": an_event,
    "inspect/tasks": a_task,
    "inspect/breakers": a_breaker,
    "inspect/workers": a_task,
    "inspect/deliveries": lambda _owner: {"id": str(uuid.uuid4())},
    "rate-limits": a_limit,
    "pools": a_pool,
    "cron": a_cron,
    "sessions": a_session,
    "triggers": a_trigger,
    "webhooks": a_trigger,
    "credentials": a_credential,
    "api-keys": an_api_key,
    "workers": a_task,
    "tenants": a_breaker,
}
VIEWS = {
    "artifacts": ["/artifacts/{instance}/{digest}"],
    "events": ["/events/{id}"],
    "routing-rules": ["/routing-rules/{id}"],
    "workers/version-pins": ["/workers/version-pins/{id}"],
    "workers/commands": ["/workers/commands"],
    "queues": ["/queues/dispatch/{id}"],
    "cluster": [],
    "webhooks/outbox": [],
    "webhooks/deliveries": [],
    "sequences": ["/sequences/{id}"],
    "instances": [
        "/instances/{id}",
        "/instances/{id}/checkpoints",
        "/instances/{id}/audit?all=true",
    ],
    "inspect/instances": ["/inspect/instances/{id}"],
    "inspect/crons": ["/inspect/crons/{id}"],
    "inspect/events": ["/inspect/events/{id}"],
    "inspect/tasks": ["/inspect/tasks/{id}", "/inspect/tasks/{id}/attempts"],
    "inspect/breakers": ["/inspect/breakers"],
    "inspect/workers": [],
    "inspect/deliveries": [],
    "rate-limits": ["/rate-limits/{key}"],
    "pools": ["/pools/{id}", "/pools/{id}/resources"],
    "cron": ["/cron/{id}"],
    "sessions": ["/sessions/{id}", "/sessions/{id}/instances"],
    "triggers": ["/triggers/{slug}"],
    "webhooks": ["/triggers/{slug}"],
    "credentials": ["/credentials/{id}"],
    "api-keys": ["/api-keys"],
    "workers": ["/workers/tasks", "/workers/tasks/{id}/attempts"],
    "tenants": ["/tenants/{tenant}/circuit-breakers/{handler}"],
}

# What a field of a body or query is given, by its name: something to compute, or a plain value.
FIELDS = {
    "tenant_id": lambda owner: owner.tenant,
    "sequence_id": lambda owner: owner.have("sequences")["id"],
    "target_sequence_id": lambda owner: owner.have("sequences")["id"],
    "sequence_name": lambda owner: owner.have("sequences")["name"],
    "session_id": lambda owner: owner.have("sessions")["id"],
    "instance_id": lambda owner: owner.have("instances")["id"],
    "handler_name": lambda owner: owner.have("workers")["handler"],
    "worker_id": "w1",
    "queue_name": "q1",
    "namespace": "default",
    "signal_type": "pause",
    "status": "production",
    "cron_expr": "0 0 1 1 *",
    "max_count": 1,
    "window_ms": 1_000,
    "for_seconds": 60,
    "keep": 0,
    "url": "https://example.com/",
}
QUERIES = {**FIELDS, "name": lambda owner: owner.have("sequences")["name"]}
BODIES = {
    "POST /sequences": lambda owner: sequence_body(tenant_id=owner.tenant),
    "POST /instances/{id:uuid}/fork": lambda _owner: {"from_block_id": "w"},
}


def kind_of(route):
    """The kind of thing that a route is about."""
    two = "/".join(route.segments[:2])
    return two if two in KINDS else route.segments[0]


def named(owner, route):
    """The path of a route, its parameters filled with what the owner has."""
    if not route.names:
        return route.path
    kind = kind_of(route)
    assert kind in KINDS, f"say in belongings.KINDS what a tenant owns under /{kind}"
    ids, parts = owner.have(kind), []
    for part in route.segments:
        name = part[1:-1].partition(":")[0] if part[0] == "{" else ""
        assert not name or name in ids, f"say in belongings.KINDS what {{{name}}} of /{kind} is"
        parts.append(quote(str(ids[name]), safe="") if name else part)
    return "/" + "/".join(parts)


def queried(owner, route):
    """A query that names what the owner has."""
    if route.query is None:
        return {}
    return {
        field.encode_name: _given(owner, QUERIES[field.encode_name])
        for field in msgspec.structs.fields(route.query)
        if field.encode_name in QUERIES
    }


def body_of(owner, route):
    """A body that the route can read, and that names what the owner has."""
    special = BODIES.get(f"{route.method} {route.path}")
    if special is not None:
        return special(owner)
    return None if route.takes is None else _value(owner, route.takes)


def _value(owner, kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _members(owner, kind)
    if kind is Any or origin is dict or kind is dict:
        return {"x": 1}
    if origin in (list, tuple):
        return [_value(owner, arguments[0])]
    if origin is Literal:
        return arguments[0]
    if origin in (Union, types.UnionType):
        return _value(owner, next(each for each in arguments if each is not type(None)))
    plain = {str: f"x-{uuid.uuid4().hex}", int: 1, float: 1.0, bool: True}
    plain[dt.datetime] = "2040-01-01T00:00:00Z"
    return plain[kind]


def _members(owner, kind):
    hints = get_type_hints(kind)
    made = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        required = field.default is NODEFAULT and field.default_factory is NODEFAULT
        if name in FIELDS:
            made[name] = _given(owner, FIELDS[name])
        elif required:
            made[name] = _value(owner, hints[field.name])
    return made


def _given(owner, value):
    return value(owner) if callable(value) else value


class Asked:
    """A request of a route that names what an owner has; whoever sends it, it stays the same."""

    def __init__(self, owner, route):
        self.method = route.method
        self.path = named(owner, route)
        self.query = queried(owner, route)
        self.body = body_of(owner, route)

    @property
    def foreign(self):
        """Whether the body itself says whose it is."""
        return isinstance(self.body, dict) and "tenant_id" in self.body

    def send(self, server, *, tenant, key=ROOT):
        """Send it as somebody; status and text, of a stream no text."""
        headers = {"x-api-key": key, "x-tenant-id": tenant}
        more = {"params": self.query} | ({} if self.body is None else {"json": self.body})
        given = {name: value for name, value in headers.items() if value}
        with server.http.stream(self.method, self.path, headers=given, **more) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                return answer.status_code, ""
            return answer.status_code, answer.read().decode()
