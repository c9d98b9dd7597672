"""Who is let in (contract §1 and §2)."""

from __future__ import annotations

import pytest

from tests.integration.web.house import ROOT


def test_without_a_key_nobody_gets_further_than_the_door(server):
    for key in ("", "wrong", ROOT + "x"):
        answer = server.get("/sequences", key=key)
        assert (answer.status_code, answer.content) == (401, b"")
    assert server.get("/sequences").status_code == 200
    bearer = {"authorization": f"Bearer {ROOT}"}
    assert server.get("/sequences", key="", headers=bearer).status_code == 200


def test_without_a_tenant_nothing_is_shown(server):
    answer = server.get("/sequences", tenant="")
    assert (answer.status_code, answer.content) == (400, b"")
    assert answer.headers["x-detent-code"] == "request.tenant"


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/info"])
def test_health_needs_no_key(server, path):
    assert server.get(path, key="", tenant="").status_code == 200


def test_an_unknown_path_and_a_wrong_method_say_only_that(server):
    for path, method, status in (
        ("/nope", "GET", 404),
        ("/api/v1/nope", "GET", 404),
        ("/api/v1/health/live", "GET", 404),
        ("/sequences", "DELETE", 405),
    ):
        answer = server.call(method, path)
        assert (answer.status_code, answer.content) == (status, b"")


def test_the_request_id_is_echoed_cleaned(server):
    given = server.get("/info", headers={"x-request-id": "abc/../<b>-1_2" + "x" * 200})
    assert given.headers["x-request-id"] == ("abcb-1_2" + "x" * 200)[:128]
    assert len(server.get("/info").headers["x-request-id"]) == 36
