"""Signals (contract §13)."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("13")

NOBODY = "00000000-0000-7000-8000-000000000000"
LATER = "2099-01-01T00:00:00Z"
WAIT = {"type": "wait", "id": "w", "signal": "x"}


def send(server, instance, kind, payload=None):
    return server.post(f"/instances/{instance}/signals", {"signal_type": kind, "payload": payload})


def sleeping(server, ms=600_000, **options):
    instance = server.instance(
        server.sequence(step("z", "sleep", params={"duration_ms": ms}, **options), step("after"))
    )
    server.settle(instance, "running")
    return instance


def test_a_signal_has_an_id_and_nobody_has_none(server):
    instance = server.instance(server.sequence(WAIT))
    answer = send(server, instance, "pause")
    assert (answer.status_code, list(answer.json())) == (201, ["signal_id"])
    assert send(server, NOBODY, "pause").status_code == 404


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_what_has_ended_takes_no_signal(server, end):
    block = {"completed": step("a"), "failed": step("f", "fail"), "cancelled": WAIT}[end]
    instance = server.instance(server.sequence(block))
    if end == "cancelled":
        send(server, instance, "cancel")
    server.settle(instance, end)
    for kind in ("pause", "cancel", "update_context", {"custom": "x"}):
        answer = send(server, instance, kind, {"data": {}})
        assert answer.status_code == 400, kind
        assert answer.json()["error"].startswith("invalid argument: ")


def test_pause_and_resume_of_what_is_scheduled(server):
    instance = server.instance(server.sequence(), next_fire_at=LATER)
    send(server, instance, "pause")
    assert server.shown(instance)["state"] == "paused"
    send(server, instance, "resume")
    assert server.shown(instance)["state"] == "scheduled"
    assert send(server, instance, "resume").status_code == 201


def test_a_pause_and_a_cancel_interrupt_a_sleep_at_once(server):
    instance = sleeping(server)
    begun = time.monotonic()
    send(server, instance, "pause")
    server.settle(instance, "paused")
    send(server, instance, "resume")
    server.settle(instance, "running")
    send(server, instance, "cancel")
    assert server.settle(instance) == "cancelled"
    assert time.monotonic() - begun < 10
    assert server.outputs(instance) == []


def test_a_paused_sleep_keeps_its_due_time(server):
    instance = sleeping(server, 300)
    send(server, instance, "pause")
    server.settle(instance, "paused")
    while time.time() * 1000 < due_ms(server, instance):
        pass
    begun = time.monotonic()
    send(server, instance, "resume")
    assert server.settle(instance) == "completed"
    assert time.monotonic() - begun < 5


def due_ms(server, instance):
    """When the sleep began, and its 300 ms."""
    shown = server.shown(instance)["context"]["runtime"]["started_at"]
    return dt.datetime.fromisoformat(shown).timestamp() * 1000 + 300


def test_a_cancel_spares_what_must_not_be_interrupted(server):
    nap = {"duration_ms": 300}
    parallel = {
        "type": "parallel",
        "id": "p",
        "branches": [
            [step("kept", "sleep", params=nap, cancellable=False), step("next")],
            [step("cut", "sleep", params={"duration_ms": 600_000})],
            [
                {
                    "type": "cancellation_scope",
                    "id": "c",
                    "blocks": [step("inside", "sleep", params=nap), step("inside2")],
                }
            ],
            [
                {
                    "type": "try_catch",
                    "id": "t",
                    "try_block": [step("tried")],
                    "catch_block": [],
                    "finally_block": [step("finally", "sleep", params=nap)],
                }
            ],
        ],
    }
    instance = server.instance(server.sequence(parallel, step("after")))
    server.settle(instance, "running")
    send(server, instance, "cancel")
    assert server.settle(instance) == "cancelled"
    made = [block for block, _ in server.outputs(instance)]
    assert {"kept", "inside", "inside2", "finally"} <= set(made)
    assert not {"cut", "next", "after"} & set(made)


def test_a_cancel_of_what_waits_or_is_paused_is_at_once(server):
    waiting = server.instance(server.sequence(WAIT))
    server.settle(waiting, "waiting")
    send(server, waiting, "cancel")
    assert server.shown(waiting)["state"] == "cancelled"
    paused = server.instance(server.sequence(), next_fire_at=LATER)
    send(server, paused, "pause")
    send(server, paused, "cancel")
    assert server.shown(paused)["state"] == "cancelled"


def test_a_pause_in_a_wait_is_held_until_the_wait_ends(server):
    instance = server.instance(server.sequence(WAIT, step("after")))
    server.settle(instance, "waiting")
    send(server, instance, "pause")
    shown = server.shown(instance)
    assert (shown["state"], shown["pause_requested"]) == ("waiting", True)
    send(server, instance, {"custom": "x"})
    server.settle(instance, "paused")
    send(server, instance, "resume")
    assert server.settle(instance) == "completed"


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        ({"data": {"b": 2}}, {"a": 1, "b": 2}),
        ({"data": {"a": 9, "c": {"d": 1}}}, {"a": 9, "c": {"d": 1}}),
        ({"b": 2}, {"a": 1, "b": 2}),
        ({"data": {}, "config": {"x": 1}}, {"a": 1}),
        ({"data": 5, "e": 1}, {"a": 1, "data": 5, "e": 1}),
    ],
)
def test_update_context_merges_key_by_key(server, payload, data):
    instance = server.instance(server.sequence(WAIT), {"a": 1})
    server.settle(instance, "waiting")
    assert send(server, instance, "update_context", payload).status_code == 201
    shown = server.shown(instance)["context"]
    assert (shown["data"], shown["config"]) == (data, None)


@pytest.mark.parametrize("payload", [None, 5, "text", [1]])
def test_an_update_that_is_no_object_is_422(server, payload):
    instance = server.instance(server.sequence(WAIT), {"a": 1})
    server.settle(instance, "waiting")
    assert send(server, instance, "update_context", payload).status_code == 422
    assert server.shown(instance)["context"]["data"] == {"a": 1}


def test_signals_keep_their_order(server):
    instance = server.instance(server.sequence(), next_fire_at=LATER)
    for n in range(20):
        send(server, instance, "update_context", {"data": {"n": n, f"k{n}": n}})
    data = server.shown(instance)["context"]["data"]
    assert data["n"] == 19
    assert [key for key in data if key != "n"] == [f"k{n}" for n in range(20)]


def test_both_spellings_of_a_custom_signal_are_one(server):
    for kind in ({"custom": "x"}, "custom:x"):
        instance = server.instance(server.sequence(WAIT))
        assert send(server, instance, kind, {"n": 1}).status_code == 201
        assert server.settle(instance) == "completed"
        assert server.outputs(instance) == [("w", {"n": 1})]


def test_a_signal_that_nobody_waits_for_does_no_harm(server):
    instance = server.instance(server.sequence(WAIT))
    for _ in range(3):
        assert send(server, instance, {"custom": "other"}, {"n": 1}).status_code == 201
    send(server, instance, {"custom": "x"})
    assert server.settle(instance) == "completed"


def test_a_large_payload_is_no_fault_of_the_server(server):
    instance = server.instance(server.sequence(WAIT, WAIT | {"id": "w2", "signal": "y"}))
    answer = send(server, instance, {"custom": "x"}, {"text": "x" * 1_000_000})
    assert answer.status_code < 500, answer.text


def test_a_signal_during_a_delay_is_taken_at_once_and_shortens_nothing(server):
    delayed = step("s", "transform", params={"v": "{{data.v}}"}, delay={"duration": 600_000})
    instance = server.instance(server.sequence(delayed), {})
    server.settle(instance, "scheduled")
    while server.shown(instance)["next_fire_at"] is None:
        pass
    before = server.shown(instance)["next_fire_at"]
    assert send(server, instance, "update_context", {"data": {"v": 1}}).status_code == 201
    shown = server.shown(instance)
    assert shown["context"]["data"] == {"v": 1}
    assert shown["state"] == "scheduled"
    assert shown["next_fire_at"] >= before
