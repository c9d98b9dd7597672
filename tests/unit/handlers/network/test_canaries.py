"""Secrets that a call carries are in no outcome, whatever the other side does with them."""

from __future__ import annotations

import base64
import json

import pytest

from detent.model.inputs import encode_input
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import Loopback, answer, pieces
from tests.unit.handlers.network.models import KEY, STREAM, chunk, events

BASIC = base64.b64encode(b"user:canary-password").decode()
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "X-Api-Key": KEY,
    "Cookie": "session=canary-cookie-1",
    "X-Auth-Token": "canary-token-1",
    "Proxied-Secret": "canary-secret-1",
}


def everything(seen):
    """All that a spiteful server can say back."""
    return json.dumps([seen.headers, seen.path, seen.body.decode()])


def echo(status):
    def say(seen):
        body = {"choices": [{"message": {"content": everything(seen)}}], KEY: [KEY]}
        body |= {"content": [{"type": "text", "text": everything(seen)}]}
        return answer(status, body)

    return say


SAYS = {
    "success": echo(200),
    "bad request": echo(400),
    "too many": echo(429),
    "broken": echo(500),
    "no json": lambda seen: answer(200, everything(seen).encode()[1:]),
    "nonsense": lambda seen: pieces(everything(seen).encode()),
    "never": lambda _seen: pieces(then_wait=True),
    "redirect": lambda _seen: answer(302, headers=[f"Location: http://{KEY}@x/{KEY}"]),
    "stream": lambda seen: pieces(
        STREAM, events(chunk(everything(seen)), chunk(KEY[:7]), chunk(KEY[7:]), "[DONE]")
    ),
    "broken stream": lambda _seen: pieces(STREAM, f"data: {KEY}\n\n".encode()),
}


def assert_clean(outcome):
    text = encode_input(outcome).decode()
    assert KEY not in text
    assert "canary" not in text


@pytest.mark.parametrize("say", SAYS.values(), ids=SAYS)
@pytest.mark.parametrize("handler", ["http_request", "tool_call"])
def test_secret_headers_are_in_no_outcome(handler, say):
    with Loopback(say) as server:
        params = {"url": f"{server.url}/", "headers": HEADERS, "timeout_ms": 100}
        assert_clean(called(handler, params))
        assert_clean(called(handler, params, dry_run=True))


@pytest.mark.parametrize("say", SAYS.values(), ids=SAYS)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("failover", [True, False])
def test_a_key_is_in_no_outcome_and_in_no_piece_of_text(say, provider, stream, failover):
    told = []
    with Loopback(say) as server:
        one = {"provider": provider, "base_url": server.url, "api_key": KEY}
        params = {"providers": [one, one]} if failover else one
        limits = {"per_provider_timeout_secs": 0.1, "total_timeout_secs": 0.3}
        outcome = called(
            "llm_call",
            {**params, **limits, "stream": stream},
            deltas=lambda *piece: told.append(piece[2]),
        )
    assert_clean(outcome)
    assert KEY not in "".join(told)


@pytest.mark.parametrize("text", [f"{KEY} is no JSON", json.dumps({"x": KEY})])
def test_a_key_is_in_no_complaint_about_a_schema(text):
    def say(_seen):
        return answer(200, {"choices": [{"message": {"content": text}}]})

    with Loopback(say) as server:
        schema = {"type": "object", "properties": {"x": {"const": 1}}, "required": ["y"]}
        params = {"base_url": server.url, "api_key": KEY, "response_schema": schema}
        assert_clean(called("llm_call", params))


def test_a_secret_is_hidden_when_only_a_part_of_its_header_is_said_back():
    said = b"canary-password canary-cookie-1 " + KEY.encode()
    with Loopback(lambda _: answer(200, said)) as server:
        headers = {**HEADERS, "Authorization": f"Basic {BASIC}"}
        assert_clean(called("http_request", {"url": server.url, "headers": headers}))


def test_the_password_of_basic_authorization_is_hidden_in_its_encoded_form():
    with Loopback(lambda seen: answer(500, seen.headers["authorization"].encode())) as server:
        headers = {"Authorization": f"Basic {BASIC}"}
        outcome = called("http_request", {"url": server.url, "headers": headers})
    assert outcome.details["body"] == "[REDACTED]"


def test_what_is_no_secret_is_left_alone():
    with Loopback(lambda seen: answer(200, everything(seen).encode())) as server:
        headers = {"X-Trace": "trace-0123456789", "X-Key": "short"}
        outcome = called("http_request", {"url": server.url, "headers": headers})
    assert "trace-0123456789" in outcome.result["body"]
    assert "short" in outcome.result["body"]
