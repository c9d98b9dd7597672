"""llm_call: both styles, keys, failures and failover."""

from __future__ import annotations

import pytest

from detent.handlers.network import NetworkSettings
from detent.handlers.network.llm_ask import BASES
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import answer, pieces
from tests.unit.handlers.network.models import KEY, anthropic, model, openai

HELLO = [{"role": "user", "content": "hello"}]


def asked(said, params=None, **options):
    with model(said) as server:
        given = {"base_url": f"{server.url}/v1", "api_key": KEY, "messages": HELLO}
        outcome = called("llm_call", {**given, **(params or {})}, **options)
        return outcome, server.seen


@pytest.mark.req("SEQ-HND-1")
def test_the_style_of_openai():
    outcome, [seen] = asked(openai("hi"), {"system": "be kind", "temperature": 0.5})
    assert outcome.result == {
        "provider": "openai",
        "model": "gpt-small",
        "message": {"role": "assistant", "content": "hi"},
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json() == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "be kind"}, *HELLO],
        "max_tokens": 4096,
        "temperature": 0.5,
    }


@pytest.mark.req("SEQ-HND-1")
def test_the_style_of_anthropic():
    params = {
        "provider": "anthropic",
        "model": "claude-small",
        "system": "be kind",
        "messages": [{"role": "system", "content": "and brief"}, *HELLO],
    }
    outcome, [seen] = asked(anthropic("h", "i"), params)
    assert outcome.result == {
        "provider": "anthropic",
        "model": "claude-small",
        "message": {"role": "assistant", "content": "hi"},
        "finish_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    assert seen.path == "/v1/messages"
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in seen.headers
    assert seen.json() == {
        "model": "claude-small",
        "max_tokens": 4096,
        "messages": HELLO,
        "system": "be kind\n\nand brief",
    }


def test_tools_and_their_calls_are_written_once_for_both_styles():
    tool = {
        "type": "function",
        "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}},
    }
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    messages = [
        *HELLO,
        {"role": "assistant", "content": "let me see", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "3"},
        {"role": "tool", "tool_call_id": "t2", "content": "4"},
    ]
    params = {"tools": [tool], "tool_choice": "required", "messages": messages}
    outcome, [seen] = asked(openai(None, tool_calls=[call]), params)
    assert outcome.result["message"]["tool_calls"] == [call]
    assert (seen.json()["tools"], seen.json()["messages"]) == ([tool], messages)

    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    outcome, [seen] = asked(anthropic("so", use), {**params, "provider": "anthropic"})
    assert outcome.result["message"] == {
        "role": "assistant",
        "content": "so",
        "tool_calls": [call],
    }
    sent = seen.json()
    assert sent["tools"] == [
        {"name": "add", "description": "adds", "input_schema": {"type": "object"}}
    ]
    assert sent["tool_choice"] == {"type": "any"}
    assert sent["messages"] == [
        *HELLO,
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, use]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "3"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "4"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ({"type": "function", "function": {"name": "add"}}, {"type": "tool", "name": "add"}),
        ({"type": "tool", "name": "add"}, {"type": "tool", "name": "add"}),
    ],
)
def test_a_choice_of_tool_is_translated(choice, sent):
    native = [{"name": "add", "input_schema": {"type": "object"}}]
    params = {"provider": "anthropic", "tools": native, "tool_choice": choice}
    _, [seen] = asked(anthropic("x"), params)
    assert (seen.json()["tools"], seen.json()["tool_choice"]) == (native, sent)


def test_other_options_go_to_the_provider_as_they_are():
    _, [seen] = asked(openai("x"), {"top_p": 0.1, "seed": 7, "max_tokens": None})
    assert (seen.json()["top_p"], seen.json()["seed"]) == (0.1, 7)
    assert "max_tokens" not in seen.json()


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("status", "retryable"),
    [(429, True), (500, True), (503, True), (529, True), (400, False), (401, False), (404, False)],
)
def test_429_and_5xx_may_be_retried_and_other_4xx_are_final(provider, status, retryable):
    outcome, _ = asked(answer(status, {"error": "no"}), {"provider": provider})
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details["status"]) == (retryable, status)


def test_a_provider_that_says_when_to_come_back_closes_the_limit_until_then():
    outcome, _ = asked(answer(429, b"{}", ["Retry-After: 20"]))
    assert (outcome.retryable, outcome.details["retry_after_ms"]) == (True, 20_000)


@pytest.mark.parametrize(
    "said",
    [
        answer(200, b"<html>"),
        answer(200, b""),
        {},
        [],
        {"choices": []},
        {"choices": [{}]},
        {"choices": "x"},
        {"content": [{"type": "text"}]},
        {"content": "x"},
        7,
    ],
    ids=repr,
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_answer_in_no_known_form_may_be_retried(said, provider):
    said = said if isinstance(said, bytes) else answer(200, said)
    outcome, _ = asked(said, {"provider": provider})
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (True, {"code": "model.answer"})


def test_a_redirect_of_a_provider_is_not_followed():
    outcome, seen = asked(answer(307, headers=["Location: http://127.0.0.1:1/"]))
    assert (outcome.retryable, outcome.details["status"], len(seen)) == (False, 307, 1)


# keys ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("environment", [{}, {"MY_API_KEY": ""}, {"MY_API_KEY": " \n"}])
def test_a_missing_key_is_final_before_any_call(environment):
    params = {"api_key": None, "api_key_env": "MY_API_KEY"}
    outcome, seen = asked(openai("x"), params, environment=environment)
    assert (outcome.retryable, outcome.details) == (False, {"code": "model.key"})
    assert seen == []


def test_a_key_is_taken_from_the_environment():
    params = {"api_key": None, "api_key_env": "MY_API_KEY"}
    _, [seen] = asked(openai("x"), params, environment={"MY_API_KEY": f"{KEY}\n"})
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    _, [seen] = asked(openai("x"), {"api_key": None}, environment={"OPENAI_API_KEY": KEY})
    assert seen.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", ["HOME", "AWS_SECRET_ACCESS_KEY", "DETENT_ROOT_API_KEY", "*", ""])
def test_a_definition_cannot_send_away_other_secrets_of_the_process(name):
    environment = {name: "a-secret-of-the-process"} if name else {}
    params = {"api_key": None, "api_key_env": name}
    outcome, seen = asked(openai("x"), params, environment=environment)
    assert (outcome.retryable, outcome.details) == (False, {"code": "model.key"})
    assert seen == []


def test_an_operator_can_say_which_variables_hold_keys():
    settings = NetworkSettings(allow_internal=True, api_key_envs=("TEAM_*",))
    environment = {"TEAM_MODEL": KEY, "OPENAI_API_KEY": KEY}
    params = {"api_key": None, "api_key_env": "TEAM_MODEL"}
    outcome, _ = asked(openai("x"), params, environment=environment, settings=settings)
    assert isinstance(outcome, EffectApplied)
    outcome, seen = asked(
        openai("x"), {"api_key": None}, environment=environment, settings=settings
    )
    assert (outcome.details, seen) == ({"code": "model.key"}, [])


def test_an_empty_key_sends_none():
    _, [seen] = asked(openai("x"), {"api_key": ""})
    assert "authorization" not in seen.headers


# failover --------------------------------------------------------------------------------------


def failing_over(servers, **params):
    """Ask servers of given kinds in turn; the outcome."""
    providers = [
        {"provider": name, "base_url": server.url, "api_key": KEY} for name, server in servers
    ]
    return called("llm_call", {"messages": HELLO, "providers": providers, **params})


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("said", [answer(500), answer(401), answer(429), answer(200, b"<html>")])
def test_the_next_provider_is_asked_when_one_fails(said):
    with model(said) as first, model(anthropic("hi")) as second, model(openai("no")) as third:
        outcome = failing_over([("openai", first), ("anthropic", second), ("openai", third)])
        assert outcome.result["tried"] == ["openai", "anthropic"]
        assert outcome.result["message"]["content"] == "hi"
        assert [len(server.seen) for server in (first, second, third)] == [1, 1, 0]


@pytest.mark.req("SEQ-HND-1")
def test_when_all_providers_fail_it_is_final():
    with model(answer(500, b"first")) as first, model(answer(503, b"second")) as second:
        outcome = failing_over([("openai", first), ("anthropic", second)])
    assert isinstance(outcome, EffectFailed)
    assert outcome.retryable is False
    assert outcome.details["tried"] == ["openai", "anthropic"]
    assert (outcome.details["status"], outcome.details["body"]) == (503, "second")
    assert outcome.details["code"] == "model.failed"


@pytest.mark.req("SEQ-HND-1")
def test_a_provider_that_is_slow_or_has_no_key_is_passed_over():
    with model(openai("hi")) as good, model([b""]) as slow:
        slow.say = lambda _: pieces(then_wait=True)
        providers = [
            {"provider": "groq", "model": "m", "api_key_env": "NONE_API_KEY"},
            {"provider": "mistral", "base_url": good.url, "api_key": KEY},
            {"provider": "evil", "model": "m", "base_url": "http://0.0.0.0/", "api_key": KEY},
            {"provider": "slow", "model": "m", "base_url": slow.url, "api_key": KEY},
            {"provider": "openai", "base_url": good.url, "api_key": KEY},
        ]
        params = {"providers": providers, "per_provider_timeout_secs": 0.05}
        outcome = called("llm_call", params)
    assert outcome.result["tried"] == ["groq", "mistral", "evil", "slow", "openai"]


@pytest.mark.parametrize("alone", [True, False])
def test_the_time_for_all_of_it_is_limited_and_that_may_be_retried(alone):
    with model([b""]) as slow:
        slow.say = lambda _: pieces(then_wait=True)
        one = {"base_url": slow.url, "api_key": KEY}
        params = one if alone else {"providers": [one, one]}
        outcome = called("llm_call", {**params, "total_timeout_secs": 0.05})
    assert (outcome.retryable, outcome.details) == (True, {"code": "network.timeout"})


@pytest.mark.parametrize(
    "params",
    [
        {"providers": []},
        {"providers": [{}] * 17},
        {"providers": "openai"},
        {"provider": "nobody", "model": "m"},
        {"provider": "groq"},
        {"base_url": "file:///x"},
        {"base_url": "http://example.org/?x="},
        {"messages": "hello"},
        {"max_repair_attempts": 6},
        {"max_repair_attempts": -1},
        {"total_timeout_secs": -1},
        {"total_timeout_secs": 10**9},
        {"response_schema": {"type": "nonsense"}},
        {"response_schema": "object"},
        {"api_key": "line\nbreak-in-a-key"},
    ],
    ids=ascii,
)
def test_params_that_cannot_be_used_are_final_and_nobody_is_asked(params):
    outcome = called("llm_call", {"api_key": KEY, **params})
    assert isinstance(outcome, EffectFailed)
    assert outcome.retryable is False
    assert "break-in-a-key" not in str(outcome)


def test_every_provider_that_is_known_is_called_by_tls_alone():
    assert all(base.startswith("https://") for base in BASES.values())


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_has_the_shape_of_an_answer_and_asks_nobody():
    outcome, seen = asked(openai("x"), {"model": "m"}, dry_run=True)
    result = outcome.result
    assert (result["dry_run"], result["handler"], result["model"]) == (True, "llm_call", "m")
    assert (result["message"], result["finish_reason"]) == (
        {"role": "assistant", "content": ""},
        "dry_run",
    )
    assert (seen, KEY in str(result)) == ([], False)


def test_a_dry_run_finds_a_missing_key():
    outcome, _ = asked(openai("x"), {"api_key": None}, dry_run=True)
    assert (outcome.retryable, outcome.details) == (False, {"code": "model.key"})
