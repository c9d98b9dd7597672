"""tool_call: what a tool is told, and what its answers mean."""

from __future__ import annotations

import pytest

from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.calling import INSTANCE
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import Loopback, answer, pieces


def ended(params, said=None, **options):
    with Loopback(lambda _: answer(200, {"sum": 3}) if said is None else said) as server:
        outcome = called("tool_call", {"url": f"{server.url}/tool", **params}, **options)
        return outcome, server.seen


@pytest.mark.req("SEQ-HND-1")
def test_a_tool_gets_its_name_its_arguments_and_where_the_call_comes_from():
    outcome, [seen] = ended({"tool_name": "add", "arguments": {"a": 1, "b": 2}}, attempt=2)
    assert isinstance(outcome, EffectApplied)
    assert outcome.result == {"tool_name": "add", "result": {"sum": 3}, "status": 200}
    assert (seen.method, seen.path) == ("POST", "/tool")
    assert seen.json() == {
        "tool_name": "add",
        "arguments": {"a": 1, "b": 2},
        "context": {"instance_id": INSTANCE, "block_id": "pay", "attempt": 2},
    }
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["idempotency-key"] == "k1"


def test_a_tool_without_a_name_is_unknown_and_has_no_arguments():
    outcome, [seen] = ended({})
    assert outcome.result["tool_name"] == "unknown"
    assert seen.json()["arguments"] == {}


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_answer_is_null(body):
    outcome, _ = ended({}, answer(204, body))
    assert outcome.result == {"tool_name": "unknown", "result": None, "status": 204}


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("body", [b"<html>", b"{", b"[" * 100_000, b"NaN", b"\xff\xfe"])
def test_an_answer_that_is_no_json_is_final(body):
    outcome, _ = ended({}, answer(200, body))
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details["status"]) == (False, 200)


def test_an_answer_that_is_no_json_can_be_wanted_as_text():
    outcome, _ = ended({"response_as": "text"}, answer(200, b"<html>"))
    assert outcome.result["result"] == "<html>"


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(("status", "retryable"), [(400, False), (404, False), (500, True)])
def test_4xx_is_final_and_5xx_may_be_retried(status, retryable):
    outcome, _ = ended({}, answer(status, b"no"))
    assert outcome.retryable is retryable
    assert outcome.details == {"status": status, "body": "no"}


@pytest.mark.req("SEQ-HND-1")
def test_a_tool_that_does_not_answer_in_time_may_be_retried():
    outcome, _ = ended({"timeout_ms": 50}, pieces(then_wait=True))
    assert (outcome.retryable, outcome.details) == (True, {"code": "network.timeout"})


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"url": ""},
        {"url": "x"},
        {"url": "http://example.org/", "method": "HEAD"},
        {"url": "http://example.org/", "method": "GET", "arguments": {"a": 1}},
        {"url": "http://example.org/", "tool_name": 7},
        {"url": "http://example.org/", "response_as": "bytes"},
        {"url": "http://example.org/", "upload": {}},
    ],
    ids=ascii,
)
def test_params_that_cannot_be_used_are_final(params):
    outcome = called("tool_call", params)
    assert isinstance(outcome, EffectFailed)
    assert outcome.retryable is False


def test_a_tool_can_be_asked_by_get_when_it_needs_no_arguments():
    outcome, [seen] = ended({"method": "GET"})
    assert (outcome.result["result"], seen.method, seen.body) == ({"sum": 3}, "GET", b"")


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_has_the_shape_of_an_answer_and_calls_nothing():
    outcome, seen = ended({"tool_name": "add", "arguments": {"a": 1}}, dry_run=True)
    result = outcome.result
    assert (result["dry_run"], result["handler"]) == (True, "tool_call")
    assert (result["tool_name"], result["result"]) == ("add", None)
    assert result["would"]["method"] == "POST"
    assert seen == []
