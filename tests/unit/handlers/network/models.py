"""Language models on loopback, in both styles."""

from __future__ import annotations

import json

from tests.unit.handlers.network.loopback import Loopback, answer, pieces

KEY = "sk-canary-0123456789"
STREAM = answer(headers=["Content-Type: text/event-stream"], length=False)


def openai(text, **more):
    """A whole answer in the style of OpenAI."""
    return {
        "model": "gpt-small",
        "choices": [
            {"message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }


def anthropic(*parts):
    """A whole answer in the style of Anthropic."""
    content = [{"type": "text", "text": p} if isinstance(p, str) else p for p in parts]
    return {
        "model": "claude-small",
        "role": "assistant",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }


def events(*datas, named=False):
    """The bytes of a stream of events."""
    lines = []
    for data in datas:
        if named:
            lines.append(f"event: {data['type']}")
        text = data if isinstance(data, str) else json.dumps(data)
        lines += [f"data: {text}", ""]
    return "\n".join([*lines, ""]).encode()


def chunk(text=None, **more):
    return {"model": "gpt-small", "choices": [{"delta": {"content": text, **more}}]}


OPENAI_STREAM = events(
    chunk("Hel"),
    chunk("lo"),
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    "[DONE]",
)

ANTHROPIC_STREAM = events(
    {"type": "message_start", "message": {"model": "claude-small", "usage": {"input_tokens": 5}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t1", "name": "add", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":'},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": " 1}"},
    },
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 6},
    },
    {"type": "message_stop"},
    named=True,
)


def model(*said):
    """A server that says these one after the other, the last one for ever."""
    left = list(said)

    def say(_seen):
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, list):
            return pieces(STREAM, *one)
        return one if isinstance(one, bytes) else answer(200, one)

    return Loopback(say)
