"""An instance followed as a stream (contract §27)."""

from __future__ import annotations

import time
import uuid

import pytest

import detent
from detent.web.api.settings import ApiSettings
from tests.integration.web.following import everything, following, raw, until
from tests.integration.web.house import ROOT, house, step

WAIT = {"type": "wait", "id": "w", "signal": "go", "store_as": "answer"}


def names(seen):
    return [name for name, _data, _id in seen]


def go(server, instance):
    server.post(f"/instances/{instance}/signals", {"signal_type": {"custom": "go"}})


@pytest.mark.req("SEQ-OPS-1")
def test_an_instance_that_has_ended_is_told_and_done_is_last(server):
    instance = server.instance(server.sequence(step("a"), step("b"), step("c")))
    server.settle(instance)
    with following(server, f"/instances/{instance}/stream") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        seen = list(answer.seen)
    assert seen[0] == ("state", {"instance_id": instance, "state": "completed"}, None)
    assert names(seen) == ["state", "output", "output", "output", "done"]
    assert seen[-1][1] == {"state": "completed"}
    stored = server.get(f"/instances/{instance}/outputs").json()
    assert [data for name, data, _id in seen if name == "output"] == stored


@pytest.mark.req("SEQ-OPS-1")
def test_a_standing_instance_is_told_at_once_and_followed_to_its_end(server):
    instance = server.instance(server.sequence(step("a"), WAIT, step("b"), step("c")))
    server.settle(instance, "waiting")
    with following(server, f"/instances/{instance}/stream?poll_ms=5000") as answer:
        began = time.monotonic()
        first = [next(answer.seen), next(answer.seen)]
        assert first[0][1] == {"instance_id": instance, "state": "waiting"}
        assert first[1][1]["block_id"] == "a"
        go(server, instance)
        rest = list(answer.seen)
        assert time.monotonic() - began < 4, "it was woken by the clock and not by the move"
    assert names(rest)[-1] == "done"
    blocks = [data["block_id"] for name, data, _id in rest if name == "output"]
    assert blocks == ["w", "b", "c"]
    states = [data["state"] for name, data, _id in rest if name == "state"]
    assert states[-1] == "completed"
    assert "waiting" not in states


@pytest.mark.req("SEQ-OPS-1")
def test_outputs_after_the_last_known_one_are_told_again_and_no_others(server):
    instance = server.instance(server.sequence(*[step(f"s{i}") for i in range(20)]))
    server.settle(instance)
    path = f"/instances/{instance}/stream"
    outputs = [each for each in everything(server, path) if each[0] == "output"]
    assert len({id for _name, _data, id in outputs}) == 20
    for known in (0, 7, 18):
        again = everything(server, path, last=outputs[known][2])
        assert [each for each in again if each[0] == "output"] == outputs[known + 1 :]
    done = everything(server, path)[-1]
    with following(server, path, last=done[2]) as answer:
        assert answer.status_code == 204, "a browser must not come again and again"
    for bad in ("x", "1", "1.x", "-1.0", "9" * 19 + ".0", "1.0.0"):
        with following(server, path, last=bad) as answer:
            assert answer.status_code == 400


def test_nobody_follows_what_is_not_theirs(server):
    instance = server.instance(server.sequence())
    for path in (f"/instances/{instance}/stream", f"/instances/{uuid.uuid4()}/stream"):
        with following(server, path, tenant="other") as answer:
            assert answer.status_code == 404
    assert server.get("/instances/nobody/stream").status_code == 400
    assert server.get(f"/instances/{instance}/stream?poll_ms=soon").status_code == 400
    assert server.get(f"/instances/{instance}/stream", key="").status_code == 401


@pytest.mark.parametrize("poll_ms", [-1, 0, 1, 10**9])
def test_how_often_it_looks_is_held_within_bounds(server, poll_ms):
    instance = server.instance(server.sequence())
    server.settle(instance)
    assert (
        names(everything(server, f"/instances/{instance}/stream?poll_ms={poll_ms}"))[-1] == "done"
    )


def test_a_failed_instance_is_done_as_failed(server):
    instance = server.instance(server.sequence(step("bad", "fail")))
    server.settle(instance)
    seen = everything(server, f"/instances/{instance}/stream")
    assert seen[-1][:2] == ("done", {"state": "failed"})
    assert [data["output_ref"] for name, data, _id in seen if name == "output"] == ["__error__"]


def test_a_head_request_ends_at_once(server):
    instance = server.instance(server.sequence(WAIT))
    server.settle(instance, "waiting")
    answer = server.call("HEAD", f"/instances/{instance}/stream")
    assert (answer.status_code, answer.content) == (200, b"")
    until(lambda: len(server.streams) == 0)


def test_what_a_model_writes_is_told_as_it_comes(server):
    instance = server.instance(server.sequence(WAIT))
    server.settle(instance, "waiting")
    with following(server, f"/instances/{instance}/stream?poll_ms=5000") as answer:
        assert next(answer.seen)[0] == "state"
        for text in ("Hel", "lo"):
            server.engine._parts.deltas(instance, "w", text)
        told = [next(answer.seen), next(answer.seen)]
        go(server, instance)
        assert names(answer.seen)[-1] == "done"
    assert [data["delta"] for _name, data, _id in told] == ["Hel", "lo"]
    assert told[0][1] == {"instance_id": instance, "block_id": "w", "delta": "Hel"}


def test_an_idle_stream_says_that_it_is_alive(server, monkeypatch):
    monkeypatch.setattr("detent.web.api.streams.STREAM_BEAT_MS", 100)
    instance = server.instance(server.sequence(WAIT))
    server.settle(instance, "waiting")
    with following(server, f"/instances/{instance}/stream?poll_ms=100") as answer:
        lines = answer.iter_lines()
        assert any(line == ": alive" for line in lines)


def test_there_may_be_so_many_streams_and_no_more(tmp_path):
    api = ApiSettings(api_key=ROOT, streams=2)
    with house(tmp_path / "s.db", api=api) as server:
        instance = server.instance(server.sequence(WAIT))
        server.settle(instance, "waiting")
        path = f"/instances/{instance}/stream"
        with following(server, path), following(server, path):
            refused = server.get(path)
            assert refused.status_code == 503
            assert refused.json()["code"] == "stream.full"
            assert refused.json()["error"].startswith("unavailable: ")
        until(lambda: len(server.streams) == 0)
        with following(server, path) as answer:
            assert answer.status_code == 200


def test_streams_that_are_dropped_leave_nothing(server):
    instance = server.instance(server.sequence(WAIT))
    server.settle(instance, "waiting")
    path = f"/instances/{instance}/stream"
    watch = server.engine._parts.watch
    for _ in range(3):
        sockets = [raw(server, path) for _ in range(100)]
        until(lambda: len(watch._listeners.get(instance, ())) == 100)
        assert len(server.streams) == 100
        for each in sockets:
            each.close()
        until(lambda: len(server.streams) == 0)
        assert instance not in watch._listeners
        assert instance not in server.engine._parts.deltas._listeners
    assert server.get("/health/ready", key="").status_code == 200


def test_a_reader_that_takes_nothing_is_read_for_no_further_and_dropped(tmp_path, monkeypatch):
    """Thousands of outputs happen while one client never reads: the stream stands, then ends."""
    monkeypatch.setattr("detent.web.api.streams.STREAM_STALL_MS", 1_000)
    rounds = 1_500

    @detent.handler
    async def write() -> dict:
        return {"text": "x" * 8_000}

    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": rounds,
        "body": [step("t", "write")],
    }
    with house(tmp_path / "s.db", handlers=[write]) as server:
        instance = server.instance(server.sequence(WAIT, loop))
        server.settle(instance, "waiting")
        path = f"/instances/{instance}/stream"
        lazy = raw(server, path, receive_bytes=4_096)
        until(lambda: len(server.streams) == 1)
        (stream,) = server.streams._open
        follower = stream._parts.ag_frame.f_locals["follower"]
        go(server, instance)
        server.settle(instance)
        until(lambda: len(server.streams) == 0)
        assert follower._seq < rounds, "it read on for somebody who does not"
        seen = [each for each in everything(server, path) if each[0] == "output"]
        assert len(seen) == len({id for _name, _data, id in seen}) == rounds + 2
        lazy.close()


def test_a_server_that_stops_ends_its_streams(tmp_path):
    with house(tmp_path / "s.db") as server:
        instance = server.instance(server.sequence(WAIT))
        server.settle(instance, "waiting")
        with following(server, f"/instances/{instance}/stream") as answer:
            next(answer.seen)
            began = time.monotonic()
            server.served.stop()
            assert list(answer.seen) == []
            assert time.monotonic() - began < 4
