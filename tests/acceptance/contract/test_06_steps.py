"""Steps (contract §6): every option, on a step of its own and inside a composite."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from tests.integration.web.house import instance_body, sequence_body, step

pytestmark = pytest.mark.contract("6")

RETRY = {"max_attempts": 3, "initial_backoff": 20, "max_backoff": 100}


def bare(block):
    return [block]


def wrapped(block):
    return [{"type": "parallel", "id": "p", "branches": [[block]]}]


anywhere = pytest.mark.parametrize("place", [bare, wrapped])


def run(server, blocks, data=None, **fields):
    instance = server.instance(server.sequence(*blocks), data, **fields)
    return instance, server.settle(instance)


def rows(server, instance, block="s"):
    return [output for name, output in server.outputs(instance) if name == block]


def say(**options):
    return step("s", "transform", **options)


# when --------------------------------------------------------------------------------------------


@anywhere
@pytest.mark.parametrize(
    ("when", "ran"),
    [
        ("data.on", 1),
        ("{{ data.on }}", 1),
        ("data.off", 0),
        ("", 0),
        ("outputs.nobody", 0),
        ("data.n > 2 && data.name == 'x'", 1),
    ],
)
def test_a_falsy_guard_skips_the_step_without_a_row(server, place, when, ran):
    data = {"on": True, "off": 0, "n": 3, "name": "x"}
    instance, end = run(server, place(say(params={}, when=when)), data)
    assert (end, len(rows(server, instance))) == ("completed", ran)


@anywhere
def test_a_guard_that_cannot_be_read_fails_the_step(server, place):
    body = sequence_body(*place(say(params={}, when="data.x ==")))
    answer = server.post("/sequences", body)
    if answer.status_code == 201:
        assert server.settle(server.instance(body["id"])) == "failed"
    else:
        assert answer.status_code == 400


# params ------------------------------------------------------------------------------------------


@anywhere
@pytest.mark.parametrize(
    "block",
    [
        step("s", "transform", params={"x": "{{foo.bar}}"}, retry=RETRY),
        step("s", "http_request", params={"url": "credentials://nobody-has-it"}, retry=RETRY),
    ],
)
def test_a_failing_template_or_credential_fails_without_a_retry(server, place, block):
    instance, end = run(server, place(block))
    assert end == "failed"
    assert all(row.get("__error__") for row in rows(server, instance))
    assert server.shown(instance)["context"]["runtime"]["attempt"] == 0


@anywhere
def test_what_only_computes_passes_the_name_of_a_secret_on_and_not_the_secret(server, place):
    name = "credentials://nobody-has-it"
    instance, end = run(server, place(say(params={"x": name})))
    assert (end, rows(server, instance)) == ("completed", [{"x": name}])


@anywhere
def test_params_may_be_anything_and_null_by_default(server, place):
    for params, made in (({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}), ({}, {})):
        instance, end = run(server, place(say(params=params)))
        assert (end, rows(server, instance)) == ("completed", [made])


# what a step sees --------------------------------------------------------------------------------


SEEN = {
    "a": "{{context.data.a}}",
    "b": "{{data.b}}",
    "c": "{{context.config.c}}",
    "r": "{{runtime.current_step}}",
}


@anywhere
@pytest.mark.parametrize(
    ("access", "seen"),
    [
        (None, {"a": 1, "b": 2, "c": 3, "r": "s"}),
        ({}, {"a": 1, "b": 2, "c": 3, "r": None}),
        ({"data": False}, {"a": None, "b": None, "c": 3, "r": None}),
        ({"data": "none", "runtime": True}, {"a": None, "b": None, "c": 3, "r": "s"}),
        ({"data": "all", "config": False}, {"a": 1, "b": 2, "c": None, "r": None}),
        ({"data": {"fields": ["b"]}}, {"a": None, "b": 2, "c": 3, "r": None}),
    ],
)
def test_a_hidden_part_of_the_context_is_null(server, place, access, seen):
    options = {} if access is None else {"context_access": access}
    context = {"data": {"a": 1, "b": 2}, "config": {"c": 3}}
    sequence = server.sequence(*place(say(params=SEEN, **options)))
    made = server.post("/instances", instance_body(sequence) | {"context": context})
    instance = made.json()["id"]
    assert server.settle(instance) == "completed"
    assert rows(server, instance) == [seen]


# outputs -----------------------------------------------------------------------------------------


@anywhere
def test_an_output_that_breaks_its_schema_fails_for_good(server, place):
    schema = {"type": "object", "required": ["n"]}
    instance, end = run(server, place(say(params={"n": 1}, output_schema=schema)))
    assert (end, rows(server, instance)) == ("completed", [{"n": 1}])
    instance, end = run(server, place(say(params={"m": 1}, output_schema=schema, retry=RETRY)))
    assert end == "failed"
    assert all(row.get("__error__") for row in rows(server, instance))


def test_a_cached_output_is_used_again_under_the_same_key(server):
    def cached(id, key, value):
        return step(id, "transform", params={"v": value}, cache_key=key)

    blocks = [
        cached("a", "k-{{data.n}}", "first"),
        cached("b", "k-{{data.n}}", "second"),
        cached("c", "other", "third"),
        {"type": "parallel", "id": "p", "branches": [[cached("d", "k-7", "fourth")]]},
    ]
    instance, end = run(server, blocks, {"n": 7})
    assert end == "completed"
    assert [rows(server, instance, id)[0]["v"] for id in "abcd"] == [
        "first",
        "first",
        "third",
        "first",
    ]


@anywhere
def test_a_handler_that_outlives_its_timeout_fails_and_may_be_tried_again(server, place):
    slow = step("s", "sleep", params={"duration_ms": 60_000}, timeout=50)
    begun = time.monotonic()
    instance, end = run(server, place(slow))
    assert (end, time.monotonic() - begun < 20) == ("failed", True)
    assert server.shown(instance)["error"]["kind"] == "timeout"
    tried = step("s", "sleep", params={"duration_ms": 60_000}, timeout=20, retry=RETRY)
    instance, end = run(server, place(tried))
    assert (end, attempts(server, instance)) == ("failed", 3)
    in_time = step("s", "sleep", params={"duration_ms": 20}, timeout=60_000)
    assert run(server, place(in_time))[1] == "completed"


# retries -----------------------------------------------------------------------------------------


def attempts(server, instance):
    entries = server.get(f"/instances/{instance}/audit?all=true&limit=10000").json()
    failures = (each for each in entries if each["event_type"] == "error.occurred")
    return sum(1 for each in failures if each.get("block_id", "").endswith("s"))


@anywhere
@pytest.mark.parametrize(
    ("retry", "times"),
    [
        (RETRY, 3),
        (RETRY | {"max_attempts": 1}, 1),
        (None, 1),
        (RETRY | {"retry_if": "_error.message == 'boom'"}, 3),
        (RETRY | {"retry_if": "context.data._error.message == 'other'"}, 1),
        (RETRY | {"non_retryable_codes": ["E7"]}, 1),
        (RETRY | {"non_retryable_codes": ["418"]}, 1),
        (RETRY | {"non_retryable_codes": ["E8", "500"]}, 3),
    ],
)
def test_so_many_executions_and_no_more(server, place, retry, times):
    params = {"message": "boom", "retryable": True, "details": {"error_code": "E7", "status": 418}}
    failing = step("s", "fail", params=params, retry=retry)
    instance, end = run(server, place(failing))
    assert (end, attempts(server, instance)) == ("failed", times)


@anywhere
def test_a_permanent_error_is_never_tried_again(server, place):
    failing = step("s", "fail", params={"message": "boom", "retryable": False}, retry=RETRY)
    instance, end = run(server, place(failing))
    assert (end, attempts(server, instance)) == ("failed", 1)


@anywhere
def test_while_it_waits_for_a_retry_it_is_scheduled(server, place):
    slow = {"max_attempts": 2, "initial_backoff": 600_000, "max_backoff": 600_000}
    failing = step("s", "fail", params={"message": "boom", "retryable": True}, retry=slow)
    instance = server.instance(server.sequence(*place(failing)))
    server.settle(instance, "scheduled")
    while not (shown := server.shown(instance))["next_fire_at"] or ahead(shown) < 500:
        assert shown["state"] in ("scheduled", "running")
    assert 590 < ahead(shown) <= 600
    assert server.get("/instances/dlq?limit=1000").json() is not None


def ahead(shown):
    """How many seconds until the next fire."""
    at = dt.datetime.fromisoformat(shown["next_fire_at"])
    return (at - dt.datetime.now(dt.UTC)).total_seconds()


# delays and windows ------------------------------------------------------------------------------


def held(server, place, data=None, config=None, timezone="UTC", **options):
    """An instance held before its step; how many seconds it has to wait."""
    sequence = server.sequence(*place(say(params={}, **options)))
    body = instance_body(sequence, data, timezone=timezone)
    body["context"]["config"] = config
    instance = server.post("/instances", body).json()["id"]
    while (shown := server.shown(instance))["next_fire_at"] is None or ahead(shown) < 1:
        assert shown["state"] in ("scheduled", "running"), shown["state"]
    assert shown["state"] == "scheduled"
    return ahead(shown)


@anywhere
def test_a_delay_holds_the_step_at_any_depth(server, place):
    assert 3590 < held(server, place, delay={"duration": 3_600_000}) <= 3600
    assert 3590 < held(server, place, delay={"duration": 3600.0}) <= 3600


@anywhere
def test_jitter_stays_within_its_bounds_and_differs(server, place):
    delay = {"duration": 3_600_000, "jitter": 100_000}
    waits = [held(server, place, delay=delay) for _ in range(5)]
    assert all(3490 < each < 3701 for each in waits)
    assert max(waits) - min(waits) > 1
    close = {"duration": 7_200_000, "jitter": 10_000}
    assert 7189 < held(server, place, delay=close) <= 7210


@anywhere
def test_holidays_of_step_and_config_push_a_business_day_on(server, place):
    today = dt.datetime.now(dt.UTC).date()
    days = [(today + dt.timedelta(days=n)).isoformat() for n in range(6)]
    delay = {"duration": 5_000, "business_days_only": True}
    wait = held(server, place, config={"holidays": days[3:]}, delay=delay | {"holidays": days[:3]})
    assert wait > 5 * 24 * 3600
    target = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=wait)
    assert target.weekday() < 5
    assert target.date().isoformat() not in days


@anywhere
def test_a_local_time_replaces_the_duration_and_is_read_in_its_zone(server, place):
    local = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=30)).strftime("%Y-%m-%dT%H:%M:%S")
    delay = {"duration": 1, "fire_at_local": local}
    utc = held(server, place, delay=delay)
    tokyo = held(server, place, delay=delay, timezone="Asia/Tokyo")
    named = held(server, place, delay=delay | {"timezone": "Asia/Tokyo"})
    assert 29.9 < utc / 3600 <= 30
    assert 20.9 < tokyo / 3600 <= 21
    assert 20.9 < named / 3600 <= 21


@pytest.mark.parametrize("local", ["soon", "2099-13-01T00:00:00", "2099-01-01 00:00"])
def test_a_local_time_that_cannot_be_read_is_400(server, local):
    body = sequence_body(say(delay={"duration": 1, "fire_at_local": local}))
    assert server.post("/sequences", body).status_code == 400


@anywhere
def test_outside_its_window_a_step_waits_for_the_next_opening(server, place):
    hour = dt.datetime.now(dt.UTC).hour
    window = {"start_hour": (hour + 2) % 24, "end_hour": (hour + 3) % 24}
    wait = held(server, place, send_window=window)
    opening = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=wait)
    rounded = opening + dt.timedelta(seconds=1)
    assert rounded.hour == (hour + 2) % 24
    assert rounded.minute == 0
    local = {"start_hour": (hour + 11) % 24, "end_hour": (hour + 12) % 24}
    assert 0 < held(server, place, send_window=local, timezone="Asia/Tokyo") <= 2 * 3600


@anywhere
def test_inside_its_window_a_step_runs_at_once(server, place):
    hour = dt.datetime.now(dt.UTC).hour
    window = {"start_hour": hour, "end_hour": (hour + 2) % 24}
    instance, end = run(server, place(say(params={"n": 1}, send_window=window)))
    assert (end, rows(server, instance)) == ("completed", [{"n": 1}])
    other_day = {"days": [(dt.datetime.now(dt.UTC).weekday() + 3) % 7]}
    wait = held(server, place, send_window=other_day | {"start_hour": 0, "end_hour": 23})
    assert wait > 24 * 3600


@anywhere
def test_an_unknown_limit_is_no_limit(server, place):
    instance, end = run(server, place(say(params={}, rate_limit_key="nobody-set-it")))
    assert (end, rows(server, instance)) == ("completed", [{}])
