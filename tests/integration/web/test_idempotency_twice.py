"""`Idempotency-Key` at two servers of one store: the same POST at the same time acts once.

Two servers of one engine know of each other what they are answering. Two processes would not:
the tests that say so take that memory away from one of them, and what they find is due to ids that
derive from the key alone.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import detent
from detent.model.errors import StoreError
from detent.testing.serving import served
from detent.web.api.settings import ApiSettings
from tests.integration.web.house import ROOT, House, house, instance_body, sequence_body, step

pytestmark = pytest.mark.req("SEQ-3")

WAIT = {"type": "wait", "id": "w", "signal": "go"}
ROUNDS = 3


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """Two servers of one engine, and how one that another process runs would be."""
    path = tmp_path_factory.mktemp("twins") / "s.db"
    with house(path, workers=True) as one, served(one.engine, ApiSettings(api_key=ROOT)) as second:
        two = House(one.engine, second.url)
        two.served = second
        yield one, two
        two.http.close()


@pytest.fixture
def strangers(twins):
    """The same two, each with a memory of its own."""
    keyed = twins[1].served.api.idempotency
    shared, keyed._running = keyed._running, {}
    yield twins
    keyed._running = shared


class Scene:
    """A tenant with something of each kind to act on."""

    def __init__(self, server):
        self.server = server
        self.tenant = tenant = f"t{uuid.uuid4().hex}"
        self.sequence = server.sequence(WAIT, tenant=tenant)
        self.instance = server.instance(self.sequence, {"n": 1}, tenant=tenant)
        failing = server.sequence(step("f", "fail"), tenant=tenant)
        self.failed = server.instance(failing, tenant=tenant)
        server.settle(self.instance, "waiting")
        server.settle(self.failed, "failed")
        name = self.get(f"/sequences/{self.sequence}")["name"]
        self.slug = f"hook-{uuid.uuid4().hex}"
        trigger = {"slug": self.slug, "sequence_name": name, "tenant_id": tenant}
        assert server.post("/triggers", trigger, tenant=tenant).status_code == 201
        pool = server.post("/pools", {"tenant_id": tenant, "name": "p0"}, tenant=tenant)
        self.pool = pool.json()["id"]

    def get(self, path):
        answer = self.server.get(path, tenant=self.tenant)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return found["items"] if isinstance(found, dict) and "items" in found else found

    def count(self, path):
        return len(self.get(path))

    def audited(self, instance, word):
        rows = self.get(f"/instances/{instance}/audit?all=true")
        return len([row for row in rows if word in f"{row['event_type']} {row['details']}"])


ACTS = {
    "start": lambda s: ("/instances", instance_body(s.sequence, {}, tenant_id=s.tenant)),
    "fire": lambda s: (f"/triggers/{s.slug}/fire", {"n": 1}),
    "fork": lambda s: (f"/instances/{s.instance}/fork", {"from_block_id": "w"}),
    "session": lambda s: ("/sessions", {"session_key": "s", "tenant_id": s.tenant}),
    "checkpoint": lambda s: (f"/instances/{s.instance}/checkpoints", {"checkpoint_data": 1}),
    "signal": lambda s: (f"/instances/{s.instance}/signals", {"signal_type": {"custom": "told"}}),
    "retry": lambda s: (f"/instances/{s.failed}/retry", None),
    "blocks": lambda s: (f"/instances/{s.instance}/inject-blocks", {"blocks": [step("x")]}),
    "resource": lambda s: (f"/pools/{s.pool}/resources", {"resource_key": "k", "name": "n"}),
    "rule": lambda _s: ("/routing-rules", {"handler_name": "h", "queue_name": "q"}),
    "pin": lambda _s: ("/workers/version-pins", {"handler_name": "h", "version": "1"}),
    "command": lambda _s: ("/workers/commands", {"worker_id": "w", "command": "reload"}),
    "schedule": lambda s: (
        "/cron",
        {
            "tenant_id": s.tenant,
            "namespace": "default",
            "sequence_id": s.sequence,
            "cron_expr": "0 0 * * *",
        },
    ),
    "event": lambda s: (
        "/events",
        {
            "tenant_id": s.tenant,
            "event_name": "e",
            "producer_event_id": "p",
            "correlation_key": "k",
        },
    ),
    "key": lambda s: ("/api-keys", {"tenant_id": s.tenant}),
    "batch": lambda s: (
        "/instances/batch",
        {"instances": [instance_body(s.sequence, {}, tenant_id=s.tenant)]},
    ),
}
# What a name of the caller's own makes unique: whoever comes second is told that it is there.
NAMED = {
    "sequence": lambda s: ("/sequences", sequence_body(tenant_id=s.tenant, name="named")),
    "trigger": lambda s: (
        "/triggers",
        {"slug": f"x-{s.slug}", "sequence_name": "named", "tenant_id": s.tenant},
    ),
    "pool": lambda s: ("/pools", {"tenant_id": s.tenant, "name": "p"}),
}
COUNTS = {
    "start": lambda s: s.count("/instances") - 2,
    "fire": lambda s: s.count("/instances") - 2,
    "fork": lambda s: s.count("/instances") - 2,
    "batch": lambda s: s.count("/instances") - 2,
    "session": lambda s: len([s.get(f"/sessions/by-key/{s.tenant}/s")]),
    "checkpoint": lambda s: s.count(f"/instances/{s.instance}/checkpoints"),
    "signal": lambda s: s.audited(s.instance, "told"),
    "retry": lambda s: s.audited(s.failed, "'from': 'failed', 'to': 'scheduled'"),
    "blocks": lambda s: s.audited(s.instance, "blocks.injected"),
    "resource": lambda s: s.count(f"/pools/{s.pool}/resources"),
    "rule": lambda s: s.count("/routing-rules"),
    "pin": lambda s: s.count("/workers/version-pins"),
    "command": lambda s: s.count("/workers/commands"),
    "schedule": lambda s: s.count("/cron"),
    "event": lambda s: s.count("/events"),
    "key": lambda s: s.count("/api-keys"),
    "sequence": lambda s: len([each for each in s.get("/sequences") if each["name"] == "named"]),
    "trigger": lambda s: s.count("/triggers") - 1,
    "pool": lambda s: s.count("/pools") - 1,
}


def at_once(twins, path, body, tenant):
    """The same request to both servers at the same time; their answers."""
    key, ready = uuid.uuid4().hex, threading.Barrier(2)

    def send(server):
        ready.wait(20)
        return server.post(path, body, tenant=tenant, headers={"idempotency-key": key})

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(send, twins)), key


def raced(twins, kind, make):
    """The answers of a race, in which at least one went well, and its scene."""
    scene = Scene(twins[0])
    if kind == "trigger":
        scene.server.sequence(tenant=scene.tenant, name="named")
    path, body = make(scene)
    answers, key = at_once(twins, path, body, scene.tenant)
    good = [answer for answer in answers if answer.status_code < 300]
    assert good, [answer.text for answer in answers]
    again = twins[1].post(path, body, tenant=scene.tenant, headers={"idempotency-key": key})
    assert again.content in [answer.content for answer in good], "the answer that was kept"
    return scene, good, [answer for answer in answers if answer not in good]


@pytest.mark.parametrize("kind", [*ACTS, *NAMED])
def test_at_two_servers_of_one_engine_the_second_waits_or_is_answered_the_same(twins, kind):
    for _ in range(ROUNDS):
        scene, good, others = raced(twins, kind, {**ACTS, **NAMED}[kind])
        assert len({answer.content for answer in good}) == 1
        assert {answer.json()["code"] for answer in others} <= {"request.in_progress"}
        assert COUNTS[kind](scene) == 1


@pytest.mark.parametrize("kind", ACTS)
def test_in_two_processes_both_act_and_one_thing_is_made(strangers, kind):
    for _ in range(ROUNDS):
        scene, good, others = raced(strangers, kind, ACTS[kind])
        spent = {"request.spent"} if kind == "key" else set()
        assert len({answer.content for answer in good}) == 1
        assert {answer.json()["code"] for answer in others} <= spent
        assert COUNTS[kind](scene) == 1


@pytest.mark.parametrize("kind", NAMED)
def test_in_two_processes_what_has_a_name_is_there_for_the_second(strangers, kind):
    for _ in range(ROUNDS):
        scene, good, others = raced(strangers, kind, NAMED[kind])
        assert len({answer.content for answer in good}) == 1
        assert {answer.json()["code"].rpartition(".")[2] for answer in others} <= {"exists"}
        assert COUNTS[kind](scene) == 1


def test_a_report_under_a_key_is_taken_once_by_two_processes(strangers):
    """The claim settles it: whoever is second holds none."""
    server = strangers[0]
    job = f"job-{uuid.uuid4().hex}"
    instance = server.instance(server.sequence(step("a", job)))
    server.settle(instance, "waiting")
    (task,) = server.post("/workers/tasks/poll", {"handler_name": job, "worker_id": "w"}).json()
    body = {"worker_id": "w", "claim_epoch": 1, "output": {"n": 1}}
    answers, _key = at_once(strangers, f"/workers/tasks/{task['id']}/complete", body, "acme")
    codes = sorted(answer.status_code for answer in answers)
    assert codes in ([200, 200], [200, 409])
    server.settle(instance)
    assert server.outputs(instance) == [("a", {"n": 1})]


def test_a_store_is_served_by_one_process_at_a_time(tmp_path):
    with house(tmp_path / "s.db"), pytest.raises(StoreError) as refused:
        detent.Engine(tmp_path / "s.db")
    assert refused.value.code == "store.owned"
