"""`Idempotency-Key`: a POST that comes again acts once and is answered the same."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.model import limits
from detent.ports.records import RecordQuery
from detent.service import requests
from tests.integration.web.house import house, instance_body, sequence_body

pytestmark = pytest.mark.req("SEQ-3")


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def once(server, path, body, named, **more):
    return server.post(path, body, headers={"idempotency-key": named}, **more)


def count(server, tenant):
    return len(server.get("/instances", tenant=tenant).json()["items"])


def test_the_same_request_again_gets_the_same_bytes_and_acts_once(server, tenant):
    body = instance_body(server.sequence(tenant=tenant), {"n": 1}, tenant_id=tenant)
    first = once(server, "/instances", body, "k-1", tenant=tenant)
    again = once(server, "/instances", body, "k-1", tenant=tenant)
    prefixed = once(server, "/api/v1/instances", body, "k-1", tenant=tenant)
    assert first.status_code == 201, first.text
    assert "idempotent-replayed" not in first.headers
    for each in (again, prefixed):
        assert (each.status_code, each.content) == (201, first.content)
        assert each.headers["content-type"] == first.headers["content-type"]
        assert each.headers["idempotent-replayed"] == "true"
        assert each.headers["x-request-id"] != first.headers["x-request-id"]
    assert count(server, tenant) == 1
    assert once(server, "/instances", body, "k-2", tenant=tenant).json() != first.json()
    assert count(server, tenant) == 2


def test_an_answer_without_a_body_is_given_again_too(server, tenant):
    sequence = server.sequence(tenant=tenant)
    for replayed in (None, "true"):
        answer = once(server, f"/sequences/{sequence}/deprecate", None, "k", tenant=tenant)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers.get("idempotent-replayed") == replayed


def test_another_request_under_the_same_key_is_refused(server, tenant):
    body = instance_body(server.sequence(tenant=tenant), tenant_id=tenant)
    once(server, "/instances", body, "k", tenant=tenant)
    for path, other in (
        ("/instances", {**body, "priority": "High"}),
        ("/instances/batch", {"instances": [body]}),
        ("/instances?x=1", body),
    ):
        answer = once(server, path, other, "k", tenant=tenant)
        assert (answer.status_code, answer.json()["code"]) == (422, "request.key_reused")
    assert count(server, tenant) == 1


def test_keys_are_a_tenants_own(server, tenant):
    body = {"session_key": "s", "tenant_id": ""}
    first = once(server, "/sessions", body, "k", tenant=tenant).json()
    other = once(server, "/sessions", body, "k", tenant=tenant + "2")
    assert other.status_code == 201
    assert "idempotent-replayed" not in other.headers
    assert other.json()["id"] != first["id"]


@pytest.mark.parametrize("key", ["x" * 256, "with space", "", "tab\tin"])
def test_a_key_of_another_form_is_refused(server, tenant, key):
    body = {"session_key": "s", "tenant_id": tenant}
    assert once(server, "/sessions", body, key, tenant=tenant).status_code == 400
    assert server.get(f"/sessions/by-key/{tenant}/s", tenant=tenant).status_code == 404
    assert once(server, "/sessions", body, "x" * 255, tenant=tenant).status_code == 201


def test_what_was_refused_is_tried_anew(server, tenant):
    body = sequence_body(tenant_id=tenant)
    start = instance_body(body["id"], tenant_id=tenant)
    assert once(server, "/instances", start, "k", tenant=tenant).status_code == 404
    assert server.post("/sequences", body, tenant=tenant).status_code == 201
    assert once(server, "/instances", start, "k", tenant=tenant).status_code == 201


def test_who_may_not_call_gets_no_answer_again(server, tenant):
    body = {"session_key": "s", "tenant_id": tenant}
    once(server, "/sessions", body, "k", tenant=tenant)
    key = {"tenant_id": tenant, "capabilities": ["auditor"]}
    auditor = server.post("/api-keys", key, tenant="").json()["secret"]
    assert once(server, "/sessions", body, "k", tenant=tenant, key="").status_code == 401
    assert once(server, "/sessions", body, "k", tenant=tenant, key=auditor).status_code == 403


def test_other_methods_and_public_doors_have_no_keys(server, tenant):
    headers = {"idempotency-key": "k"}
    for n in (1, 2):
        limit = {"max_count": n, "window_ms": 1000}
        put = server.put("/rate-limits/r", limit, tenant=tenant, headers=headers)
        assert (put.status_code, put.json()["max_count"]) == (200, n)
    for _ in range(2):
        assert server.post("/webhooks/nothing", {}, headers=headers).status_code == 404


def test_while_the_first_is_running_a_second_is_told_to_wait(tmp_path):
    reached, go = threading.Event(), threading.Event()
    with house(tmp_path / "s.db") as server, ThreadPoolExecutor(1) as pool:
        body = instance_body(server.sequence())
        parts = server.engine._parts
        submit = parts.submit

        def slow(*items):
            if any(getattr(item, "birth", None) is not None for item in items):
                reached.set()
                threading.Thread(target=lambda: (go.wait(20), submit(*items))).start()
            else:
                submit(*items)

        parts.submit = slow
        first = pool.submit(once, server, "/instances", body, "k")
        assert reached.wait(20)
        again = once(server, "/instances", body, "k")
        assert (again.status_code, again.json()["code"]) == (409, "request.in_progress")
        other = once(server, "/instances", {**body, "priority": "Low"}, "k")
        assert (other.status_code, other.json()["code"]) == (422, "request.key_reused")
        go.set()
        assert first.result().status_code == 201
        assert once(server, "/instances", body, "k").json() == first.result().json()


def lose_answers(server):
    """What a crash between an act and the keeping of its answer leaves."""

    def lose(store):
        for each in store.records(RecordQuery(requests.KIND, limit=1_000)):
            store.delete_record(requests.KIND, each.id)

    server.engine._parts.write(lose)


def test_after_a_crash_before_the_answer_was_kept_the_same_is_found_again(server, tenant):
    sequence = server.sequence({"type": "wait", "id": "w", "signal": "go"}, tenant=tenant)
    start = instance_body(sequence, {"n": 1}, tenant_id=tenant)
    first = once(server, "/instances", start, "k", tenant=tenant).json()["id"]
    path = f"/instances/{first}"
    slug = f"hook-{uuid.uuid4().hex}"
    name = server.get(f"/sequences/{sequence}", tenant=tenant).json()["name"]
    trigger = {"slug": slug, "sequence_name": name, "tenant_id": tenant}
    assert server.post("/triggers", trigger, tenant=tenant).status_code == 201
    server.settle(first, "waiting")
    acts = [
        ("/sessions", {"session_key": "s", "tenant_id": tenant}, "id"),
        (f"{path}/checkpoints", {"checkpoint_data": 1}, "id"),
        (f"{path}/signals", {"signal_type": {"custom": "other"}}, "signal_id"),
        (f"/triggers/{slug}/fire", {"n": 2}, "instance_id"),
        ("/instances", start, "id"),
    ]
    made = [once(server, at, body, "k", tenant=tenant) for at, body, _ in acts[:-1]]
    assert [each.status_code for each in made] == [422] * 4  # the key is that of the start
    made = [once(server, at, body, f"k-{at}", tenant=tenant) for at, body, _ in acts]
    assert {each.status_code for each in made} == {201}
    lose_answers(server)
    again = [once(server, at, body, f"k-{at}", tenant=tenant) for at, body, _ in acts]
    for (_at, _body, id), one, two in zip(acts, made, again, strict=True):
        assert two.status_code in (200, 201), two.text
        assert "idempotent-replayed" not in two.headers
        assert two.json()[id] == one.json()[id]
    assert len(server.get(f"{path}/checkpoints", tenant=tenant).json()) == 1
    assert count(server, tenant) == 3
    audit = server.get(f"{path}/audit?all=true", tenant=tenant).json()
    assert len([each for each in audit if "other" in str(each["details"])]) == 1


def test_an_answer_that_is_too_long_is_not_kept_and_its_act_not_repeated(server, tenant):
    body = {"template": "x" * (limits.REQUEST_ANSWER_BYTES + 1)}
    first = once(server, "/debug/template", body, "k", tenant=tenant)
    assert first.status_code == 200
    assert len(first.content) > limits.REQUEST_ANSWER_BYTES
    again = once(server, "/debug/template", body, "k", tenant=tenant)
    assert (again.status_code, again.json()["code"]) == (409, "request.spent")


def kept(server):
    return server.engine._parts.read(
        lambda store: store.records(RecordQuery(requests.KIND, limit=1_000))
    )


def test_an_answer_is_kept_for_a_day_and_goes_when_others_come(tmp_path, monkeypatch):
    with house(tmp_path / "s.db") as server:
        body = {"session_key": "s", "tenant_id": "acme"}
        first = once(server, "/sessions", body, "k").json()
        assert once(server, "/sessions", {**body, "session_key": "t"}, "k").status_code == 422
        monkeypatch.setattr(limits, "REQUEST_KEPT_MS", 0)
        again = once(server, "/sessions", body, "k")
        assert "idempotent-replayed" not in again.headers  # it acts again, and finds the same
        assert again.json() == first
        assert [each.key for each in kept(server)] == ["k"]
        assert once(server, "/sessions", {**body, "session_key": "u"}, "l").status_code == 201
        assert [each.key for each in kept(server)] == ["l"]


def test_the_secret_of_a_key_is_given_again_sealed_or_not_at_all(tmp_path):
    body = {"tenant_id": "acme"}
    with house(tmp_path / "sealed.db") as server:
        made = once(server, "/api-keys", body, "k", tenant="")
        again = once(server, "/api-keys", body, "k", tenant="")
        assert again.content == made.content
        secret = made.json()["secret"].encode()
        assert all(secret not in each.body for each in kept(server))
    with house(tmp_path / "bare.db", vault_key=None) as server:
        made = once(server, "/api-keys", body, "k", tenant="")
        assert made.status_code == 201
        again = once(server, "/api-keys", body, "k", tenant="")
        assert (again.status_code, again.json()["code"]) == (409, "request.spent")
        assert len(server.get("/api-keys", tenant="").json()) == 1
        assert made.json()["secret"].encode() not in kept(server)[0].body
        session = {"session_key": "s", "tenant_id": "acme"}
        first = once(server, "/sessions", session, "k")
        assert once(server, "/sessions", session, "k").content == first.content
    with house(tmp_path / "sealed.db", vault_key=None) as server:
        locked = once(server, "/api-keys", body, "k", tenant="")
        assert (locked.status_code, locked.json()["code"]) == (503, "vault.locked")


def test_keys_are_kept_over_a_restart(tmp_path):
    body = {"session_key": "s", "tenant_id": "acme"}
    with house(tmp_path / "s.db") as server:
        first = once(server, "/sessions", body, "k")
    with house(tmp_path / "s.db") as server:
        again = once(server, "/sessions", body, "k")
        assert again.content == first.content
        assert again.headers["idempotent-replayed"] == "true"
