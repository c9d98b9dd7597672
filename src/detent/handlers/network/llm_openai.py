"""The style of OpenAI: what is sent to `/chat/completions`, and what its answers mean. Pure."""

from __future__ import annotations

from typing import Any

from detent.handlers.answers import Failed
from detent.handlers.network.llm_ask import Ask

PATH = "/chat/completions"
_FINAL = ("invalid_request_error", "authentication_error", "permission_error")


def headers(ask: Ask) -> dict[str, str]:
    """The headers that name the caller; no key, no header."""
    return {"authorization": f"Bearer {ask.key}"} if ask.key else {}


def body(ask: Ask, *, stream: bool) -> dict[str, Any]:
    """The request."""
    system = [] if ask.system is None else [{"role": "system", "content": ask.system}]
    made: dict[str, Any] = {"model": ask.model, "messages": [*system, *ask.messages]}
    for name in ("temperature", "max_tokens", "tool_choice"):
        if getattr(ask, name) is not None:
            made[name] = getattr(ask, name)
    if ask.tools is not None:
        made["tools"] = [_tool(tool) for tool in ask.tools]
    if stream:
        made |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**made, **{name: value for name, value in ask.options.items() if value is not None}}


def read(ask: Ask, answer: Any) -> dict[str, Any]:
    """The output of a step, out of a whole answer."""
    try:
        choice = answer["choices"][0]
        message = {"role": "assistant", "content": None, **choice["message"]}
        reason = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise unreadable(ask) from None
    return {
        "provider": ask.provider,
        "model": answer.get("model") or ask.model,
        "message": message,
        "finish_reason": reason,
        "usage": answer.get("usage") or {},
    }


class Gathered:
    """A streamed answer, put together again."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._text: list[str] = []
        self._tools: dict[int, dict[str, Any]] = {}
        self._answer: dict[str, Any] = {}
        self._reason: Any = None
        self.done = False

    def take(self, _event: str, data: Any) -> str:
        """Take one event; the text that it adds."""
        if data == "[DONE]":
            self.done = True
            return ""
        try:
            return self._chunk(data)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise unreadable(self._ask) from None

    def whole(self) -> dict[str, Any]:
        """The answer in the form in which it comes without streaming."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._tools:
            message["tool_calls"] = [self._tools[place] for place in sorted(self._tools)]
        return {
            **self._answer,
            "choices": [{"message": message, "finish_reason": self._reason}],
        }

    def _chunk(self, data: Any) -> str:
        if data.get("error"):
            raise _told(self._ask, data["error"])
        for name in ("model", "usage"):
            if data.get(name):
                self._answer[name] = data[name]
        text = ""
        for choice in (data.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or []:
                self._tool(call)
            self._reason = choice.get("finish_reason") or self._reason
        self._text.append(text)
        return text

    def _tool(self, part: dict[str, Any]) -> None:
        """A call of a tool comes in parts, its arguments as text."""
        function = part.get("function") or {}
        found = self._tools.setdefault(
            part.get("index", 0),
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        found["id"] = part.get("id") or found["id"]
        found["function"]["name"] += function.get("name") or ""
        found["function"]["arguments"] += function.get("arguments") or ""


def unreadable(ask: Ask) -> Failed:
    """The failure of an answer in another form than the style has."""
    text = f"the answer of {ask.provider} is not in the form that its style has"
    return Failed(text, code="model.answer")


def _told(ask: Ask, error: Any) -> Failed:
    kind = str(error.get("type", "")) if isinstance(error, dict) else ""
    text = f"{ask.provider} broke off with an error of type {kind or 'unknown'}"
    return Failed(text, retryable=kind not in _FINAL, code="model.answer")


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as OpenAI has it, also when it was written as Anthropic has it."""
    if "input_schema" not in tool:
        return tool
    function = {name: tool[name] for name in ("name", "description") if name in tool}
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}
