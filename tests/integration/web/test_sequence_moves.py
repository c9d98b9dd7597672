"""Sequences on their way over HTTP (contract §4.3): deploy, promote, unpublish, migrate, check."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import sequence_body, step

WAIT = {"type": "wait", "id": "w", "signal": "go"}


def deployed(*blocks, **fields):
    """A body of PUT: what its author need not choose is left out."""
    body = sequence_body(*blocks, **fields)
    for name in ("id", "created_at"):
        body.pop(name)
    return body


def status(server, id):
    return server.get(f"/sequences/{id}").json()["status"]


@pytest.mark.req("SEQ-1")
def test_a_version_is_deployed_once_however_often_it_is_sent(server):
    body = deployed(step("a"))
    first = server.put("/sequences", body)
    assert first.status_code == 200, first.text
    again = server.put("/api/v1/sequences", body)
    assert again.json() == first.json()
    assert (first.json()["name"], first.json()["version"]) == (body["name"], 1)
    shown = server.get("/sequences/by-name", params={**_named(body)}).json()
    assert shown["id"] == first.json()["id"]


def test_other_content_under_the_same_version_is_refused(server):
    body = deployed(step("a"))
    server.put("/sequences", body)
    other = server.put("/sequences", {**body, "blocks": [step("b")]})
    assert (other.status_code, other.json()["code"]) == (409, "definition.conflict")
    assert other.json()["details"]["faults"][0][0] == "version"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"blocks": []}, 400, "definition.invalid"),
        ({"blocks": [{"type": "dance", "id": "a"}]}, 400, "definition.invalid"),
        ({"tenant_id": "other"}, 403, "request.forbidden"),
        ({"tenant_id": 7}, 400, "definition.invalid"),
        ({"namespace": "detent"}, 400, "request.invalid"),
    ],
)
def test_a_deployment_that_cannot_be_is_refused(server, change, status, code):
    answer = server.put("/sequences", deployed(step("a"), **change))
    assert (answer.status_code, answer.headers["x-detent-code"]) == (status, code), answer.text


@pytest.mark.req("SEQ-4")
def test_the_highest_version_on_its_way_is_promoted(server):
    name = f"p-{uuid.uuid4().hex[:8]}"
    for version, state in ((1, "production"), (2, "draft"), (3, "staging")):
        server.sequence(step("a"), name=name, version=version, status=state)
    made = server.post(f"/sequences/{name}/promote")
    assert (made.status_code, made.json()["version"]) == (201, 3)
    assert status(server, made.json()["id"]) == "production"
    assert server.post(f"/sequences/{name}/promote").json()["version"] == 2
    assert server.post(f"/sequences/{name}/promote").status_code == 400
    assert server.post("/sequences/nobody/promote").status_code == 404
    assert server.post(f"/sequences/{name}/promote", tenant="other").status_code == 404


@pytest.mark.req("SEQ-4")
def test_a_name_is_taken_back_and_removed_where_nothing_runs(server):
    name = f"u-{uuid.uuid4().hex[:8]}"
    ids = [server.sequence(WAIT, name=name, version=version) for version in (1, 2)]
    assert server.post(f"/sequences/{name}/unpublish").status_code == 204
    assert [status(server, id) for id in ids] == ["unpublished", "unpublished"]
    instance = server.instance(ids[0])
    used = server.post(f"/sequences/{name}/unpublish", {"delete": True})
    assert (used.status_code, used.json()["code"]) == (409, "definition.in_use")
    assert all(server.get(f"/sequences/{id}").status_code == 200 for id in ids)
    server.engine.cancel(instance)
    assert server.post(f"/sequences/{name}/unpublish", {"delete": True}).status_code == 204
    assert [server.get(f"/sequences/{id}").status_code for id in ids] == [404, 404]
    assert server.post(f"/sequences/{name}/unpublish").status_code == 404


@pytest.mark.req("SEQ-4")
def test_an_instance_is_migrated_to_another_version(server):
    name = f"m-{uuid.uuid4().hex[:8]}"
    old = server.sequence(WAIT, name=name)
    new = server.sequence(WAIT, step("after"), name=name, version=2)
    instance = server.instance(old)
    server.settle(instance, "waiting")
    body = {"instance_id": instance, "target_sequence_id": new}
    made = server.post("/sequences/migrate-instance", body)
    assert (made.status_code, made.json()) == (
        200,
        {
            "migrated": True,
            "instance_id": instance,
            "from_sequence_id": old,
            "to_sequence_id": new,
        },
    )
    assert server.get(f"/instances/{instance}").json()["sequence_id"] == new


def test_a_migration_that_cannot_be_is_refused(server):
    sequence = server.sequence(WAIT)
    foreign = server.sequence(WAIT, tenant="other")
    unknown = server.sequence(WAIT, step("x", "nobody_has_it"))
    instance = server.instance(sequence)
    server.settle(instance, "waiting")

    def moved(instance, target):
        body = {"instance_id": instance, "target_sequence_id": target}
        return server.post("/sequences/migrate-instance", body).status_code

    nobody = str(uuid.uuid4())
    assert moved(nobody, sequence) == 404
    assert moved(instance, nobody) == 404
    assert moved(instance, foreign) == 403
    assert moved(instance, unknown) == 400
    server.engine.cancel(instance)
    assert moved(instance, sequence) == 400
    other = server.instance(foreign, tenant="other")
    assert moved(other, foreign) == 404


def test_a_preflight_says_what_is_missing_before_anything_is_started(server):
    body = deployed(
        step("a", "nobody_has_it", params={"token": "credentials://missing"}),
        step("b", "noop", rate_limit_key="unlimited", pool="nowhere"),
        {"type": "sub_sequence", "id": "c", "sequence_name": "not-there", "version": 2},
    )
    report = server.post("/sequences/preflight", body)
    assert report.status_code == 200, report.text
    told = report.json()
    assert (told["sequence_name"], told["sequence_version"]) == (body["name"], 1)
    assert told["overall"] == "fail"
    assert told["generated_at"].endswith("Z")
    found = {check["id"]: check for check in told["checks"]}
    assert {id: check["status"] for id, check in found.items()} == {
        "handlers": "fail",
        "expressions": "pass",
        "sub_sequences": "fail",
        "credentials": "fail",
        "pools": "fail",
        "limits": "warn",
    }
    assert "nobody_has_it" in found["handlers"]["findings"][0]
    assert "'not-there'" in found["sub_sequences"]["findings"][0]
    assert "findings" not in found["expressions"]


def test_a_stored_sequence_that_needs_nothing_passes_its_preflight(server):
    child = server.sequence(step("a"), name=f"child-{uuid.uuid4().hex[:8]}")
    name = server.get(f"/sequences/{child}").json()["name"]
    id = server.sequence({"type": "sub_sequence", "id": "c", "sequence_name": name})
    report = server.get(f"/sequences/{id}/preflight").json()
    assert report["overall"] == "pass"
    assert {check["status"] for check in report["checks"]} == {"pass"}
    assert server.get(f"/sequences/{id}/preflight", tenant="other").status_code == 404
    assert server.post("/sequences/preflight", {"name": "x"}).status_code == 400


def _named(body):
    return {name: body[name] for name in ("tenant_id", "namespace", "name")}
