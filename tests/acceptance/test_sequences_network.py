"""http_request, tool_call and llm_call in an engine, against real servers."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step
from tests.acceptance.stage import refused
from tests.unit.handlers.network.loopback import Loopback, answer, pieces
from tests.unit.handlers.network.models import KEY, OPENAI_STREAM, anthropic, model, openai

RETRY = {"max_attempts": 3, "initial_backoff": 1_000, "max_backoff": 10_000}


def engine_for(*servers, **settings):
    hosts = [f"127.0.0.1:{server.port}" for server in servers]
    return detent.Engine(clock="virtual", allowed_internal_hosts=hosts, **settings)


def ended(engine, handler, params, data=None, *, dry_run=False, **options):
    """The end of a sequence of one step."""
    definition = sequence("one", step("s", handler, params=params, **options))
    instance = engine.start(definition, data, dry_run=dry_run)
    engine.run_until_idle()
    return engine.inspect.show(instance)


@pytest.mark.req("SEQ-HND-1")
def test_a_request_is_rendered_sent_and_its_answer_is_the_output():
    with Loopback(lambda seen: answer(200, seen.path.encode())) as server:
        with engine_for(server) as engine:
            url = f"{server.url}/orders/{{{{ data.order }}}}"
            shown = ended(engine, "http_request", {"url": url}, {"order": 7})
        assert shown.outputs["s"] == {"status": 200, "body": "/orders/7"}
        assert shown.data == {"order": 7}


@pytest.mark.req("SEQ-HND-1", "SEQ-HND-4")
@pytest.mark.parametrize("handler", ["http_request", "tool_call", "llm_call"])
def test_a_private_address_fails_the_step_and_is_never_called(handler):
    with Loopback(lambda _: answer(200, b"{}")) as server, engine_for() as engine:
        params = {"url": server.url}
        if handler == "llm_call":
            params = {"base_url": server.url, "api_key": KEY}
        shown = ended(engine, handler, params, retry=RETRY)
        assert shown.summary.state == "failed"
        assert shown.error["details"]["code"] == "network.refused"
        assert server.seen == []


@pytest.mark.req("SEQ-HND-1")
def test_a_service_that_is_down_is_called_again_with_another_key_each_time():
    said = [answer(503), answer(500), answer(200, b"up")]
    with Loopback(lambda _: said.pop(0)) as server, engine_for(server) as engine:
        params = {"url": server.url, "method": "POST"}
        shown = ended(engine, "http_request", params, retry=RETRY)
        assert shown.outputs["s"] == {"status": 200, "body": "up"}
        assert len({seen.headers["idempotency-key"] for seen in server.seen}) == 3


@pytest.mark.req("SEQ-HND-1")
def test_a_service_that_refuses_is_called_once():
    with Loopback(lambda _: answer(422, b"no")) as server, engine_for(server) as engine:
        shown = ended(engine, "http_request", {"url": server.url}, retry=RETRY)
        assert shown.summary.state == "failed"
        assert shown.error["details"] == {"status": 422, "body": "no"}
        assert len(server.seen) == 1


def test_a_service_that_says_when_to_come_back_is_left_alone_by_everybody():
    said = [answer(429, b"", ["Retry-After: 600"]), answer(200), answer(200)]
    with Loopback(lambda _: said.pop(0)) as server, engine_for(server) as engine:
        engine.limits.set("service", max=100, window="1m")
        began = engine.now()
        params = {"url": server.url}
        call = step("s", "http_request", params=params, retry=RETRY, rate_limit_key="service")
        definition = sequence("one", call)
        first = engine.start(definition)
        engine.advance(1_000)
        second = engine.start(definition)
        engine.run_until_idle()
        assert [engine.inspect.show(each).summary.state for each in (first, second)] == [
            "completed",
            "completed",
        ]
        assert (engine.now() - began).total_seconds() >= 600


@pytest.mark.req("SEQ-HND-1")
def test_a_time_out_is_a_failure_that_is_retried():
    said = [lambda: pieces(then_wait=True), lambda: answer(200, b"in time")]
    with Loopback(lambda _: said.pop(0)()) as server, engine_for(server) as engine:
        params = {"url": server.url, "timeout_ms": 50}
        shown = ended(engine, "http_request", params, retry=RETRY)
        assert (shown.outputs["s"]["body"], len(server.seen)) == ("in time", 2)


def test_the_time_of_the_step_ends_a_call_too():
    with Loopback(lambda _: pieces(then_wait=True)) as server, engine_for(server) as engine:
        shown = ended(engine, "http_request", {"url": server.url}, timeout=50)
        assert shown.error["kind"] == "timeout"


@pytest.mark.req("SEQ-HND-1")
def test_a_tool_is_told_which_block_calls_it():
    with Loopback(lambda seen: answer(200, seen.json()["context"])) as server:
        with engine_for(server) as engine:
            shown = ended(engine, "tool_call", {"url": server.url, "tool_name": "t"})
        result = shown.outputs["s"]["result"]
    assert result == {"instance_id": shown.summary.id, "block_id": "s", "attempt": 1}


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("handler", ["http_request", "tool_call"])
def test_a_missing_url_fails_the_step_and_not_the_start(handler):
    with engine_for() as engine:
        shown = ended(engine, handler, {})
    assert shown.summary.state == "failed"


@pytest.mark.req("SEQ-HND-1")
def test_models_fail_over_repair_and_stream_in_an_engine():
    with (
        model(answer(500)) as broken,
        model(anthropic("no JSON"), anthropic('{"a": 1}')) as good,
        engine_for(broken, good) as engine,
    ):
        providers = [
            {"provider": "openai", "base_url": broken.url, "api_key": KEY},
            {"provider": "anthropic", "base_url": good.url, "api_key": KEY},
        ]
        params = {"providers": providers, "response_schema": {"type": "object"}}
        output = ended(engine, "llm_call", params).outputs["s"]
        assert (output["tried"], output["a"]) == (["openai", "anthropic"], 1)
        assert output["repair_attempts"] == 1


@pytest.mark.req("SEQ-HND-1")
def test_text_of_a_model_reaches_who_listens_to_the_instance():
    told, other = [], []
    with model([OPENAI_STREAM]) as server, engine_for(server) as engine:
        params = {"base_url": server.url, "api_key": KEY, "stream": True}
        definition = sequence("one", step("s", "llm_call", params=params))
        instance = engine.start(definition, key="watched")
        deltas = engine._parts.deltas
        stop = deltas.listen(instance, lambda *piece: told.append(piece))
        deltas.listen("another", lambda *piece: other.append(piece))
        engine.run_until_idle()
        stop()
        assert engine.inspect.show(instance).outputs["s"]["message"]["content"] == "Hello"
    assert (told, other) == ([("s", "Hel"), ("s", "lo")], [])


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("handler", ["http_request", "tool_call", "llm_call"])
def test_a_dry_run_sends_nothing_and_hides_the_key(handler):
    with model(openai("x")) as server, engine_for(server) as engine:
        params = {"url": server.url, "headers": {"Authorization": KEY}}
        if handler == "llm_call":
            params = {"base_url": server.url, "api_key": KEY}
        shown = ended(engine, handler, params, dry_run=True)
        output = shown.outputs["s"]
        assert (output["dry_run"], output["handler"]) == (True, handler)
        assert (KEY in str(output), server.seen) == (False, [])


def test_a_network_call_replays_without_the_network():
    with Loopback(lambda _: answer(200, b"once")) as server, engine_for(server) as engine:
        shown = ended(engine, "http_request", {"url": server.url})
        assert engine.replay(shown.summary.id).identical
        assert len(server.seen) == 1


def test_a_running_engine_keeps_connections_and_closes_them_with_itself(tmp_path):
    with Loopback(lambda _: answer(200, b"x")) as server:
        hosts = ["127.0.0.1"]
        definition = sequence("one", step("s", "http_request", params={"url": server.url}))
        with detent.Engine(tmp_path / "d.db", allowed_internal_hosts=hosts) as engine:
            for _ in range(5):
                assert engine.wait_for(engine.start(definition)) == "completed"
        assert (len(server.seen), server.connections) == (5, 1)


@pytest.mark.parametrize("entry", ["http://x/", "a b", "10.0.0.0/99", "x:99999", ""])
def test_an_engine_with_an_allowed_host_that_is_none_does_not_open(entry):
    with refused("request.invalid"):
        detent.Engine(clock="virtual", allowed_internal_hosts=[entry])
    with refused("request.invalid"):
        detent.Engine(clock="virtual", allowed_internal_hosts="127.0.0.1")
