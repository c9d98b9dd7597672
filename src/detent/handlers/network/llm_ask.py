"""What is asked of a language model, whoever it is asked: provider, key, messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.network.outside import read_params, wrong
from detent.handlers.network.targets import read_target
from detent.model import limits

ANTHROPIC: Final = "anthropic"

# Providers by name; all but one speak in the style of OpenAI.
BASES: Final = {
    "openai": "https://api.openai.com/v1",
    ANTHROPIC: "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "perplexity": "https://api.perplexity.ai",
    "qwen": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "together": "https://api.together.xyz/v1",
}
MODELS: Final = {"openai": "gpt-4o", ANTHROPIC: "claude-sonnet-4-6"}
_OWN: Final = "DETENT_"


class Params(Struct, frozen=True, kw_only=True):
    """What a step may say; any other name goes to the provider as it is."""

    provider: str = "openai"
    model: str | None = None
    messages: list[dict[str, Any]] = []
    system: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = 4_096
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    providers: list[dict[str, Any]] | None = None
    total_timeout_secs: float = 120.0
    per_provider_timeout_secs: float = 60.0
    response_schema: dict[str, Any] | None = None
    max_repair_attempts: int = 2
    stream: bool = False
    stream_idle_timeout_secs: float = 30.0


class Ask(Struct, frozen=True, kw_only=True):
    """One question to one provider, with everything that is sent."""

    provider: str
    model: str
    base: str
    key: str
    messages: list[dict[str, Any]]
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    options: dict[str, Any] = {}


def read_ask(
    given: Mapping[str, Any], environment: Mapping[str, str], key_envs: tuple[str, ...]
) -> Ask:
    """What a step asks; everything that can be wrong about it is found before any call."""
    params = read_params(given, Params, "llm_call")
    provider = params.provider.lower()
    model = params.model or MODELS.get(provider)
    if not model:
        raise wrong(f"llm_call needs a model for the provider {provider!r:.60}; name one")
    return Ask(
        provider=provider,
        model=model,
        base=_base(params, provider),
        key=_key(params, provider, environment, key_envs),
        messages=params.messages,
        system=params.system,
        temperature=params.temperature,
        max_tokens=params.max_tokens,
        tools=params.tools,
        tool_choice=params.tool_choice,
        options={name: given[name] for name in given if name not in Params.__struct_fields__},
    )


def seconds(name: str, value: float) -> float:
    """A time limit in seconds; 0 stands for the longest there is."""
    longest = limits.CALL_TIMEOUT_MS / 1000
    if not 0 <= value <= longest:
        raise wrong(f"{name} must be 0 to {longest:g}, got {value:g}")
    return value or longest


def _base(params: Params, provider: str) -> str:
    base = params.base_url or BASES.get(provider)
    if not base:
        known = ", ".join(BASES)
        raise wrong(f"provider must be one of {known}, or come with base_url; got {provider!r:.60}")
    if "?" in base or "#" in base:
        raise wrong("base_url must end with a path, not with a query")
    read_target(base)
    return base.rstrip("/")


def _key(
    params: Params, provider: str, environment: Mapping[str, str], key_envs: tuple[str, ...]
) -> str:
    if params.api_key is not None:
        return params.api_key.strip()
    name = params.api_key_env or f"{provider.upper()}_API_KEY"
    if name.startswith(_OWN) or not any(fnmatchcase(name, pattern) for pattern in key_envs):
        allowed = ", ".join(key_envs) or "none"
        raise _no_key(f"the variable {name!r:.80} may not be read for a key; allowed are {allowed}")
    key = environment.get(name, "").strip()
    if not key:
        raise _no_key(f"the variable {name} with the API key of {provider} is not set")
    return key


def _no_key(problem: str) -> Failed:
    return Failed(problem, retryable=False, code="model.key")
