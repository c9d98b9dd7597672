"""Transport and errors (contract §1), statement by statement over HTTP."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.integration.web.house import instance_body, sequence_body, step

pytestmark = pytest.mark.contract("1")

ROOT_ONLY = [
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/info"),
    ("GET", "/metrics"),
    ("GET", "/swagger-ui"),
    ("GET", "/api-docs/openapi.json"),
]
NOBODY = "00000000-0000-7000-8000-000000000000"


def plain(answer, status):
    """A refusal before the handler: text, not JSON."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/plain"), answer.text
    assert answer.text
    return answer.text


def said(answer, status, kind):
    """An error of a handler: JSON whose `error` begins with its class."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["error"].startswith(kind), answer.text
    return answer.json()["error"]


# paths -------------------------------------------------------------------------------------------


def test_every_product_route_answers_bare_and_under_the_prefix(server):
    routes = server.served.api.router.routes
    assert len(routes) > 100
    for route in routes:
        found = server.served.api.router.find
        path = "/".join(NOBODY if part[0] == "{" else part for part in route.segments)
        assert found(route.method, f"/{path}").route is route
        if not route.root_only:
            assert found(route.method, f"/api/v1/{path}").route is route


def test_both_paths_give_the_same_object(server):
    id = server.sequence()
    assert server.get(f"/sequences/{id}").json() == server.get(f"/api/v1/sequences/{id}").json()


@pytest.mark.parametrize(("method", "path"), ROOT_ONLY)
def test_what_is_of_the_server_is_at_the_root_alone(server, method, path):
    assert server.call(method, path).status_code == 200
    assert server.call(method, f"/api/v1{path}").status_code == 404


def test_the_public_webhook_is_at_the_root_alone(server):
    assert server.post("/webhooks/nobody-here", {}).status_code == 404
    assert server.post("/webhooks/nobody-here", {}).json()["code"] == "trigger.not_found"
    assert server.post("/api/v1/webhooks/nobody-here", {}).text == ""


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/api/v2/instances", "/"])
def test_an_unknown_route_is_404_with_an_empty_body(server, path):
    answer = server.get(path)
    assert (answer.status_code, answer.content) == (404, b"")


def test_a_wrong_method_on_a_known_path_is_405(server):
    for method, path in (("DELETE", "/sequences"), ("PUT", "/instances"), ("POST", "/info")):
        assert server.call(method, path).status_code == 405


# request ids -------------------------------------------------------------------------------------


def test_a_request_id_is_echoed_cleaned_and_cut(server):
    def id_of(given):
        return server.get("/info", headers={"x-request-id": given}).headers["x-request-id"]

    assert id_of("Abc-12_x") == "Abc-12_x"
    assert id_of("a b/c!d") == "abcd"
    assert id_of("x" * 200) == "x" * 128


@pytest.mark.parametrize("headers", [{}, {"x-request-id": ""}, {"x-request-id": "!!"}])
def test_without_one_there_is_a_fresh_uuid_of_version_four(server, headers):
    found = server.get("/info", headers=headers).headers["x-request-id"]
    assert uuid.UUID(found).version == 4


def test_refusals_carry_it_too(server):
    answer = server.get("/instances", key=None, headers={"x-request-id": "mine"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (401, "mine")


# bodies ------------------------------------------------------------------------------------------


def test_a_body_beyond_ten_mebibytes_is_413(server):
    head = {"content-type": "application/json"}
    most = 10 * 1024 * 1024
    fits = b'{"template": "x"' + b" " * (most - 17) + b"}"
    assert len(fits) == most
    assert server.post("/debug/template", content=fits, headers=head).status_code == 200
    assert server.post("/debug/template", content=fits + b" ", headers=head).status_code == 413


def test_a_webhook_beyond_one_mebibyte_is_413(server):
    body = b"x" * (1024 * 1024 + 1)
    assert server.post("/webhooks/any", content=body).status_code == 413


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_json_body_must_say_that_it_is_one(server, kind):
    headers = {} if kind is None else {"content-type": kind}
    for path in ("/instances", "/sequences", "/events", "/sessions"):
        answer = server.post(path, content=b"{}", headers=headers)
        plain(answer, 415)


def test_a_charset_beside_the_type_is_welcome(server):
    body = json.dumps({"template": "x"}).encode()
    headers = {"content-type": "application/json; charset=utf-8"}
    assert server.post("/debug/template", content=body, headers=headers).status_code == 200


def test_unknown_fields_are_ignored_everywhere(server, tenant):
    more = {"nobody_knows": {"this": 1}}
    body = sequence_body(step("a", **more), tenant_id=tenant, **more)
    assert server.post("/sequences", body, tenant=tenant).status_code == 201
    start = instance_body(body["id"], {}, tenant_id=tenant, **more)
    assert server.post("/instances", start, tenant=tenant).status_code == 201
    for path, made in (
        ("/sessions", {"tenant_id": tenant, "session_key": "k"}),
        ("/pools", {"tenant_id": tenant, "name": "p"}),
        ("/credentials", {"id": f"c-{tenant}", "name": "n", "value": "v"}),
        (
            "/triggers",
            {"slug": tenant, "tenant_id": tenant, "sequence_name": body["name"]},
        ),
        (
            "/cron",
            {
                "tenant_id": tenant,
                "namespace": "default",
                "sequence_id": body["id"],
                "cron_expr": "0 0 1 1 *",
            },
        ),
    ):
        answer = server.post(path, {**made, **more}, tenant=tenant)
        assert answer.status_code == 201, (path, answer.text)


# errors before the handler -----------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"{", b"", b"{'a': 1}", b"\xff"])
def test_what_is_no_json_is_400_or_422(server, body):
    headers = {"content-type": "application/json"}
    for path in ("/instances", "/sequences"):
        answer = server.post(path, content=body, headers=headers)
        assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/instances", {"tenant_id": "acme", "namespace": "default"}),
        ("POST", "/instances", instance_body("no-uuid")),
        ("POST", "/instances", instance_body(NOBODY, priority="normal")),
        ("POST", "/instances", instance_body(NOBODY, priority=1)),
        ("POST", "/instances", instance_body(NOBODY, max_concurrency="2")),
        ("POST", "/instances", instance_body(NOBODY, next_fire_at="soon")),
        ("POST", "/instances", []),
        ("POST", "/instances/batch", {}),
        ("POST", "/instances/batch", {"instances": [instance_body("no-uuid")]}),
        ("POST", f"/instances/{NOBODY}/signals", {"payload": 1}),
        ("POST", f"/instances/{NOBODY}/signals", {"signal_type": "dance"}),
        ("POST", f"/instances/{NOBODY}/signals", {"signal_type": ""}),
        ("PATCH", f"/instances/{NOBODY}/state", {"state": "dancing"}),
        ("PATCH", f"/instances/{NOBODY}/context", {}),
        ("PATCH", "/instances/bulk/reschedule", {"filter": {"tenant_id": "acme"}}),
        (
            "PATCH",
            "/instances/bulk/state",
            {"filter": {"sequence_id": "no-uuid"}, "state": "paused"},
        ),
        ("POST", "/instances/batch-action", {"filter": {}, "action": "dance"}),
        ("POST", "/sequences/migrate-instance", {"instance_id": NOBODY}),
        (
            "POST",
            "/sequences/migrate-instance",
            {"instance_id": "no-uuid", "target_sequence_id": NOBODY},
        ),
        (
            "POST",
            "/cron",
            {
                "tenant_id": "acme",
                "namespace": "default",
                "sequence_id": "no-uuid",
                "cron_expr": "* * * * *",
            },
        ),
        ("POST", "/cron", {"tenant_id": "acme", "namespace": "d", "sequence_id": NOBODY}),
        ("POST", "/triggers", {"slug": "s", "tenant_id": "acme"}),
        ("POST", "/sessions", {"tenant_id": "acme"}),
        ("POST", "/pools", {"tenant_id": "acme", "name": "p", "strategy": "best"}),
        ("POST", "/credentials", {"id": "c", "name": "n"}),
        ("POST", "/credentials", {"id": "c", "name": "n", "value": "v", "kind": "magic"}),
        ("POST", f"/instances/{NOBODY}/checkpoints", {}),
        ("POST", f"/instances/{NOBODY}/checkpoints/prune", {"keep": "all"}),
        ("POST", "/events", {"tenant_id": "acme", "event_name": "e"}),
        ("POST", "/workers/tasks/poll", {"handler_name": "h"}),
        ("POST", f"/workers/tasks/{NOBODY}/complete", {"worker_id": "w", "claim_epoch": 1}),
    ],
)
def test_json_of_another_shape_is_422_in_plain_text(server, method, path, body):
    plain(server.call(method, path, body), 422)


def test_a_missing_created_at_is_422_even_beside_empty_blocks(server):
    body = sequence_body(blocks=[])
    del body["created_at"]
    plain(server.post("/sequences", body), 422)
    said(server.post("/sequences", sequence_body(blocks=[])), 400, "invalid argument: ")


@pytest.mark.parametrize("path", ["/sequences/x", "/instances/x", "/instances/x/outputs"])
def test_a_path_that_is_no_uuid_is_400(server, path):
    plain(server.get(path), 400)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/sequences/by-name?namespace=d&name=n", "missing field `tenant_id`"),
        ("/sequences/by-name?tenant_id=a&name=n", "missing field `namespace`"),
        ("/sequences/versions?tenant_id=a&namespace=d", "missing field `name`"),
        ("/instances?limit=many", "limit"),
        ("/sequences?offset=x", "offset"),
        ("/instances?sequence_id=no-uuid", "sequence_id"),
        ("/sequences/by-name?tenant_id=a&namespace=d&name=n&version=new", "version"),
    ],
)
def test_a_query_that_cannot_be_read_is_400_in_plain_text(server, path, words):
    assert words in plain(server.get(path), 400)


def test_who_is_not_let_in_gets_an_empty_body(server):
    refused = [
        (server.get("/instances", key=None), 401),
        (server.get("/instances", key="wrong"), 401),
        (server.get("/instances", tenant=None), 400),
    ]
    for answer, status in refused:
        assert (answer.status_code, answer.content) == (status, b"")


# errors of handlers ------------------------------------------------------------------------------


def test_errors_of_handlers_begin_with_their_class(server, tenant):
    said(server.get(f"/instances/{NOBODY}"), 404, "not found: ")
    said(server.post("/sequences", sequence_body(blocks=[])), 400, "invalid argument: ")
    session = {"tenant_id": tenant, "session_key": "k"}
    server.post("/sessions", session, tenant=tenant)
    said(server.post("/sessions", session, tenant=tenant), 409, "already exists: ")
    waits = server.sequence({"type": "wait", "id": "w", "signal": "x"})
    instance = server.instance(waits)
    said(server.delete(f"/sequences/{waits}"), 409, "conflict: ")
    said(server.post("/sessions", session), 403, "forbidden: ")
    big = {"context": {"data": "x" * 300_000}}
    said(server.patch(f"/instances/{instance}/context", big), 413, "payload too large: ")
    schema = server.sequence(input_schema={"type": "object", "required": ["n"]})
    answer = server.post("/instances", instance_body(schema, {}))
    said(answer, 422, "unprocessable entity: ")
    said(server.post(f"/triggers/{tenant}/fire", {}), 404, "not found: ")


def test_an_error_of_a_handler_has_the_words_and_a_code_and_nothing_else_is_needed(server):
    found = server.get(f"/instances/{NOBODY}").json()
    assert set(found) <= {"error", "code", "details"}
    assert isinstance(found["error"], str)
