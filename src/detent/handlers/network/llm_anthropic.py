"""The style of Anthropic: what is sent to `/messages`, and what its answers mean. Pure.

Messages, tools and answers of a step are written as OpenAI has them, so that a step can fail over
from one style to the other; here they are turned into the other form and back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from detent.handlers.answers import Failed
from detent.handlers.network.llm_ask import Ask
from detent.handlers.network.llm_openai import unreadable

PATH: Final = "/messages"
_VERSION: Final = "2023-06-01"
_MAX_TOKENS: Final = 4_096  # the style wants a number
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
_LATER: Final = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")


def headers(ask: Ask) -> dict[str, str]:
    """The headers that name the caller and the version; no key, no header."""
    key = {"x-api-key": ask.key} if ask.key else {}
    return {**key, "anthropic-version": _VERSION}


def body(ask: Ask, *, stream: bool) -> dict[str, Any]:
    """The request; system messages stand on top, not in the list."""
    said = [m for m in ask.messages if m.get("role") == "system"]
    system = [text for text in (ask.system, *(m.get("content") for m in said)) if text]
    made: dict[str, Any] = {
        "model": ask.model,
        "max_tokens": ask.max_tokens or _MAX_TOKENS,
        "messages": _messages([m for m in ask.messages if m.get("role") != "system"]),
    }
    if system:
        made["system"] = "\n\n".join(map(str, system)) if len(system) > 1 else system[0]
    if ask.temperature is not None:
        made["temperature"] = ask.temperature
    if ask.tools is not None:
        made["tools"] = [_tool(tool) for tool in ask.tools]
    if ask.tool_choice is not None:
        made["tool_choice"] = _choice(ask.tool_choice)
    if stream:
        made["stream"] = True
    return {**made, **{name: value for name, value in ask.options.items() if value is not None}}


def read(ask: Ask, answer: Any) -> dict[str, Any]:
    """The output of a step, out of a whole answer."""
    try:
        parts = answer["content"]
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        calls = [_called(part) for part in parts if part["type"] == "tool_use"]
        reason, usage = answer.get("stop_reason"), answer.get("usage") or {}
    except (KeyError, TypeError, AttributeError):
        raise unreadable(ask) from None
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return {
        "provider": ask.provider,
        "model": answer.get("model") or ask.model,
        "message": message,
        "finish_reason": reason,
        "usage": usage,
    }


class Gathered:
    """A streamed answer, put together again."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._parts: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._answer: dict[str, Any] = {"usage": {}}
        self.done = False

    def take(self, event: str, data: Any) -> str:
        """Take one event; the text that it adds."""
        try:
            return self._take(data.get("type") or event, data)
        except (KeyError, TypeError, AttributeError):
            raise unreadable(self._ask) from None

    def whole(self) -> dict[str, Any]:
        """The answer in the form in which it comes without streaming."""
        for place, text in self._inputs.items():
            try:
                self._parts[place]["input"] = msgspec.json.decode(text or "{}")
            except (KeyError, msgspec.DecodeError):
                raise unreadable(self._ask) from None
        return {**self._answer, "content": [self._parts[place] for place in sorted(self._parts)]}

    def _take(self, event: str, data: Any) -> str:
        match event:
            case "message_start":
                message = data["message"]
                self._answer["model"] = message.get("model")
                self._answer["usage"] |= message.get("usage") or {}
            case "content_block_start":
                self._parts[data["index"]] = dict(data["content_block"])
                return data["content_block"].get("text") or ""
            case "content_block_delta":
                return self._delta(data["index"], data["delta"])
            case "message_delta":
                self._answer["stop_reason"] = data["delta"].get("stop_reason")
                self._answer["usage"] |= data.get("usage") or {}
            case "message_stop":
                self.done = True
            case "error":
                raise _told(self._ask, data.get("error") or {})
        return ""

    def _delta(self, place: int, delta: dict[str, Any]) -> str:
        part = self._parts[place]
        if delta["type"] == "input_json_delta":
            self._inputs[place] = self._inputs.get(place, "") + delta["partial_json"]
            return ""
        if delta["type"] != "text_delta":
            return ""
        part["text"] = part.get("text", "") + delta["text"]
        return str(delta["text"])


def _told(ask: Ask, error: dict[str, Any]) -> Failed:
    kind = str(error.get("type", "unknown"))
    text = f"{ask.provider} broke off with an error of type {kind}"
    return Failed(text, retryable=kind in _LATER, code="model.answer")


def _messages(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with calls of tools and their results in the form of this style."""
    made: list[dict[str, Any]] = []
    for message in given:
        if message.get("role") == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": message.get("content"),
            }
            if made and made[-1].get("role") == "user" and isinstance(made[-1]["content"], list):
                made[-1]["content"].append(result)
            else:
                made.append({"role": "user", "content": [result]})
        elif message.get("tool_calls"):
            made.append({"role": "assistant", "content": _calls(message)})
        else:
            made.append({"role": message.get("role"), "content": message.get("content")})
    return made


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    text = message.get("content")
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for call in message["tool_calls"]:
        function = call.get("function") or {}
        given = function.get("arguments") or "{}"
        try:
            arguments = msgspec.json.decode(given) if isinstance(given, str) else given
        except msgspec.DecodeError:
            arguments = {}
        use = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
        parts.append({**use, "input": arguments})
    return parts


def _called(part: dict[str, Any]) -> dict[str, Any]:
    arguments = msgspec.json.encode(part.get("input") or {}).decode()
    function = {"name": part["name"], "arguments": arguments}
    return {"id": part["id"], "type": "function", "function": function}


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as Anthropic has it, also when it was written as OpenAI has it."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    made = {name: function[name] for name in ("name", "description") if name in function}
    return {**made, "input_schema": function.get("parameters") or {"type": "object"}}


def _choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return {"type": _CHOICES.get(choice, choice)}
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        return {"type": "tool", "name": choice["function"].get("name")}
    return choice
