"""The change feed (contract §31)."""

from __future__ import annotations

import base64
import json
import uuid

import pytest

from detent.web.api.settings import ApiSettings
from tests.integration.web.following import following, raw, until
from tests.integration.web.house import ROOT, house, step

WAIT = {"type": "wait", "id": "w", "signal": "go", "store_as": "answer"}


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def run(server, tenant, *blocks):
    instance = server.instance(server.sequence(*blocks, tenant=tenant), tenant=tenant)
    server.settle(instance)
    return instance


def pages(server, tenant, limit=100, cursor=""):
    """Every page from a cursor on."""
    more = True
    while more:
        query = f"limit={limit}" + (f"&cursor={cursor}" if cursor else "")
        page = server.get(f"/changes?{query}", tenant=tenant).json()
        yield page
        assert "next_cursor" in page or not page["changes"]
        cursor, more = page.get("next_cursor", cursor), page["has_more"]


def all_changes(server, tenant, **more):
    return [row for page in pages(server, tenant, **more) for row in page["changes"]]


@pytest.mark.req("SEQ-OPS-1")
def test_every_change_is_told_in_order_and_as_the_audit_tells_it(server, tenant):
    first = run(server, tenant, step("a"))
    second = run(server, tenant, step("bad", "fail"))
    seen = all_changes(server, tenant)
    assert [(row["instance_id"], row["to_state"]) for row in seen] == [
        (first, "running"),
        (first, "completed"),
        (second, "running"),
        (second, "failed"),
    ]
    for instance in (first, second):
        audit = server.get(f"/instances/{instance}/audit", tenant=tenant).json()[::-1]
        assert [row for row in seen if row["instance_id"] == instance] == audit
    assert {row["tenant_id"] for row in seen} == {tenant}
    assert all_changes(server, "nobody-else") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
def test_pages_of_any_size_tell_each_change_once(server, tenant, limit):
    for _ in range(4):
        run(server, tenant, step("a"))
    whole = all_changes(server, tenant)
    assert len(whole) == 8
    cut = list(pages(server, tenant, limit=limit))
    assert all(len(page["changes"]) <= limit for page in cut)
    assert [row for page in cut for row in page["changes"]] == whole
    assert all(page["has_more"] for page in cut[:-1])


def test_a_cursor_goes_on_after_what_was_seen(server, tenant):
    run(server, tenant, step("a"))
    (page,) = pages(server, tenant)
    assert all_changes(server, tenant, cursor=page["next_cursor"]) == []
    later = run(server, tenant, step("a"))
    rest = all_changes(server, tenant, cursor=page["next_cursor"])
    assert {row["instance_id"] for row in rest} == {later}
    known = json.loads(base64.urlsafe_b64decode(page["next_cursor"] + "=="))
    assert "created_at" not in known


def packed(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "!",
        "abc",
        packed([]),
        packed({"all": 1}),
        packed({"all": [-1, 0]}),
        packed({"all": [0, -1]}),
        packed({"all": [10**15, 0]}),
        packed({"other": [0, 0]}),
        packed({"created_at": "2026-01-01T00:00:00Z", "id": "x"}),
        "A" * 30_000,
    ],
)
def test_a_cursor_that_was_not_given_out_is_refused(server, tenant, cursor):
    answer = server.get(f"/changes?cursor={cursor}", tenant=tenant)
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor.invalid")


def test_the_feed_needs_a_tenant(server, tmp_path):
    assert server.get("/changes", tenant="").status_code == 400
    free = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=free) as open_house:
        for path in ("/changes", "/changes/stream"):
            answer = open_house.get(path, tenant="")
            assert answer.status_code == 400
            assert "tenant" in answer.text
        page = open_house.get("/changes?tenant_id=acme", tenant="").json()
        assert (page["changes"], page["has_more"]) == ([], False)


@pytest.mark.parametrize("limit", [-5, 0, 501, 10**9])
def test_a_limit_is_held_within_bounds(server, tenant, limit):
    run(server, tenant, step("a"))
    page = server.get(f"/changes?limit={limit}", tenant=tenant).json()
    assert len(page["changes"]) == (1 if limit < 1 else 2)
    assert server.get("/changes?limit=many", tenant=tenant).status_code == 400


@pytest.mark.req("SEQ-OPS-1")
def test_the_stream_tells_what_was_what_comes_and_goes_on_where_it_was_left(server, tenant):
    first = run(server, tenant, step("a"))
    with following(server, "/changes/stream", tenant=tenant) as answer:
        told = [next(answer.seen), next(answer.seen)]
        instance = server.instance(server.sequence(WAIT, tenant=tenant), tenant=tenant)
        told += [next(answer.seen), next(answer.seen)]
    assert {name for name, _data, _id in told} == {"change"}
    assert [data["instance_id"] for _name, data, _id in told] == [first] * 2 + [instance] * 2
    server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"}, tenant=tenant)
    server.settle(instance)
    for known in range(4):
        with following(server, "/changes/stream", tenant=tenant, last=told[known][2]) as answer:
            rest = [next(answer.seen) for _ in range(4 - known)]
        assert rest[: 3 - known] == told[known + 1 :]
        assert rest[-1][1]["to_state"] == "cancelled"


def test_a_stream_of_what_comes_begins_at_the_end(server, tenant):
    run(server, tenant, step("a"))
    with following(server, "/changes/stream?tail=true", tenant=tenant) as answer:
        assert answer.status_code == 200
        late = server.instance(server.sequence(tenant=tenant), tenant=tenant)
        assert next(answer.seen)[1]["instance_id"] == late
    with following(server, "/changes/stream", tenant=tenant, last="!") as answer:
        assert answer.status_code == 400


def test_a_busy_neighbour_is_not_seen(server, tenant):
    with following(server, "/changes/stream", tenant=tenant) as answer:
        for _ in range(5):
            run(server, "busy", step("a"))
        mine = run(server, tenant, step("a"))
        assert [next(answer.seen)[1]["instance_id"] for _ in range(2)] == [mine, mine]


def test_streams_that_are_dropped_stop_listening(server, tenant):
    sockets = [raw(server, "/changes/stream", tenant=tenant) for _ in range(50)]
    until(lambda: len(server.streams) == 50)
    for each in sockets:
        each.close()
    until(lambda: len(server.streams) == 0)
    assert "" not in server.engine._parts.watch._listeners
