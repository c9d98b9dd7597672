"""Sequences on their way (contract §4.3): removed, moved along, published; migrations."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import instance_body, sequence_body, step

pytestmark = pytest.mark.contract("4")

WAIT = {"type": "wait", "id": "w", "signal": "x"}
LATER = "2099-01-01T00:00:00Z"


def stored(server, *blocks, tenant="acme", **fields):
    body = sequence_body(*blocks, tenant_id=tenant, **fields)
    answer = server.post("/sequences", body, tenant=tenant)
    assert answer.status_code == 201, answer.text
    return body


# removing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["scheduled", "waiting", "paused"])
def test_a_sequence_that_is_in_use_is_not_removed(server, state):
    id = stored(server, WAIT)["id"]
    instance = server.instance(id, **({} if state == "waiting" else {"next_fire_at": LATER}))
    if state == "paused":
        server.post(f"/instances/{instance}/signals", {"signal_type": "pause"})
    server.settle(instance, state)
    answer = server.delete(f"/sequences/{id}")
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("conflict: ")
    assert server.get(f"/sequences/{id}").status_code == 200


def test_one_that_lives_in_another_namespace_holds_its_sequence_too(server, tenant):
    id = stored(server, WAIT, tenant=tenant)["id"]
    instance = server.instance(id, tenant=tenant, namespace="nights")
    assert server.delete(f"/sequences/{id}", tenant=tenant).status_code == 409
    server.post(f"/instances/{instance}/cancel", tenant=tenant)
    assert server.delete(f"/sequences/{id}", tenant=tenant).status_code == 204


def test_the_same_content_in_another_namespace_holds_nothing(server, tenant):
    first = stored(server, WAIT, tenant=tenant, namespace="one")
    twin = first | {"id": str(uuid.uuid4()), "namespace": "two"}
    server.post("/sequences", twin, tenant=tenant)
    server.instance(first["id"], tenant=tenant, namespace="one")
    assert server.delete(f"/sequences/{first['id']}", tenant=tenant).status_code == 409
    assert server.delete(f"/sequences/{twin['id']}", tenant=tenant).status_code == 204


def test_removing_takes_ended_instances_and_schedules_along(server, tenant):
    id = stored(server, step("a"), tenant=tenant)["id"]
    instance = server.instance(id, tenant=tenant)
    server.settle(instance)
    cron = {
        "tenant_id": tenant,
        "namespace": "default",
        "sequence_id": id,
        "cron_expr": "0 0 1 1 *",
    }
    schedule = server.post("/cron", cron, tenant=tenant).json()["id"]
    assert server.delete(f"/sequences/{id}", tenant=tenant).status_code == 204
    assert server.get(f"/sequences/{id}", tenant=tenant).status_code == 404
    assert server.delete(f"/sequences/{id}", tenant=tenant).status_code == 404
    assert server.get(f"/cron/{schedule}", tenant=tenant).status_code == 404
    assert server.get("/cron", tenant=tenant).json() == []
    assert server.get(f"/instances/{instance}", tenant=tenant).status_code == 404
    assert server.get(f"/instances/{instance}/outputs", tenant=tenant).status_code == 404
    assert server.get("/instances", tenant=tenant).json()["items"] == []


def test_a_removed_name_and_version_can_be_stored_again(server, tenant):
    body = stored(server, step("a"), tenant=tenant)
    assert server.delete(f"/sequences/{body['id']}", tenant=tenant).status_code == 204
    again = body | {"blocks": [step("other")]}
    assert server.post("/sequences", again, tenant=tenant).status_code == 201
    instance = server.instance(body["id"], tenant=tenant)
    server.settle(instance)
    rows = server.get(f"/instances/{instance}/outputs", tenant=tenant).json()
    assert [row["block_id"] for row in rows] == ["other"]


# migrating ---------------------------------------------------------------------------------------


def migrate(server, instance, target, **more):
    body = {"instance_id": instance, "target_sequence_id": target}
    return server.post("/sequences/migrate-instance", body, **more)


def test_an_instance_is_moved_to_another_version_and_runs_it(server):
    first = stored(server, WAIT, step("old"))
    second = stored(server, WAIT, step("new"), name=first["name"], version=2)
    instance = server.instance(first["id"])
    server.settle(instance, "waiting")
    answer = migrate(server, instance, second["id"])
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "migrated": True,
        "instance_id": instance,
        "from_sequence_id": first["id"],
        "to_sequence_id": second["id"],
    }
    assert server.shown(instance)["sequence_id"] == second["id"]
    server.signal(instance, "x")
    assert server.settle(instance) == "completed"
    assert [block for block, _ in server.outputs(instance)][-1] == "new"


@pytest.mark.parametrize("hold", ["paused", "scheduled"])
def test_one_that_has_not_begun_can_be_moved_too(server, hold):
    first, second = stored(server, step("old")), stored(server, step("new"))
    instance = server.instance(first["id"], next_fire_at=LATER)
    if hold == "paused":
        server.post(f"/instances/{instance}/signals", {"signal_type": "pause"})
        server.settle(instance, "paused")
    assert migrate(server, instance, second["id"]).status_code == 200
    assert server.shown(instance)["sequence_id"] == second["id"]


def test_a_migration_that_cannot_be_is_refused(server):
    sequence, nobody = stored(server, step("a"))["id"], str(uuid.uuid4())
    done = server.instance(sequence)
    server.settle(done)
    target = stored(server, step("a"))["id"]
    assert migrate(server, nobody, target).status_code == 404
    assert migrate(server, done, nobody).status_code == 404
    assert migrate(server, done, target).status_code == 400


# publishing --------------------------------------------------------------------------------------


MOVES = {
    "draft": ("staging", "unpublished"),
    "staging": ("production", "unpublished"),
    "production": ("unpublished",),
    "unpublished": (),
}


@pytest.mark.parametrize("before", MOVES)
@pytest.mark.parametrize("after", MOVES)
def test_a_status_moves_only_as_the_table_says(server, before, after):
    id = stored(server, status=before)["id"]
    answer = server.post(f"/sequences/{id}/status", {"status": after})
    if after in MOVES[before]:
        assert (answer.status_code, answer.content) == (204, b"")
        assert server.get(f"/sequences/{id}").json()["status"] == after
    else:
        assert answer.status_code == 400
        assert server.get(f"/sequences/{id}").json()["status"] == before


def test_promoting_publishes_and_taking_back_unpublishes(server, tenant):
    body = stored(server, tenant=tenant, status="draft")
    path = f"/sequences/{body['name']}"
    made = server.post(f"{path}/promote", tenant=tenant)
    assert made.status_code == 201, made.text
    assert set(made.json()) == {"id", "version"}
    shown = server.get(f"/sequences/{made.json()['id']}", tenant=tenant).json()
    assert shown["status"] == "production"
    assert server.post(f"{path}/unpublish", tenant=tenant).status_code == 204
    gone = server.get(f"/sequences/{body['id']}", tenant=tenant).json()
    assert gone["status"] == "unpublished"
    assert server.post(f"{path}/unpublish", {"delete": True}, tenant=tenant).status_code == 204
    assert server.get(f"/sequences/{body['id']}", tenant=tenant).status_code == 404
    for move in ("promote", "unpublish"):
        assert server.post(f"/sequences/nobody/{move}", tenant=tenant).status_code == 404


# preflight ---------------------------------------------------------------------------------------


def test_a_preflight_reports_on_a_stored_sequence_and_on_a_new_one(server, tenant):
    body = stored(server, step("a", params={"k": "credentials://none"}), tenant=tenant)
    for answer in (
        server.get(f"/sequences/{body['id']}/preflight", tenant=tenant),
        server.post("/sequences/preflight", body, tenant=tenant),
    ):
        assert answer.status_code == 200, answer.text
        report = answer.json()
        assert set(report) == {
            "sequence_name",
            "sequence_version",
            "overall",
            "checks",
            "generated_at",
        }
        assert (report["sequence_name"], report["sequence_version"]) == (body["name"], 1)
        assert report["overall"] == "fail"
        for check in report["checks"]:
            assert {"id", "status", "summary"} <= set(check)
        bad = next(check for check in report["checks"] if check["status"] == "fail")
        assert "none" in bad["findings"][0]
    assert server.get(f"/sequences/{uuid.uuid4()}/preflight").status_code == 404


def test_new_versions_are_new_rows_and_old_instances_keep_theirs(server, tenant):
    first = stored(server, WAIT, tenant=tenant)
    made = server.post("/instances", instance_body(first["id"], tenant_id=tenant), tenant=tenant)
    second = first | {"id": str(uuid.uuid4()), "version": 2}
    assert server.post("/sequences", second, tenant=tenant).status_code == 201
    shown = server.get(f"/instances/{made.json()['id']}", tenant=tenant).json()
    assert shown["sequence_id"] == first["id"]
