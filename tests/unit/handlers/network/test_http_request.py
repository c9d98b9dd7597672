"""http_request: what it sends, what it gives, and how it fails."""

from __future__ import annotations

import pytest

from detent.handlers.network import NetworkSettings
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import Loopback, answer, pieces


def ended(params, say=None, **options):
    """The outcome of a request to a server that says this, and what the server saw."""
    with Loopback(say or (lambda _: answer(200, b"hello"))) as server:
        url = params.pop("url", "/")
        if isinstance(url, str) and url.startswith("/"):
            url = server.url + url
        outcome = called("http_request", {"url": url, **params}, **options)
        return outcome, server.seen


@pytest.mark.req("SEQ-HND-1")
def test_a_request_gives_status_and_text():
    outcome, [seen] = ended({"url": "/a?b=c"})
    assert isinstance(outcome, EffectApplied)
    assert outcome.result == {"status": 200, "body": "hello"}
    assert (seen.method, seen.path, seen.body) == ("GET", "/a?b=c", b"")
    assert "idempotency-key" not in seen.headers


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("method", ["POST", "put", "PATCH", "DELETE"])
def test_a_request_that_may_change_something_carries_the_key_of_its_effect(method):
    _, [seen] = ended({"method": method, "body": '{"a":1}'})
    assert (seen.method, seen.body) == (method.upper(), b'{"a":1}')
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["idempotency-key"] == "k1"


@pytest.mark.parametrize(
    ("body", "sent"),
    [("text", b"text"), ({"a": [1]}, b'{"a":[1]}'), (7, b"7"), (None, b""), ("", b"")],
)
def test_a_body_is_sent_as_it_is_or_as_json(body, sent):
    _, [seen] = ended({"method": "POST", "body": body})
    assert seen.body == sent


def test_headers_of_the_step_win_over_ours():
    headers = {"Content-Type": "text/csv", "Idempotency-Key": "mine", "X-N": 7}
    _, [seen] = ended({"method": "POST", "body": "a,b", "headers": headers})
    assert [seen.headers[name.lower()] for name in headers] == ["text/csv", "mine", "7"]


def test_a_head_request_has_no_body():
    outcome, [seen] = ended({"method": "HEAD"}, lambda _: answer(200, headers=["X: y"]))
    assert (seen.method, outcome.result) == ("HEAD", {"status": 200, "body": ""})


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (422, False), (429, False), (500, True), (502, True), (503, True)],
)
def test_4xx_is_final_and_5xx_may_be_retried_with_the_answer_in_the_details(status, retryable):
    outcome, _ = ended({}, lambda _: answer(status, b"no"))
    assert isinstance(outcome, EffectFailed)
    assert outcome.retryable is retryable
    assert outcome.details == {"status": status, "body": "no"}


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_says_when_to_come_back_closes_the_limit_until_then(status):
    outcome, _ = ended({}, lambda _: answer(status, b"", ["Retry-After: 7"]))
    assert outcome.retryable is True
    assert outcome.details == {"status": status, "body": "", "retry_after_ms": 7_000}


def test_the_answer_in_the_details_of_a_failure_is_cut():
    outcome, _ = ended({}, lambda _: answer(500, b"x" * 100_000))
    assert outcome.details["body"] == "x" * 16_384


@pytest.mark.req("SEQ-HND-1")
def test_a_server_that_does_not_answer_in_time_may_be_retried():
    outcome, _ = ended({"timeout_ms": 50}, lambda _: pieces(then_wait=True))
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (True, {"code": "network.timeout"})


def test_an_answer_beyond_the_limit_is_final():
    settings = NetworkSettings(allow_internal=True, max_body_bytes=10)
    outcome, _ = ended({}, lambda _: answer(200, b"x" * 11), settings=settings)
    assert (outcome.retryable, outcome.details) == (False, {"code": "network.too_large"})


@pytest.mark.req("SEQ-HND-4")
def test_a_private_address_is_final_unless_it_is_allowed():
    outcome, seen = ended({}, settings=NetworkSettings())
    assert (outcome.retryable, outcome.details) == (False, {"code": "network.refused"})
    assert seen == []
    outcome, seen = ended({}, settings=NetworkSettings(allowed_hosts=("127.0.0.1",)))
    assert (outcome.result["status"], len(seen)) == (200, 1)


@pytest.mark.parametrize(
    "params",
    [
        {"url": None},
        {"url": ""},
        {"url": 7},
        {"url": "/", "method": "TRACE"},
        {"url": "/", "method": "CONNECT"},
        {"url": "/", "method": "GET /x"},
        {"url": "/", "method": ""},
        {"url": "/", "timeout_ms": 0},
        {"url": "/", "timeout_ms": -1},
        {"url": "/", "timeout_ms": 10**9},
        {"url": "/", "timeout_ms": "1s"},
        {"url": "/", "headers": []},
        {"url": "/", "headers": {"Host": "127.0.0.1"}},
        {"url": "/", "headers": {"content-length": "5"}},
        {"url": "/", "headers": {"Transfer-Encoding": "chunked"}},
        {"url": "/", "headers": {"Connection": "upgrade"}},
        {"url": "/", "headers": {"X": "a\r\nHost: b"}},
        {"url": "/", "headers": {"X": "a\nb"}},
        {"url": "/", "headers": {"X": "a\x00b"}},
        {"url": "/", "headers": {"X": "日本"}},
        {"url": "/", "headers": {"X Y": "a"}},
        {"url": "/", "headers": {"X:": "a"}},
        {"url": "/", "headers": {"": "a"}},
        {"url": "/", "headers": {"X\r\nY": "a"}},
        {"url": "/", "headers": {"X": None}},
        {"url": "/", "headers": {"X": ["a"]}},
        {"url": "/", "headers": {"X": "a" * 40_000}},
        {"url": "/", "headers": {f"X-{n}": "a" for n in range(101)}},
        {"url": "/", "bodi": "x"},
    ],
    ids=ascii,
)
def test_params_that_cannot_be_used_are_final_and_nothing_is_sent(params):
    outcome, seen = ended(params)
    assert isinstance(outcome, EffectFailed)
    assert outcome.retryable is False
    assert outcome.details["code"] in ("request.invalid", "network.refused")
    assert seen == []


def test_params_that_are_missing_altogether_are_final():
    outcome = called("http_request", None)
    assert (outcome.retryable, outcome.details) == (False, {"code": "network.refused"})


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_tells_what_would_be_sent_and_sends_nothing():
    params = {"method": "post", "headers": {"Authorization": "Bearer canary-12345"}}
    outcome, seen = ended(params, dry_run=True)
    result = outcome.result
    assert (result["dry_run"], result["handler"], result["body"]) == (True, "http_request", None)
    assert result["would"]["method"] == "POST"
    assert "canary" not in str(result)
    assert seen == []


def test_a_dry_run_finds_a_wrong_url():
    outcome, _ = ended({"url": "file:///etc/passwd"}, dry_run=True)
    assert (outcome.retryable, outcome.details) == (False, {"code": "network.refused"})
