"""Instances over HTTP (contract §10)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import instance_body, sequence_body, step

WAITING = {"type": "wait", "id": "w", "signal": "go"}


@pytest.mark.req("SEQ-1", "SEQ-2")
def test_an_instance_is_started_runs_and_is_shown(server):
    sequence = server.sequence(step("s1", "transform", params={"n": "{{data.n}}"}))
    made = server.post("/instances", instance_body(sequence, {"n": 7}, metadata={"a": "b"}))
    assert made.status_code == 201
    assert list(made.json()) == ["id"]
    server.settle(made.json()["id"])
    shown = server.get(f"/instances/{made.json()['id']}").json()
    assert shown["state"] == "completed"
    assert shown["sequence_id"] == sequence
    assert shown["context"]["data"] == {"n": 7}
    assert shown["priority"] == "Normal"
    assert shown["timezone"] == "UTC"
    assert shown["metadata"] == {"a": "b"}


@pytest.mark.req("SEQ-2")
def test_one_that_starts_later_shows_when(server):
    sequence = server.sequence()
    instance = server.instance(sequence, next_fire_at="2099-01-01T00:00:00Z")
    shown = server.get(f"/instances/{instance}").json()
    assert shown["state"] == "scheduled"
    assert shown["next_fire_at"] == "2099-01-01T00:00:00.000000Z"


def test_an_instance_may_live_in_another_namespace_than_its_sequence(server):
    sequence = server.sequence()
    instance = server.instance(sequence, namespace="nights")
    shown = server.get(f"/instances/{instance}").json()
    assert (shown["sequence_id"], shown["namespace"]) == (sequence, "nights")


@pytest.mark.req("SEQ-3")
def test_a_known_key_gives_the_first_instance(server):
    sequence = server.sequence()
    key = uuid.uuid4().hex
    first = server.post("/instances", instance_body(sequence, idempotency_key=key))
    again = server.post("/instances", instance_body(sequence, idempotency_key=key))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"id": first.json()["id"], "deduplicated": True}
    dry = server.post("/instances", instance_body(sequence, idempotency_key=key, dry_run=True))
    assert dry.status_code == 201


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"sequence_id": str(uuid.uuid4())}, 404),
        ({"namespace": "  "}, 400),
        ({"timezone": "Mars/Olympus"}, 400),
        ({"priority": "normal"}, 422),
        ({"sequence_id": None}, 422),
        ({"max_concurrency": 0, "concurrency_key": "k"}, 400),
        ({"context": {"data": {"x": "y" * 300_000}}}, 413),
    ],
)
def test_a_bad_start_is_refused_and_makes_nothing(server, change, status):
    tenant = f"t{uuid.uuid4().hex}"
    sequence = server.sequence(tenant=tenant)
    body = instance_body(sequence, tenant_id=tenant) | change
    answer = server.post("/instances", body, tenant=tenant)
    assert answer.status_code == status, answer.text
    assert server.get("/instances", tenant=tenant).json() == {"items": [], "has_more": False}


def test_data_that_does_not_fit_the_schema_is_named(server):
    sequence = server.sequence(input_schema={"type": "object", "required": ["email"]})
    answer = server.post("/instances", instance_body(sequence, {}))
    assert answer.status_code == 422
    assert answer.json()["code"] == "payload.schema"
    assert "email" in answer.json()["error"]


@pytest.mark.req("SEQ-3")
def test_a_batch_is_all_or_nothing(server):
    tenant = f"t{uuid.uuid4().hex}"
    sequence = server.sequence(tenant=tenant)
    item = instance_body(sequence, {"a": 1}, tenant_id=tenant)
    bad = item | {"sequence_id": str(uuid.uuid4())}
    refused = server.post("/instances/batch", {"instances": [item, bad]}, tenant=tenant)
    assert refused.status_code == 404
    assert server.get("/instances", tenant=tenant).json()["items"] == []
    made = server.post("/instances/batch", {"instances": [item] * 3}, tenant=tenant)
    assert (made.status_code, made.json()) == (201, {"count": 3})
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 3
    none = server.post("/instances/batch", {"instances": []}, tenant=tenant)
    assert (none.status_code, none.json()) == (200, {"count": 0})


def test_lists_are_filtered_and_their_pages_do_not_overlap(server):
    tenant = f"t{uuid.uuid4().hex}"
    sequence = server.sequence(WAITING, tenant=tenant)
    other = server.sequence(tenant=tenant)
    made = [
        server.instance(sequence, tenant=tenant, metadata={"team": "red" if n % 2 else "blue"})
        for n in range(4)
    ]
    done = server.instance(other, tenant=tenant)
    server.settle(done)
    for each in made:
        server.settle(each, "waiting")

    def ids(query):
        page = server.get(f"/instances?{query}", tenant=tenant)
        assert page.status_code == 200, page.text
        return [row["id"] for row in page.json()["items"]]

    assert ids("") == [done, *reversed(made)]
    assert ids("limit=2") + ids("limit=2&offset=2") + ids("offset=4") == ids("")
    assert ids("state=completed") == [done]
    assert ids("state=completed,waiting") == ids("")
    assert ids(f"sequence_id={sequence}&state=waiting") == list(reversed(made))
    assert ids("metadata.team=red") == [made[3], made[1]]
    assert ids("namespace=nowhere") == []
    assert server.get("/instances?state=dancing", tenant=tenant).status_code == 400


def test_another_tenant_sees_nothing_of_it(server):
    instance = server.instance(server.sequence())
    assert server.get(f"/instances/{instance}", tenant="other").status_code == 404
    assert server.get(f"/instances/{instance}", tenant="other").json()["code"] == (
        "instance.not_found"
    )
    sequence = server.sequence()
    body = instance_body(sequence, tenant_id="other")
    assert server.post("/instances", body, tenant="other").status_code == 404
    batch = server.post("/instances/batch", {"instances": [body]}, tenant="other")
    assert batch.status_code == 403
    assert server.post("/instances", instance_body(sequence), tenant="other").status_code == 403


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"{", 400),
        (b'{"a": 1, "a": 2}', 400),
        (b'{"a": NaN}', 400),
        (b'{"a": 1' + b"0" * 40 + b"}", 400),
        (b'{"a": 1e999}', 400),
        (b'{"a": "\\ud800"}', 400),
        (b'{"a": "\\u0000"}', 400),
        (b"[" * 5_000, 400),
        (b"[" * 150 + b"]" * 150, 400),
        (b"\xff\xfe", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"sequence_id": 1}', 422),
    ],
)
def test_what_json_lets_pass_in_silence_is_refused(server, text, status):
    headers = {"content-type": "application/json"}
    answer = server.call("POST", "/instances", content=text, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.text
    assert answer.headers["x-detent-code"]


def test_a_body_must_say_that_it_is_json_and_must_not_be_too_long(server):
    headers = {"content-type": "text/plain"}
    assert server.call("POST", "/instances", content=b"{}", headers=headers).status_code == 415
    headers = {"content-type": "application/json"}
    long = b'"' + b"x" * 11_000_000 + b'"'
    assert server.call("POST", "/instances", content=long, headers=headers).status_code == 413


def test_sequences_are_not_found_by_odd_ids(server):
    assert server.get("/instances/not-a-uuid").status_code == 400
    assert server.get(f"/instances/{uuid.uuid4()}").status_code == 404
    assert server.post("/sequences", sequence_body(), tenant="").status_code == 400
