"""Instances (contract §10)."""

from __future__ import annotations

import threading
import uuid

import pytest

from detent.service.gates import gate_id
from tests.integration.web.house import instance_body, step

pytestmark = pytest.mark.contract("10")

LATER = "2099-01-01T00:00:00Z"
NOBODY = "00000000-0000-7000-8000-000000000000"
WAIT = {"type": "wait", "id": "w", "signal": "x"}
FIELDS = {
    "id",
    "sequence_id",
    "tenant_id",
    "namespace",
    "state",
    "next_fire_at",
    "priority",
    "timezone",
    "metadata",
    "context",
    "created_at",
    "updated_at",
}
OPTIONAL = {
    "concurrency_key",
    "max_concurrency",
    "idempotency_key",
    "session_id",
    "parent_instance_id",
    "budget",
}


def start(server, sequence, **fields):
    return server.post("/instances", instance_body(sequence, **fields))


def moved(server, instance, **body):
    return server.patch(f"/instances/{instance}/state", body)


# the object --------------------------------------------------------------------------------------


def test_an_instance_has_every_field_and_optional_ones_only_when_set(server):
    bare = server.shown(server.instance(server.sequence(), next_fire_at=LATER))
    assert set(bare) >= FIELDS
    assert not set(bare) & OPTIONAL
    session = server.post("/sessions", {"tenant_id": "acme", "session_key": uuid.uuid4().hex})
    full = server.shown(
        server.instance(
            server.sequence(),
            next_fire_at=LATER,
            concurrency_key="k",
            max_concurrency=3,
            idempotency_key=uuid.uuid4().hex,
            session_id=session.json()["id"],
            budget={"max_steps": 9, "max_total_tokens": 100},
        )
    )
    assert set(full) >= FIELDS | (OPTIONAL - {"parent_instance_id"})
    assert (full["concurrency_key"], full["max_concurrency"]) == ("k", 3)
    assert full["budget"] == {"max_steps": 9, "max_total_tokens": 100}


def test_defaults_are_those_of_the_contract(server):
    sequence = server.sequence()
    body = {"sequence_id": sequence, "tenant_id": "acme", "namespace": "n", "next_fire_at": LATER}
    shown = server.shown(server.post("/instances", body).json()["id"])
    assert (shown["priority"], shown["timezone"], shown["metadata"]) == ("Normal", "UTC", None)
    assert shown["context"]["data"] is None
    assert (shown["state"], shown["next_fire_at"]) == ("scheduled", "2099-01-01T00:00:00.000000Z")
    assert server.outputs(shown["id"]) == []


def test_what_is_the_engines_to_set_is_ignored(server):
    made = start(
        server, server.sequence(), state="completed", parent_instance_id=NOBODY, next_fire_at=LATER
    )
    assert made.status_code == 201
    shown = server.shown(made.json()["id"])
    assert shown["state"] == "scheduled"
    assert "parent_instance_id" not in shown


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", None])
def test_a_past_instant_or_none_is_now(server, at):
    instance = server.instance(server.sequence(), next_fire_at=at)
    assert server.settle(instance) == "completed"


@pytest.mark.parametrize("metadata", [None, 5, "text", [1], {"a": {"b": 1}}])
def test_metadata_may_be_anything(server, metadata):
    instance = server.instance(server.sequence(), metadata=metadata, next_fire_at=LATER)
    assert server.shown(instance)["metadata"] == metadata


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "UTC"])
def test_a_zone_is_kept_and_an_unknown_one_is_400(server, zone):
    instance = server.instance(server.sequence(), timezone=zone, next_fire_at=LATER)
    assert server.shown(instance)["timezone"] == zone
    assert start(server, server.sequence(), timezone="Mars/Olympus").status_code == 400


# creating ----------------------------------------------------------------------------------------


def test_the_engines_own_instances_are_nobodys_to_start_or_signal(server, tenant):
    sequence = server.sequence(tenant=tenant)
    body = instance_body(sequence, tenant_id=tenant, namespace="detent")
    assert server.post("/instances", body, tenant=tenant).status_code == 400
    server.put("/rate-limits/k", {"max_count": 1, "window_seconds": 1}, tenant=tenant)
    gate = gate_id(tenant)
    for word in ("pause", "cancel"):
        signal = {"signal_type": word}
        answer = server.post(f"/instances/{gate}/signals", signal, tenant=tenant)
        assert answer.status_code == 404
        assert server.post(f"/instances/{gate}/{word}", tenant=tenant).status_code == 404
    params = {"instance_id": gate, "signal_type": "cancel"}
    sends = server.sequence(step("s", "send_signal", params=params), tenant=tenant)
    assert server.settle(server.instance(sends, tenant=tenant)) == "failed"
    assert server.get("/instances?namespace=detent", tenant=tenant).json()["items"] == []


def test_an_unknown_sequence_is_404_and_unfit_data_is_422_with_its_place(server):
    assert start(server, NOBODY).status_code == 404
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    answer = server.post(
        "/instances", instance_body(server.sequence(input_schema=schema), {"n": "x"})
    )
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("unprocessable entity: ")
    assert "/n" in answer.json()["error"]


def test_a_known_key_gives_the_first_whatever_has_become_of_it(server, tenant):
    sequence = server.sequence(tenant=tenant)
    key = uuid.uuid4().hex
    body = instance_body(sequence, tenant_id=tenant, idempotency_key=key)
    first = server.post("/instances", body, tenant=tenant)
    assert (first.status_code, list(first.json())) == (201, ["id"])
    server.settle(first.json()["id"])
    other = body | {"sequence_id": server.sequence(WAIT, tenant=tenant), "context": {"data": 1}}
    for again in (body, other):
        found = server.post("/instances", again, tenant=tenant)
        assert found.status_code == 200, found.text
        assert found.json() == {"id": first.json()["id"], "deduplicated": True}
    dry = server.post("/instances", body | {"dry_run": True}, tenant=tenant)
    assert dry.status_code == 201
    elsewhere = server.sequence(tenant="other-one")
    foreign = body | {"sequence_id": elsewhere, "tenant_id": "other-one"}
    assert server.post("/instances", foreign, tenant="other-one").status_code == 201


def test_of_many_at_once_with_one_key_one_makes_and_the_others_find(server):
    sequence, key = server.sequence(), uuid.uuid4().hex
    answers = []

    def create():
        answers.append(start(server, sequence, idempotency_key=key))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_an_empty_key_is_no_key(server):
    sequence = server.sequence()
    made = [start(server, sequence, idempotency_key="") for _ in range(2)]
    assert made[0].status_code == 201
    assert made[1].status_code in (201, 409)


def test_a_batch_is_all_or_nothing_and_may_be_empty(server, tenant):
    sequence = server.sequence(tenant=tenant)
    good = instance_body(sequence, tenant_id=tenant)
    post = lambda items: server.post("/instances/batch", {"instances": items}, tenant=tenant)  # noqa: E731
    assert (post([]).status_code, post([]).json()) == (200, {"count": 0})
    made = post([good] * 4)
    assert (made.status_code, made.json()) == (201, {"count": 4})
    for bad, status in (
        (good | {"sequence_id": NOBODY}, 404),
        (good | {"namespace": ""}, 400),
        (good | {"timezone": "Mars"}, 400),
        (good | {"tenant_id": "somebody-else"}, 403),
    ):
        assert post([good, bad]).status_code == status
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 4


def test_a_batch_of_ten_thousand_is_the_most(server, tenant):
    good = instance_body(server.sequence(tenant=tenant), tenant_id=tenant, next_fire_at=LATER)
    path = "/instances/batch"
    assert server.post(path, {"instances": [good] * 10_001}, tenant=tenant).status_code == 400


def test_keys_in_a_batch_give_what_is_there(server, tenant):
    sequence = server.sequence(tenant=tenant)
    good = instance_body(sequence, tenant_id=tenant, idempotency_key="k", next_fire_at=LATER)
    for _ in range(2):
        answer = server.post("/instances/batch", {"instances": [good]}, tenant=tenant)
        assert answer.status_code in (200, 201, 409), answer.text
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 1


# reading -----------------------------------------------------------------------------------------


def test_lists_are_filtered_newest_first_and_do_not_overlap(server, tenant):
    sequence = server.sequence(WAIT, tenant=tenant)
    made = [
        server.instance(
            sequence, tenant=tenant, metadata={"team": "red", "n": str(n), "deep": {"a": 1}}
        )
        for n in range(5)
    ]
    for each in made:
        server.settle(each, "waiting")
    ids = lambda query: [  # noqa: E731
        row["id"] for row in server.get(f"/instances?{query}", tenant=tenant).json()["items"]
    ]
    assert ids("limit=2&offset=0") + ids("limit=2&offset=2") + ids("limit=2&offset=4") == ids("")
    assert ids("metadata.team=red&metadata.n=3") == [made[3]]
    assert ids("metadata.team=blue") == []
    assert ids("state=waiting,completed") == ids("")
    assert ids("state=completed") == []
    assert ids(f"sequence_id={sequence}&namespace=default") == ids("")
    assert server.get("/instances?state=waiting,dancing", tenant=tenant).status_code == 400


def test_pages_stay_as_they_are_while_instances_move(server, tenant):
    sequence = server.sequence(WAIT, WAIT | {"id": "w2"}, tenant=tenant)
    made = [server.instance(sequence, tenant=tenant) for _ in range(4)]
    for each in made:
        server.settle(each, "waiting")
    first = server.get("/instances?limit=2", tenant=tenant).json()["items"]
    body = {"signal_type": {"custom": "x"}}
    assert server.post(f"/instances/{made[0]}/signals", body, tenant=tenant).status_code == 201
    second = server.get("/instances?limit=2&offset=2", tenant=tenant).json()["items"]
    assert [row["id"] for row in first + second] == made[::-1]


def test_dead_letters_are_a_bare_array_of_the_tenants_own(server, tenant):
    failing = server.sequence(step("f", "fail"), tenant=tenant)
    made = server.instance(failing, tenant=tenant, metadata={"team": "red"})
    assert server.settle(made) == "failed"
    found = server.get("/instances/dlq", tenant=tenant).json()
    assert [row["id"] for row in found] == [made]
    assert found[0]["state"] == "failed"
    assert server.get("/instances/dlq?metadata.team=blue", tenant=tenant).json() == []
    assert server.get("/instances/dlq", tenant=f"{tenant}-other").json() == []
    groups = server.get("/instances/dlq/groups", tenant=tenant).json()
    assert groups[0]["count"] == 1


def test_children_of_nobody_are_404_and_of_one_without_are_none(server):
    assert server.get(f"/instances/{NOBODY}/children").status_code == 404
    assert server.get(f"/instances/{server.instance(server.sequence())}/children").json() == []


# modifying ---------------------------------------------------------------------------------------


def held(server, state):
    """An instance in a state, by whatever leads there."""
    if state in ("scheduled", "paused"):
        instance = server.instance(server.sequence(), next_fire_at=LATER)
        if state == "paused":
            server.post(f"/instances/{instance}/signals", {"signal_type": "pause"})
    else:
        block = {"failed": step("f", "fail"), "completed": step("a")}.get(state, WAIT)
        instance = server.instance(server.sequence(block))
        if state == "cancelled":
            server.settle(instance, "waiting")
            server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"})
    server.settle(instance, state)
    return instance


ALLOWED = {
    "scheduled": {"paused", "cancelled"},
    "waiting": {"scheduled", "cancelled", "failed"},
    "paused": {"scheduled", "cancelled"},
    "failed": {"scheduled"},
    "completed": set(),
    "cancelled": set(),
}


@pytest.mark.parametrize("before", ALLOWED)
@pytest.mark.parametrize("after", ["scheduled", "paused", "completed", "failed", "cancelled"])
def test_a_state_is_set_as_the_life_cycle_allows(server, before, after):
    instance = held(server, before)
    answer = moved(server, instance, state=after)
    if after in ALLOWED[before]:
        assert (answer.status_code, answer.content) == (200, b""), answer.text
    elif after == before:
        assert answer.status_code in (200, 400)
    else:
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"].startswith("invalid argument: ")
        assert server.shown(instance)["state"] == before


def test_a_scheduled_state_may_name_its_instant(server):
    instance = held(server, "paused")
    assert moved(server, instance, state="scheduled", next_fire_at=LATER).status_code == 200
    assert server.shown(instance)["next_fire_at"] == "2099-01-01T00:00:00.000000Z"
    assert moved(server, NOBODY, state="paused").status_code == 404
    assert moved(server, instance, state="dancing").status_code == 422


def test_a_child_that_is_driven_to_its_end_wakes_its_parent(server):
    name = f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(WAIT, name=name)
    block = {"type": "sub_sequence", "id": "s", "sequence_name": name}
    for state, end in (("cancelled", "failed"), ("failed", "failed")):
        parent = server.instance(server.sequence(block))
        server.settle(parent, "waiting")
        (child,) = server.get(f"/instances/{parent}/children").json()
        server.settle(child["id"], "waiting")
        assert moved(server, child["id"], state=state).status_code == 200
        assert server.settle(parent) == end


@pytest.mark.parametrize("state", ["scheduled", "waiting", "paused", "completed", "failed"])
def test_data_is_replaced_in_any_state(server, state):
    instance = held(server, state)
    path = f"/instances/{instance}/context"
    for data in ({"a": 1, "b": 2}, {"c": 3}, None):
        answer = server.patch(path, {"context": {"data": data}})
        assert (answer.status_code, answer.content) == (200, b""), answer.text
        assert server.shown(instance)["context"]["data"] == data
    assert server.patch(path, {"context": 5}).status_code == 422
    assert server.patch(f"/instances/{NOBODY}/context", {"context": {}}).status_code == 404
