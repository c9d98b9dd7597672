"""Sequences (contract §4): the object, what is refused, the endpoints."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import sequence_body, step

pytestmark = pytest.mark.contract("4")

WAIT = {"type": "wait", "id": "w", "signal": "x"}
RETRY = {"max_attempts": 2, "initial_backoff": 10, "max_backoff": 100}


def stored(server, *blocks, tenant="acme", **fields):
    body = sequence_body(*blocks, tenant_id=tenant, **fields)
    answer = server.post("/sequences", body, tenant=tenant)
    assert answer.status_code == 201, answer.text
    return body


# the object --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["id", "tenant_id", "namespace", "name", "version", "blocks", "created_at"]
)
def test_a_required_field_that_is_missing_is_422(server, name):
    body = sequence_body()
    del body[name]
    assert server.post("/sequences", body).status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2**31},
        {"version": "1"},
        {"version": 1.5},
        {"created_at": "yesterday"},
        {"created_at": 5},
        {"status": "secret"},
        {"deprecated": "yes"},
        {"name": 5},
        {"blocks": {}},
        {"namespace": None},
    ],
)
def test_a_field_of_another_type_is_422(server, change):
    assert server.post("/sequences", sequence_body() | change).status_code in (400, 422)


def test_what_was_stored_is_shown_in_its_normal_form(server):
    body = stored(server, step("a"), step("b", params={"x": "{{data.y}}"}, when="true"))
    shown = server.get(f"/sequences/{body['id']}").json()
    plain = {"type": "step", "id": "a", "handler": "noop", "params": None}
    assert shown["blocks"][0] == {**plain, "delay": None, "retry": None, "cancellable": True}
    assert shown["blocks"][1]["params"] == {"x": "{{data.y}}"}
    assert shown["blocks"][1]["when"] == "true"
    assert (shown["status"], shown["deprecated"]) == ("production", False)
    assert shown["created_at"].startswith("2026-01-01T00:00:00")
    for absent in ("interceptors", "input_schema", "sla", "on_failure", "on_cancel"):
        assert absent not in shown


def test_the_optional_parts_come_back(server):
    more = {
        "input_schema": {"type": "object"},
        "sla": {"max_runtime": 1000, "max_step_runtime": 0.5},
        "on_failure": [step("f")],
        "on_cancel": [step("c")],
        "interceptors": {"before_step": {"handler": "log", "params": {"message": "x"}}},
        "status": "draft",
        "deprecated": True,
    }
    shown = server.get(f"/sequences/{stored(server, step('a'), **more)['id']}").json()
    assert shown["input_schema"] == {"type": "object"}
    assert shown["sla"] == {"max_runtime": 1000, "max_step_runtime": 500}
    assert [block["id"] for block in shown["on_failure"] + shown["on_cancel"]] == ["f", "c"]
    assert shown["interceptors"]["before_step"]["handler"] == "log"
    assert (shown["status"], shown["deprecated"]) == ("draft", True)


def test_what_is_shown_can_be_stored_again_as_it_is(server):
    blocks = [
        step("a", retry=RETRY, delay={"duration": 5}, send_window={"start_hour": 1}),
        {"type": "loop", "id": "l", "condition": "false", "body": [step("b")]},
        {"type": "router", "id": "r", "routes": [], "default": [step("c")]},
        {"type": "saga", "id": "s", "steps": [{"id": "x", "action": step("d")}]},
    ]
    shown = server.get(f"/sequences/{stored(server, *blocks)['id']}").json()
    again = shown | {"id": str(uuid.uuid4()), "version": 2}
    assert server.post("/sequences", again).status_code == 201
    twin = server.get(f"/sequences/{again['id']}").json()
    assert twin["blocks"] == shown["blocks"]


# what is refused ---------------------------------------------------------------------------------


def loop(**more):
    return {"type": "loop", "id": "l", "condition": "true", "body": [step("b")], **more}


def each(**more):
    return {"type": "for_each", "id": "f", "collection": "items", "body": [step("b")], **more}


def split(*variants):
    return {"type": "a_b_split", "id": "x", "variants": list(variants)}


def variant(name, weight=1):
    return {"name": name, "weight": weight, "blocks": [step(f"in-{name}-{weight}")]}


def nested(depth):
    block = step("deep")
    for n in range(depth - 1):
        block = {"type": "cancellation_scope", "id": f"s{n}", "blocks": [block]}
    return block


MEANT_WRONG = {
    "no blocks": ([], "sequence has no blocks"),
    "twice the same id": ([step("a"), step("a")], "duplicate block id"),
    "twice, deeper": ([step("a"), {**nested(1), "id": "a"}], "duplicate block id"),
    "a blank id": ([step("")], "id"),
    "too deep": ([nested(66)], "64"),
    "too many": ([step(f"s{n}") for n in range(5001)], "5000"),
    "too many branches": (
        [{"type": "parallel", "id": "p", "branches": [[] for _ in range(257)]}],
        "256",
    ),
    "a blank handler": ([step("a", "")], "handler"),
    "no attempts": ([step("a", retry=RETRY | {"max_attempts": 0})], "max_attempts"),
    "a multiplier of 0": ([step("a", retry=RETRY | {"backoff_multiplier": 0})], "multiplier"),
    "backoffs upside down": ([step("a", retry=RETRY | {"initial_backoff": 500})], "backoff"),
    "a blank retry_if": ([step("a", retry=RETRY | {"retry_if": " "})], "retry_if"),
    "a blank code": ([step("a", retry=RETRY | {"non_retryable_codes": [""]})], ""),
    "an hour too late": ([step("a", send_window={"start_hour": 24})], "start_hour"),
    "no hours at all": ([step("a", send_window={"start_hour": 9, "end_hour": 9})], ""),
    "an eighth day": ([step("a", send_window={"days": [7]})], "days"),
    "no choices": ([step("a", wait_for_input={"choices": []})], "choice"),
    "the same choice twice": (
        [step("a", wait_for_input={"choices": [{"label": "x", "value": "v"}] * 2})],
        "",
    ),
    "a blank store_as": ([step("a", wait_for_input={"store_as": ""})], "store_as"),
    "no branch": ([{"type": "parallel", "id": "p", "branches": []}], "branch"),
    "no branch to race": ([{"type": "race", "id": "r", "branches": []}], "branch"),
    "a blank condition": ([loop(condition=" ")], "condition"),
    "an empty body": ([loop(body=[])], "body"),
    "no iterations": ([loop(max_iterations=0)], "max_iterations must be > 0"),
    "too many iterations": ([loop(max_iterations=100_001)], "100000"),
    "a blank collection": ([each(collection="")], "collection"),
    "a blank item": ([each(item_var="")], "item_var"),
    "an empty body of each": ([each(body=[])], "body"),
    "no iterations of each": ([each(max_iterations=0)], "max_iterations must be > 0"),
    "no route": ([{"type": "router", "id": "r", "routes": []}], "route"),
    "a blank route": (
        [{"type": "router", "id": "r", "routes": [{"condition": "", "blocks": []}]}],
        "condition",
    ),
    "nothing to try": (
        [{"type": "try_catch", "id": "t", "try_block": [], "catch_block": [step("c")]}],
        "",
    ),
    "a blank name": ([{"type": "sub_sequence", "id": "s", "sequence_name": ""}], "sequence_name"),
    "one variant": ([split(variant("a"))], ""),
    "no weight": ([split(variant("a", 0), variant("b", 0))], "weight"),
    "the same variant": ([split(variant("a"), variant("a", 2))], ""),
    "a blank variant": ([split(variant("a"), variant(""))], "name"),
    "an empty scope": ([{"type": "cancellation_scope", "id": "c", "blocks": []}], ""),
    "an output schema that is text": ([step("a", output_schema="x")], ""),
    "an output schema that does not compile": ([step("a", output_schema={"type": "x"})], ""),
}
EITHER = ("code", "attempts", "multiplier", "backoffs", "retry_if", "schema")


@pytest.mark.parametrize("what", MEANT_WRONG)
def test_what_means_nothing_is_refused_in_words(server, what):
    blocks, words = MEANT_WRONG[what]
    answer = server.post("/sequences", sequence_body() | {"blocks": blocks})
    allowed = (400, 422) if any(word in what for word in EITHER) else (400,)
    assert answer.status_code in allowed, answer.text
    if answer.status_code == 400:
        assert answer.json()["error"].startswith("invalid argument: ")
    assert words in answer.text


def test_an_input_schema_must_compile(server):
    answer = server.post("/sequences", sequence_body(input_schema={"type": "nonsense"}))
    assert answer.status_code == 400


ALLOWED = {
    "an empty branch": [{"type": "parallel", "id": "p", "branches": [[]]}],
    "an empty branch to race": [{"type": "race", "id": "p", "branches": [[], [step("a")]]}],
    "an empty catch": [
        {"type": "try_catch", "id": "t", "try_block": [step("a")], "catch_block": []}
    ],
    "an empty saga": [{"type": "saga", "id": "s", "steps": []}],
    "only a default": [{"type": "router", "id": "r", "routes": [], "default": [step("a")]}],
    "the deepest": [nested(64)],
    "the most": [step(f"s{n}") for n in range(5000)],
    "the most iterations": [loop(max_iterations=100_000)],
    "a weight of 0 beside another": [split(variant("a", 0), variant("b"))],
    "over midnight": [step("a", send_window={"start_hour": 22, "end_hour": 6})],
    "an empty when": [step("a", when="")],
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_unusual_is_taken(server, what):
    stored(server, *ALLOWED[what])


def test_clean_up_trees_have_ids_of_their_own(server):
    stored(server, step("a"), on_failure=[step("a")], on_cancel=[step("a")])
    twice = sequence_body(step("a"), on_failure=[step("b"), step("b")])
    assert server.post("/sequences", twice).status_code == 400


@pytest.mark.parametrize(
    "block",
    [
        {"type": "dance", "id": "a"},
        {"id": "a", "handler": "noop"},
        {"type": "step", "id": "a"},
        {"type": "step", "handler": "noop"},
        {"type": "parallel", "id": "p"},
        {"type": "loop", "id": "l", "condition": "true"},
        {"type": "for_each", "id": "f", "body": [step("b")]},
        {"type": "try_catch", "id": "t", "try_block": [step("b")]},
        {"type": "sub_sequence", "id": "s"},
        {"type": "race", "id": "r", "branches": [[step("b")]], "semantics": "best"},
        {"type": "step", "id": "a", "handler": 5},
        {"type": "parallel", "id": "p", "branches": "x"},
        "step",
    ],
)
def test_what_does_not_decode_is_422_at_any_depth(server, block):
    for blocks in ([block], [{"type": "cancellation_scope", "id": "c", "blocks": [block]}]):
        answer = server.post("/sequences", sequence_body() | {"blocks": blocks})
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"].startswith("text/plain")


# endpoints ---------------------------------------------------------------------------------------


def test_warnings_name_unknown_handlers_and_suspicious_templates(server):
    plain = server.post("/sequences", sequence_body())
    assert plain.json() == {"id": plain.json()["id"]}
    odd = sequence_body(step("a", "nobody"), step("b", params={"x": "{{foo.bar}}"}))
    warned = server.post("/sequences", odd).json()["warnings"]
    assert any("nobody" in each for each in warned)
    assert any("foo" in each for each in warned)


def test_the_same_id_or_version_again_is_409(server):
    body = stored(server)
    for change in ({}, {"id": str(uuid.uuid4())}, {"version": 2}):
        answer = server.post("/sequences", body | change)
        assert answer.status_code == 409, change
        assert answer.json()["error"].startswith("already exists: ")


def test_lists_are_ordered_by_namespace_name_and_falling_version(server, tenant):
    for namespace, name, version in (
        ("b", "x", 1),
        ("a", "y", 1),
        ("a", "y", 3),
        ("a", "y", 2),
        ("a", "x", 1),
    ):
        stored(server, tenant=tenant, namespace=namespace, name=name, version=version)
    rows = server.get("/sequences", tenant=tenant).json()["items"]
    found = [(row["namespace"], row["name"], row["version"]) for row in rows]
    assert found == [("a", "x", 1), ("a", "y", 3), ("a", "y", 2), ("a", "y", 1), ("b", "x", 1)]
    server.post(f"/sequences/{rows[1]['id']}/deprecate", tenant=tenant)
    again = server.get("/sequences", tenant=tenant).json()["items"]
    assert [row["deprecated"] for row in again] == [False, True, False, False, False]
    assert len(server.get("/sequences.json", tenant=tenant).json()) == 5


def test_the_engines_own_definitions_are_nobodys_sequences(server, tenant):
    mine = stored(server, tenant=tenant)
    cron = {"tenant_id": tenant, "namespace": "default", "sequence_id": mine["id"]}
    server.post("/cron", {**cron, "cron_expr": "0 0 1 1 *"}, tenant=tenant)
    for path in ("/sequences.json", "/sequences?limit=1000"):
        found = server.get(path, tenant=tenant).json()
        rows = found if isinstance(found, list) else found["items"]
        assert [row["id"] for row in rows] == [mine["id"]]
    own = next(
        row for row in server.engine._parts.read(lambda store: store.definitions(tenant, "detent"))
    )
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/deprecate")):
        answer = server.call(method, f"/sequences/{own.id}{path}", tenant=tenant)
        assert answer.status_code == 404
    place = f"tenant_id={tenant}&namespace=detent&name={own.name}"
    assert server.get(f"/sequences/by-name?{place}", tenant=tenant).status_code == 404
    assert server.get(f"/sequences/versions?{place}", tenant=tenant).json() == []


def test_the_plain_array_has_all_of_them(server, tenant):
    for n in range(5):
        stored(server, tenant=tenant, name="n", version=n + 1)
    found = server.get("/sequences.json", tenant=tenant).json()
    assert [row["version"] for row in found] == [5, 4, 3, 2, 1]


def test_versions_leave_deprecated_ones_out_and_an_unknown_name_has_none(server, tenant):
    bodies = [stored(server, tenant=tenant, name="n", version=n) for n in (1, 2, 3)]
    place = "tenant_id=x&namespace=default&name="
    path = f"/sequences/versions?{place}"
    assert server.get(f"{path}nobody", tenant=tenant).json() == []
    for sent in ({}, {"json": {"any": "thing"}}, {"content": b"rubbish"}):
        answer = server.post(f"/sequences/{bodies[2]['id']}/deprecate", tenant=tenant, **sent)
        assert (answer.status_code, answer.content) == (204, b"")
    assert [row["version"] for row in server.get(f"{path}n", tenant=tenant).json()] == [2, 1]
    by_name = f"/sequences/by-name?{place}n"
    assert server.get(by_name, tenant=tenant).json()["version"] == 2
    assert server.get(f"{by_name}&version=3", tenant=tenant).json()["deprecated"] is True
    assert server.get(f"{by_name}&version=9", tenant=tenant).status_code == 404


def test_deprecation_does_not_touch_what_runs(server):
    body = stored(server, WAIT)
    instance = server.instance(body["id"])
    server.post(f"/sequences/{body['id']}/deprecate")
    server.settle(instance, "waiting")
    assert server.shown(instance)["sequence_id"] == body["id"]
    server.signal(instance, "x")
    assert server.settle(instance) == "completed"
    assert server.post(f"/sequences/{uuid.uuid4()}/deprecate").status_code == 404
