"""Push targets: what they may be, whose tasks they get, and how many at once."""

from __future__ import annotations

import pytest

from detent.kernel.webhooks import verify
from detent.model import limits
from detent.model.webhook import Delivery
from tests.integration.web.following import until
from tests.integration.web.house import house, step
from tests.integration.web.receiver import (
    QUEUE,
    SECRET,
    Receiver,
    done,
    history,
    pushed_to,
    task_of,
)
from tests.integration.web.worker_calls import polled, report, started

pytestmark = pytest.mark.req("SEQ-HND-3")

PATH = "/queues/dispatch"
INSIDE = {"workers": True, "allow_internal_urls": True}


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_BACKOFF_MS", 20)
    monkeypatch.setattr(limits, "REAPER_PAUSE_MS", 10)
    with house(tmp_path / "s.db", **INSIDE) as made:
        yield made


def begun(server, job="job", queue=QUEUE, tenant="acme", **more):
    sequence = server.sequence(step("s", job, queue_name=queue, **more), tenant=tenant)
    return server.instance(sequence, tenant=tenant)


# settings ----------------------------------------------------------------------------------------


def test_tasks_that_wait_already_are_pushed_once_there_is_a_target(server):
    made = [started(server, step("s", "job", queue_name=QUEUE)) for _ in range(3)]
    with Receiver(done({"n": 1})) as receiver:
        target = pushed_to(server, receiver.url)
        for instance in made:
            server.settle(instance)
        assert [task["instance_id"] for task in receiver.tasks] == made
        assert server.delete(f"{PATH}/{target['id']}").status_code == 204
        last = begun(server)
        server.settle(last, "waiting")
        assert len(polled(server, "job", limit=9)) == 1
        assert len(receiver.tasks) == 3


@pytest.mark.parametrize("off", [{"enabled": False}, {"mode": "poll"}])
def test_a_target_that_is_switched_off_gets_nothing_until_it_is_switched_on(server, off):
    with Receiver(done({})) as receiver:
        target = pushed_to(server, receiver.url, **off)
        instance = begun(server)
        server.settle(instance, "waiting")
        body = {"queue_name": QUEUE, "push_url": receiver.url, "mode": "push"}
        changed = server.put(f"{PATH}/{target['id']}", body)
        assert (changed.status_code, changed.json()["url"]) == (200, receiver.url)
        server.settle(instance)
        assert len(receiver.tasks) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"url": "http://10.0.0.1/"}, 400),
        ({"url": "http://localhost/"}, 400),
        ({"url": "http://169.254.169.254/latest/meta-data"}, 400),
        ({"url": "http://[::1]/"}, 400),
        ({"url": "http://user:pass@example.com/"}, 400),
        ({"url": "https://example.com/", "push_url": "https://example.org/"}, 400),
        ({"url": "", "push_url": ""}, 400),
        ({"url": "https://example.com/", "secret": "x" * (limits.KEY_CHARS + 1)}, 400),
        ({"url": "https://example.com/", "secret": "s", "credential_id": "c"}, 400),
        ({"url": "https://example.com/", "mode": "pull"}, 422),
        ({"url": "https://example.com/", "queue_name": "x" * (limits.QUEUE_CHARS + 1)}, 400),
    ],
)
def test_a_target_that_may_not_be_called_or_meant_is_refused(tmp_path, body, status):
    with house(tmp_path / "s.db") as server:
        made = server.post(PATH, {"queue_name": QUEUE} | body)
        assert made.status_code == status, made.text
        good = {"queue_name": QUEUE, "url": "https://example.com/"}
        kept = server.post(PATH, good).json()
        changed = server.put(f"{PATH}/{kept['id']}", good | body)
        assert changed.status_code == status
        assert server.get(PATH).json() == [kept]


def test_a_host_of_the_inside_that_is_allowed_by_name_is_allowed_here_too(tmp_path):
    hosts = ("127.0.0.1", "*.corp.internal")
    with house(tmp_path / "s.db", workers=True, allowed_internal_hosts=hosts) as server:
        for url, status in (
            ("http://workers.corp.internal/x", 201),
            ("http://10.0.0.1/", 400),
        ):
            made = server.post(PATH, {"queue_name": url, "url": url})
            assert made.status_code == status, made.text
        with Receiver(done({"n": 1})) as receiver:
            pushed_to(server, receiver.url)
            instance = begun(server)
            server.settle(instance)
        assert server.outputs(instance) == [("s", {"n": 1})]


def test_what_may_be_called_no_longer_is_refused_when_it_is_called(tmp_path):
    """A target was set while the inside was allowed; whoever connects judges once more."""
    with Receiver(done({})) as receiver:
        with house(tmp_path / "s.db", **INSIDE) as server:
            pushed_to(server, receiver.url)
        with house(tmp_path / "s.db", workers=True) as server:
            instance = begun(server)
            server.settle(instance, "waiting")
            id = task_of(server, instance)["id"]
            until(lambda: ("push_failed", 1) in history(server, id))
            lines = server.get(f"/workers/tasks/{id}/attempts").json()
            assert "loopback" in lines[1]["reason"]
        assert receiver.tasks == []


# keys --------------------------------------------------------------------------------------------


def signed_by(receiver, key):
    seen = receiver.requests[-1]
    return verify(key, seen.headers, seen.body, int(seen.headers["webhook-timestamp"]))


def test_a_target_is_signed_with_a_credential_or_a_secret_or_the_common_keys(tmp_path):
    common = Delivery(secrets=("common-key",))
    with (
        house(tmp_path / "s.db", webhook_delivery=common, **INSIDE) as server,
        Receiver(done({})) as receiver,
    ):
        made = server.post(
            "/credentials", {"id": "push", "name": "p", "value": "a-key", "tenant_id": "acme"}
        )
        assert made.status_code == 201, made.text
        target = pushed_to(server, receiver.url)
        item = f"{PATH}/{target['id']}"

        def pushed(change):
            body = {"queue_name": QUEUE, "url": receiver.url, **change}
            answer = server.put(item, body)
            assert answer.status_code == 200, answer.text
            assert SECRET not in answer.text
            server.settle(begun(server))
            return answer.json()["has_secret"]

        for change, key, has_secret in (
            ({}, "common-key", False),
            ({"credential_id": "push"}, "a-key", False),
            ({"secret": SECRET}, SECRET, True),
            ({}, SECRET, True),  # left out, it stays
            ({"secret": ""}, "common-key", False),
        ):
            assert pushed(change) is has_secret
            assert signed_by(receiver, key), change
        stored = server.engine._parts.read(lambda store: store.record("push_target", target["id"]))
        assert SECRET.encode() not in stored.body


def test_a_secret_needs_a_vault(tmp_path):
    with house(tmp_path / "s.db", vault_key=None) as server:
        body = {"queue_name": QUEUE, "url": "https://example.com/", "secret": SECRET}
        made = server.post(PATH, body)
        assert (made.status_code, made.json()["code"]) == (503, "vault.locked")
        assert server.get(PATH).json() == []


def test_without_its_credential_nothing_is_pushed_and_others_are(server):
    with Receiver(done({})) as receiver:
        pushed_to(server, receiver.url, credential_id="nobody")
        pushed_to(server, receiver.url, queue="other")
        stuck, free = begun(server), begun(server, queue="other")
        server.settle(free)
        server.settle(stuck, "waiting")
        assert task_of(server, stuck)["state"] == "pending"
        made = server.post(
            "/credentials", {"id": "nobody", "name": "n", "value": "k", "tenant_id": "acme"}
        )
        assert made.status_code == 201
        server.engine.work.bell.rouse()
        server.settle(stuck)
        assert signed_by(receiver, "k")


def test_secrets_of_a_task_go_to_the_receiver_and_are_hidden_in_its_answer(server):
    body = {"id": "card", "name": "c", "value": "sk_very_secret", "tenant_id": "acme"}
    assert server.post("/credentials", body).status_code == 201
    with Receiver(done({"used": "sk_very_secret"})) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, params={"key": "credentials://card"})
        server.settle(instance)
        assert receiver.got()["params"] == {"key": "sk_very_secret"}
    assert "sk_very_secret" not in str(server.outputs(instance))
    assert task_of(server, instance)["params"] == {"key": "credentials://card"}


# whose tasks -------------------------------------------------------------------------------------


def test_a_target_gets_the_tasks_of_its_own_tenant_and_queue(server):
    with Receiver(done({"n": 1})) as receiver, Receiver(done({"n": 2})) as other:
        pushed_to(server, receiver.url)
        pushed_to(server, other.url, tenant="beta")
        mine, theirs = begun(server), begun(server, tenant="beta")
        elsewhere = begun(server, queue="another")
        server.settle(mine)
        server.settle(theirs)
        server.settle(elsewhere, "waiting")
        assert [task["instance_id"] for task in receiver.tasks] == [mine]
        assert [task["instance_id"] for task in other.tasks] == [theirs]
        assert {task["tenant_id"] for task in other.tasks} == {"beta"}


def test_a_routed_task_is_pushed_to_the_target_of_its_new_queue(server):
    rule = {"handler_name": "routed", "queue_name": "heavy"}
    assert server.post("/routing-rules", rule).status_code == 201
    with Receiver(done({"n": 1})) as receiver:
        pushed_to(server, receiver.url, queue="heavy")
        instance = server.instance(server.sequence(step("s", "routed")))
        server.settle(instance)
        assert receiver.got()["queue_name"] == "heavy"


def test_a_pinned_handler_is_pushed_to_a_receiver_of_that_version_only(server):
    pin = {"handler_name": "pinned", "version": "2"}
    assert server.post("/workers/version-pins", pin).status_code == 201
    with Receiver(done({})) as receiver:
        target = pushed_to(server, receiver.url)
        held, free = begun(server, "pinned"), begun(server, "free")
        server.settle(free)
        server.settle(held, "waiting")
        assert task_of(server, held)["state"] == "pending"
        body = {"queue_name": QUEUE, "url": receiver.url, "version": "2"}
        assert server.put(f"{PATH}/{target['id']}", body).status_code == 200
        server.settle(held)


def test_a_queue_that_drains_is_pushed_again_when_it_resumes(server):
    with Receiver(done({})) as receiver:
        pushed_to(server, receiver.url)
        told = {"worker_id": "push:q", "command": "drain"}
        assert server.post("/workers/commands", told).status_code == 201
        instance = begun(server)
        server.settle(instance, "waiting")
        assert task_of(server, instance)["state"] == "pending"
        server.post("/workers/commands", told | {"command": "resume"})
        server.settle(instance)
        assert len(receiver.tasks) == 1


def test_so_many_are_on_their_way_at_once_and_no_receiver_holds_up_another(server, monkeypatch):
    monkeypatch.setattr(limits, "PUSHES_AT_ONCE", 3)
    monkeypatch.setattr(limits, "PUSHES_IN_ALL", 4)
    with Receiver(None) as slow, Receiver(done({})) as quick:
        pushed_to(server, slow.url)
        pushed_to(server, quick.url, queue="quick")
        waiting = [begun(server) for _ in range(9)]
        until(lambda: slow.there == 3)
        for _ in range(3):
            server.settle(begun(server, queue="quick"))
        assert (slow.there, slow.most, len(quick.tasks)) == (3, 3, 3)
        slow.go_on()
        until(lambda: len(slow.tasks) == 9)
        for task in slow.tasks:
            report(server, task, "complete", task["worker_id"], output={})
        for instance in waiting:
            server.settle(instance)
        assert slow.most == 3
    stats = server.get("/metrics", tenant="").text
    assert "detent_tasks_pushed_total 12.0" in stats


def test_a_server_that_stops_lets_what_is_on_its_way_arrive(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_BACKOFF_MS", 20)
    with (
        Receiver(None, then=done({"n": 1})) as receiver,
        house(tmp_path / "s.db", **INSIDE) as server,
    ):
        pushed_to(server, receiver.url)
        instance = begun(server)
        receiver.got()
        server.served.stop()
        receiver.go_on()
        assert server.engine.wait_for(instance, timeout=20) == "completed"
        assert len(receiver.tasks) == 1
