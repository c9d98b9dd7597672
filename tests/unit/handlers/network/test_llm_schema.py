"""Structured output: an answer that must fit a schema, and its repair."""

from __future__ import annotations

import pytest

from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.models import KEY, anthropic, model, openai

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["city"],
}


def asked(*said, schema=CITY, **params):
    with model(*said) as server:
        given = {"base_url": server.url, "api_key": KEY, "response_schema": schema}
        return called("llm_call", {**given, **params}), server.seen


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Ulm"}',
        ' \n{"city": "Ulm"}\n',
        '```json\n{"city": "Ulm"}\n```',
        '```\n{"city": "Ulm"}\n```',
        'Here it is: {"city": "Ulm"}. Enjoy!',
        'Not {this}, but\n```json\n{"city": "Ulm"}\n```\nis it.',
    ],
)
def test_json_is_found_in_an_answer_and_its_fields_are_in_the_output(text):
    outcome, [seen] = asked(openai(text))
    result = outcome.result
    assert (result["city"], result["structured"]) == ("Ulm", {"city": "Ulm"})
    assert (result["schema_valid"], result["repair_attempts"]) == (True, 0)
    assert result["message"]["content"] == text
    sent = seen.json()
    assert sent["response_format"] == {"type": "json_object"}
    assert "JSON Schema" in sent["messages"][0]["content"]


@pytest.mark.req("SEQ-HND-1")
def test_an_answer_that_does_not_fit_is_repaired_by_the_same_provider():
    outcome, seen = asked(
        openai("I do not know"), openai('{"city": 7}'), openai('{"city": "Ulm"}'), system="hi"
    )
    result = outcome.result
    assert (result["city"], result["repair_attempts"]) == ("Ulm", 2)
    assert result["usage"] == {"prompt_tokens": 9, "completion_tokens": 12}
    last = seen[2].json()["messages"]
    assert last[0]["content"].startswith("hi\n\n")
    assert [m["role"] for m in last[1:]] == ["assistant", "user", "assistant", "user"]
    assert last[-2]["content"] == '{"city": 7}'
    assert "/city" in last[-1]["content"]
    assert len({each.headers["idempotency-key"] for each in seen}) == 3


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("attempts", [0, 1, 5])
def test_an_answer_that_is_never_right_is_final_after_so_many_repairs(attempts):
    outcome, seen = asked(openai('{"city": 7}'), max_repair_attempts=attempts)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, len(seen)) == (False, attempts + 1)
    details = outcome.details
    assert (details["code"], details["last_response"]) == ("model.answer", '{"city": 7}')
    assert details["validation_errors"][0].startswith("/city: ")


def test_keys_of_the_output_win_over_fields_of_the_answer():
    outcome, _ = asked(openai('{"city": "Ulm", "model": "mine"}'))
    assert outcome.result["model"] == "gpt-small"
    assert outcome.result["structured"]["model"] == "mine"


def test_an_answer_need_not_be_an_object():
    outcome, [seen] = asked(openai("so: [1, 2]"), schema={"type": "array"})
    assert outcome.result["structured"] == [1, 2]
    assert "response_format" not in seen.json()


def test_the_other_style_is_asked_by_words_alone():
    outcome, [seen] = asked(anthropic('{"city": "Ulm"}'), provider="anthropic")
    assert outcome.result["city"] == "Ulm"
    assert "response_format" not in seen.json()
    assert "JSON Schema" in seen.json()["system"]


def test_a_provider_that_cannot_repair_is_one_that_failed():
    with model(openai("no")) as first, model(anthropic('{"city": "Ulm"}')) as second:
        providers = [
            {"provider": "openai", "base_url": first.url, "api_key": KEY},
            {"provider": "anthropic", "base_url": second.url, "api_key": KEY},
        ]
        outcome = called("llm_call", {"providers": providers, "response_schema": CITY})
        assert isinstance(outcome, EffectApplied)
        assert (outcome.result["tried"], len(first.seen)) == (["openai", "anthropic"], 3)


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize(
    "reference",
    ["http://169.254.169.254/latest", "https://example.org/s.json", "file:///etc/passwd"],
)
def test_a_schema_cannot_make_the_engine_look_outside(reference):
    outcome, seen = asked(openai("{}"), schema={"$ref": reference})
    assert (outcome.retryable, outcome.details) == (False, {"code": "request.invalid"})
    assert "outside of the schema" in outcome.message
    assert seen == []


def test_an_answer_that_must_fit_is_not_streamed():
    told = []
    with model(openai('{"city": "Ulm"}')) as server:
        params = {"base_url": server.url, "api_key": KEY, "response_schema": CITY, "stream": True}
        outcome = called("llm_call", params, deltas=lambda *piece: told.append(piece))
        assert (outcome.result["city"], told) == ("Ulm", [])
        assert "stream" not in server.seen[0].json()
