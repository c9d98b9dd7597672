"""Sequences over HTTP (contract §4)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import sequence_body, step


@pytest.mark.req("SEQ-1", "SEQ-4")
def test_a_sequence_is_stored_and_shown_with_its_defaults(server):
    body = sequence_body(step("s1", "log", params={"message": "hi"}, timeout=0.2))
    made = server.post("/api/v1/sequences", body)
    assert made.status_code == 201
    assert made.json() == {"id": body["id"]}
    shown = server.get(f"/sequences/{body['id']}").json()
    assert {name: shown[name] for name in ("id", "tenant_id", "namespace", "version")} == {
        "id": body["id"],
        "tenant_id": "acme",
        "namespace": "default",
        "version": 1,
    }
    assert shown["blocks"][0]["timeout"] == 200
    assert shown["blocks"][0]["retry"] is None
    assert shown["status"] == "production"
    assert shown["deprecated"] is False


def test_an_unknown_handler_is_a_warning(server):
    made = server.post("/sequences", sequence_body(step("s1", "nobody_has_it")))
    assert made.status_code == 201
    assert "nobody_has_it" in made.json()["warnings"][0]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"created_at": None, "blocks": []}, 422, "created_at"),
        ({"blocks": []}, 400, "sequence has no blocks"),
        ({"tenant_id": ""}, 422, "tenant_id"),
        ({"version": "one"}, 422, "version"),
        ({"id": "no-uuid"}, 422, "UUID"),
        ({"blocks": [{"type": "dance", "id": "a"}]}, 422, "dance"),
        ({"blocks": [step("a"), step("a")]}, 400, "a"),
        (
            {
                "blocks": [
                    {
                        "type": "loop",
                        "id": "l",
                        "condition": "true",
                        "body": [step("a")],
                        "max_iterations": 0,
                    }
                ]
            },
            400,
            "max_iterations must be > 0",
        ),
    ],
)
def test_a_bad_sequence_is_refused_with_the_status_of_the_contract(server, change, status, said):
    answer = server.post("/sequences", sequence_body() | change)
    assert answer.status_code == status, answer.text
    assert said in answer.text


def test_the_same_id_or_version_is_a_conflict(server):
    body = sequence_body()
    assert server.post("/sequences", body).status_code == 201
    again = server.post("/sequences", body)
    assert again.status_code == 409
    assert again.json()["error"].startswith("already exists: ")
    assert server.post("/sequences", body | {"id": str(uuid.uuid4())}).status_code == 409


@pytest.mark.req("SEQ-4")
def test_look_ups_by_name_leave_deprecated_versions_out(server):
    first = sequence_body(version=1)
    second = first | {"id": str(uuid.uuid4()), "version": 2}
    for body in (first, second):
        assert server.post("/sequences", body).status_code == 201
    place = f"tenant_id=acme&namespace=default&name={first['name']}"
    assert server.get(f"/sequences/by-name?{place}").json()["version"] == 2
    assert server.post(f"/sequences/{second['id']}/deprecate").status_code == 204
    assert server.post(f"/sequences/{second['id']}/deprecate").status_code == 204
    assert server.get(f"/sequences/by-name?{place}").json()["version"] == 1
    assert server.get(f"/sequences/by-name?{place}&version=2").json()["deprecated"] is True
    assert [row["version"] for row in server.get(f"/sequences/versions?{place}").json()] == [1]
    assert server.get(f"/sequences/{second['id']}").json()["deprecated"] is True
    assert server.post(f"/sequences/{first['id']}/deprecate").status_code == 204
    assert server.get(f"/sequences/by-name?{place}").status_code == 404
    missing = server.get("/sequences/by-name?namespace=default&name=x")
    assert missing.status_code == 400
    assert "missing field `tenant_id`" in missing.text


def test_pages_of_sequences_do_not_overlap(server):
    for n in range(5):
        server.sequence(tenant="pages", name=f"p{n}")
    seen = []
    for offset in (0, 2, 4):
        page = server.get(f"/sequences?limit=2&offset={offset}", tenant="pages").json()
        seen += [row["name"] for row in page["items"]]
        assert page["has_more"] is (offset < 4)
    assert seen == [f"p{n}" for n in range(5)]


def test_a_sequence_is_removed_only_when_nothing_runs_it(server):
    body = sequence_body({"type": "wait", "id": "w", "signal": "go"})
    server.post("/sequences", body)
    instance = server.instance(body["id"])
    server.settle(instance, "waiting")
    assert server.delete(f"/sequences/{body['id']}").status_code == 409
    server.engine.cancel(instance)
    assert server.delete(f"/sequences/{body['id']}").status_code == 204
    assert server.get(f"/sequences/{body['id']}").status_code == 404


def test_a_status_moves_along_its_table(server):
    body = sequence_body(status="draft")
    server.post("/sequences", body)
    path = f"/sequences/{body['id']}/status"
    assert server.post(path, {"status": "production"}).status_code == 400
    assert server.post(path, {"status": "staging"}).status_code == 204
    assert server.get(f"/sequences/{body['id']}").json()["status"] == "staging"
