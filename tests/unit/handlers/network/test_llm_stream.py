"""Streamed answers: text as it comes, and the same output as without streaming."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.handlers import Failed
from detent.handlers.network.llm_stream import Events
from detent.handlers.network.secrets import Flow, Secrets
from detent.model.inputs import EffectFailed
from detent.model.limits import STREAM_EVENT_CHARS
from tests.unit.handlers.calling import INSTANCE
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import answer, pieces
from tests.unit.handlers.network.models import (
    ANTHROPIC_STREAM,
    KEY,
    OPENAI_STREAM,
    STREAM,
    chunk,
    events,
    model,
    openai,
)


def streamed(*parts, provider="openai", say=None, **params):
    """The outcome of a stream of these parts, and the pieces of text that were told."""
    told = []
    with model(list(parts)) as server:
        if say is not None:
            server.say = say
        given = {"provider": provider, "base_url": server.url, "api_key": KEY, "stream": True}
        outcome = called("llm_call", {**given, **params}, deltas=lambda *piece: told.append(piece))
        return outcome, told, server.seen


@pytest.mark.req("SEQ-HND-1")
def test_text_is_told_as_it_comes_and_the_output_is_the_usual_one():
    outcome, told, [seen] = streamed(OPENAI_STREAM)
    assert told == [(INSTANCE, "pay", "Hel"), (INSTANCE, "pay", "lo")]
    assert outcome.result == {**openai_output(), "message": message("Hello")}
    assert seen.json()["stream"] is True
    assert seen.json()["stream_options"] == {"include_usage": True}
    assert seen.headers["accept"] == "text/event-stream"


def openai_output():
    return {
        "provider": "openai",
        "model": "gpt-small",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }


def message(text, **more):
    return {"role": "assistant", "content": text, **more}


@pytest.mark.req("SEQ-HND-1")
def test_the_other_style_streams_too_with_its_calls_of_tools():
    outcome, told, _ = streamed(ANTHROPIC_STREAM, provider="anthropic")
    assert [text for *_, text in told] == ["Hel", "lo"]
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    assert outcome.result == {
        "provider": "anthropic",
        "model": "claude-small",
        "message": message("Hello", tool_calls=[call]),
        "finish_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }


def test_calls_of_tools_come_in_parts():
    parts = [
        {"index": 0, "id": "t1", "function": {"name": "add", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a"'}},
        {"index": 1, "id": "t2", "function": {"name": "sub", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": ":1}"}},
    ]
    said = events(*(chunk(tool_calls=[part]) for part in parts), "[DONE]")
    outcome, _, _ = streamed(said)
    calls = outcome.result["message"]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"a":1}', "{}"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("said", "retryable"),
    [
        (b"", True),
        (events(chunk("half")), True),
        (b"data: {no json\n\n", True),
        (b"data: 7\n\n", True),
        (b'data: {"choices": 7}\n\n', None),
        (b'data: {"type": "error", "error": {"type": "overloaded_error"}}\n\n', True),
        (b'data: {"type": "error", "error": {"type": "invalid_request_error"}}\n\n', False),
        (b"data: " + b"x" * (STREAM_EVENT_CHARS + 1), False),
        (b"data: x\n" * STREAM_EVENT_CHARS, False),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_stream_that_breaks_off_is_a_failure(provider, said, retryable):
    outcome, _, _ = streamed(said, provider=provider)
    assert isinstance(outcome, EffectFailed)
    assert retryable is None or outcome.retryable is retryable


def test_a_stream_that_falls_silent_is_given_up():
    say = lambda _: pieces(STREAM, events(chunk("half")), then_wait=True)  # noqa: E731
    outcome, told, _ = streamed(say=say, stream_idle_timeout_secs=0.05)
    assert (outcome.retryable, outcome.details) == (True, {"code": "network.timeout"})
    assert [text for *_, text in told] == ["half"]


def test_a_stream_that_never_ends_is_cut_off_by_its_size_or_time():
    async def endless():
        yield STREAM
        while True:
            yield b": keep-alive\n\n"

    outcome, _, _ = streamed(say=lambda _: endless(), total_timeout_secs=0.2)
    assert isinstance(outcome, EffectFailed)
    assert outcome.details["code"] in ("network.timeout", "network.too_large")


def test_a_server_that_does_not_stream_is_understood():
    outcome, told, _ = streamed(say=lambda _: answer(200, openai("whole")))
    assert (outcome.result["message"]["content"], told) == ("whole", [])


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (429, True), (500, True)])
def test_a_failure_before_the_stream_is_the_usual_one(status, retryable):
    outcome, _, _ = streamed(say=lambda _: answer(status, b"no"))
    assert (outcome.retryable, outcome.details) == (retryable, {"status": status, "body": "no"})


def test_whoever_listens_cannot_break_the_answer():
    def broken(*_):
        raise ValueError

    with model([OPENAI_STREAM]) as server:
        params = {"base_url": server.url, "api_key": KEY, "stream": True}
        outcome = called("llm_call", params, deltas=broken)
    assert outcome.result["message"]["content"] == "Hello"


@given(st.lists(st.integers(1, 40), max_size=60), st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_the_same_however_the_bytes_are_cut(cuts, end):
    text = ': hi\nevent: a\ndata: {"x":\ndata: "ü"}\n\ndata:[1]\nid: 7\n\n\n\ndata: [DONE]\n\n: x\n'
    whole = text.replace("\n", end).encode()
    events = Events()
    found, place = [], 0
    for cut in [*cuts, len(whole)]:
        found += events.feed(whole[place : place + cut])
        place += cut
    assert found == [("a", {"x": "ü"}), ("", [1]), ("", "[DONE]")]


def test_an_event_may_be_as_large_as_the_limit():
    body = b'"' + b"x" * (STREAM_EVENT_CHARS - 100) + b'"'
    assert len(list(Events().feed(b"data: " + body + b"\n\n"))) == 1
    with pytest.raises(Failed):
        list(Events().feed(b"data: " + b"x" * (STREAM_EVENT_CHARS + 100)))


@given(st.lists(st.sampled_from([KEY[:5], KEY[5:], KEY, "text", KEY[:9], "sk-"]), max_size=8))
def test_a_secret_never_flows_however_it_is_cut(parts):
    flow = Flow(Secrets([KEY]))
    shown = "".join([flow.push(part) for part in parts]) + flow.rest()
    assert KEY not in shown
    assert shown == "".join(parts).replace(KEY, "[REDACTED]")
