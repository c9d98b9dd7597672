"""Built-in handlers that call others (contract §30), against a real server on this machine."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integration.web.house import house, step

pytestmark = pytest.mark.contract("30")

ONCE = {"max_attempts": 1, "initial_backoff": 1, "max_backoff": 1}
TWICE = {"max_attempts": 2, "initial_backoff": 1, "max_backoff": 1}


class Other:
    """A server that remembers calls and answers what the test wants."""

    def __init__(self):
        self.calls = []
        self.answers = []
        other = self

        class Handler(BaseHTTPRequestHandler):
            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)

            def answer(self):
                size = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(size)
                headers = {name.lower(): text for name, text in self.headers.items()}
                other.calls.append((self.command, self.path, headers, body))
                status, answer = other.answers.pop(0) if other.answers else (200, b"fine")
                if callable(answer):
                    answer = answer()
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def will(self, *answers):
        self.calls.clear()
        self.answers[:] = [
            (
                status,
                body if isinstance(body, bytes) or callable(body) else json.dumps(body).encode(),
            )
            for status, body in answers
        ]


@pytest.fixture(scope="module")
def other():
    made = Other()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    """A server whose steps may call this machine; breakers are out of the way."""
    settings = {"allowed_internal_hosts": ["127.0.0.1"], "breaker_threshold": 0}
    with house(tmp_path_factory.mktemp("out") / "s.db", **settings) as made:
        yield made


def call(server, handler, params, data=None, **options):
    instance = server.instance(server.sequence(step("s", handler, params=params, **options)), data)
    end = server.settle(instance)
    return end, server.outputs(instance)[-1][1]


# http_request ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_every_method_is_called(caller, other, method):
    other.will((201, b"made"))
    params = {"url": f"{other.url}/x?a=1", "method": method, "headers": {"X-Mine": "1"}}
    end, made = call(caller, "http_request", params)
    assert (end, made["status"]) == ("completed", 201)
    assert made["body"] == ("" if method == "HEAD" else "made")
    ((verb, path, headers, _),) = other.calls
    assert (verb, path, headers["x-mine"]) == (method, "/x?a=1", "1")


def test_the_default_is_get_and_a_body_is_json_by_its_type(caller, other):
    other.will((200, b"{}"), (200, b"{}"))
    call(caller, "http_request", {"url": other.url})
    assert other.calls[0][0] == "GET"
    params = {"url": other.url, "method": "POST", "body": '{"n": "{{data.n}}"}'}
    call(caller, "http_request", params, {"n": 7})
    _, _, headers, body = other.calls[1]
    assert headers["content-type"] == "application/json"
    assert body == b'{"n": "7"}'


@pytest.mark.parametrize(
    ("answers", "retry", "end", "calls"),
    [
        ([(404, b"no")], TWICE, "failed", 1),
        ([(500, b"no"), (200, b"ok")], TWICE, "completed", 2),
        ([(503, b"no"), (503, b"no")], TWICE, "failed", 2),
        ([(500, b"no")], ONCE, "failed", 1),
    ],
)
def test_a_five_hundred_may_be_tried_again_and_a_four_hundred_not(
    caller, other, answers, retry, end, calls
):
    other.will(*answers)
    found, _ = call(caller, "http_request", {"url": other.url}, retry=retry)
    assert (found, len(other.calls)) == (end, calls)


def test_what_is_refused_before_any_call(caller, server, other):
    other.will()
    assert call(caller, "http_request", {"url": other.url, "method": "BREW"})[0] == "failed"
    assert call(caller, "http_request", {"url": "ftp://example.com/"})[0] == "failed"
    # a server that allows no internal URLs calls nothing here
    assert call(server, "http_request", {"url": other.url}, retry=TWICE)[0] == "failed"
    assert other.calls == []


def test_one_that_cannot_be_reached_or_is_slow_may_be_tried_again(caller, other):
    end, _ = call(caller, "http_request", {"url": "http://127.0.0.1:1/"}, retry=TWICE)
    assert end == "failed"
    other.will((200, lambda: time.sleep(0.5) or b"late"), (200, b"in time"))
    params = {"url": other.url, "timeout_ms": 100}
    assert call(caller, "http_request", params, retry=TWICE)[0] == "completed"


# tool_call ---------------------------------------------------------------------------------------


def test_a_tool_is_told_its_arguments_and_who_asks(caller, other):
    other.will((200, {"sum": 3}))
    params = {"url": other.url, "tool_name": "add", "arguments": {"a": 1, "b": 2}}
    end, made = call(caller, "tool_call", params)
    assert end == "completed"
    assert made == {"tool_name": "add", "result": {"sum": 3}, "status": 200}
    ((method, _, _, body),) = other.calls
    sent = json.loads(body)
    assert method == "POST"
    assert (sent["tool_name"], sent["arguments"]) == ("add", {"a": 1, "b": 2})
    assert set(sent["context"]) == {"instance_id", "block_id", "attempt"}
    assert sent["context"]["block_id"] == "s"


@pytest.mark.parametrize(
    ("answers", "end", "calls"),
    [
        ([(200, b"")], "completed", 1),
        ([(200, b"not json")], "failed", 1),
        ([(400, b"{}")], "failed", 1),
        ([(502, b"{}"), (200, b"5")], "completed", 2),
    ],
)
def test_what_a_tools_answer_means(caller, other, answers, end, calls):
    other.will(*answers)
    found, made = call(caller, "tool_call", {"url": other.url}, retry=TWICE)
    assert (found, len(other.calls)) == (end, calls)
    if answers[0][1] == b"":
        assert made == {"tool_name": "unknown", "result": None, "status": 200}


# llm_call ----------------------------------------------------------------------------------------


def openai(text="hi", status=200):
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return status, {"model": "m", "choices": [choice], "usage": usage}


def anthropic(text="hi"):
    usage = {"input_tokens": 3, "output_tokens": 2}
    content = [{"type": "text", "text": text}]
    body = {"role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage}
    return 200, {"model": "m", **body}


ASK = {"messages": [{"role": "user", "content": "Hello"}], "api_key": "k3y", "model": "m"}


def test_an_openai_style_model_is_asked(caller, other):
    other.will(openai())
    params = {**ASK, "base_url": other.url, "system": "Be brief", "temperature": 0.5}
    end, made = call(caller, "llm_call", params)
    assert end == "completed"
    assert set(made) >= {"provider", "model", "message", "finish_reason", "usage"}
    assert (made["provider"], made["finish_reason"]) == ("openai", "stop")
    assert made["message"] == {"role": "assistant", "content": "hi"}
    ((method, path, headers, body),) = other.calls
    assert (method, path) == ("POST", "/chat/completions")
    assert headers["authorization"] == "Bearer k3y"
    sent = json.loads(body)
    assert sent["messages"][0] == {"role": "system", "content": "Be brief"}
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0.5, 4096)


def test_an_anthropic_style_model_is_asked(caller, other):
    other.will(anthropic())
    params = {**ASK, "provider": "anthropic", "base_url": other.url, "system": "Be brief"}
    end, made = call(caller, "llm_call", params)
    assert end == "completed"
    assert (made["provider"], made["message"]["content"]) == ("anthropic", "hi")
    ((method, path, headers, body),) = other.calls
    assert (method, path) == ("POST", "/messages")
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k3y", "2023-06-01")
    assert json.loads(body)["system"] == "Be brief"


@pytest.mark.parametrize(
    ("answers", "end", "calls"),
    [
        ([(429, {"error": "slow"}), openai()], "completed", 2),
        ([(500, {}), openai()], "completed", 2),
        ([(401, {})], "failed", 1),
        ([(400, {})], "failed", 1),
    ],
)
def test_what_a_models_status_means(caller, other, answers, end, calls):
    other.will(*answers)
    found, _ = call(caller, "llm_call", {**ASK, "base_url": other.url}, retry=TWICE)
    assert (found, len(other.calls)) == (end, calls)


def test_the_next_provider_stands_in_and_all_are_told(caller, other):
    other.will((500, {}), anthropic("from the second"))
    providers = [
        {"provider": "openai", "base_url": other.url, "api_key": "a", "model": "m"},
        {"provider": "anthropic", "base_url": other.url, "api_key": "b", "model": "m"},
    ]
    params = {"messages": ASK["messages"], "providers": providers}
    end, made = call(caller, "llm_call", params)
    assert end == "completed"
    assert made["message"]["content"] == "from the second"
    assert len(made["tried"]) >= 1
    other.will((500, {}), (500, {}), (500, {}), (500, {}))
    assert call(caller, "llm_call", params, retry=TWICE)[0] == "failed"
    assert len(other.calls) == 2  # all failed is final: no second attempt


def test_a_missing_key_is_found_before_any_call(caller, other):
    other.will()
    params = {"messages": ASK["messages"], "base_url": other.url, "model": "m"}
    for more in ({"api_key_env": "NOBODY_SET_THIS_API_KEY"}, {}):
        assert call(caller, "llm_call", {**params, **more}, retry=TWICE)[0] == "failed"
    assert other.calls == []


def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again(caller, other):
    schema = {"type": "object", "required": ["n"]}
    other.will(openai("no json"), openai('{"n": 1}'))
    params = {**ASK, "base_url": other.url, "response_schema": schema}
    end, _made = call(caller, "llm_call", params)
    assert (end, len(other.calls)) == ("completed", 2)


# human_review ------------------------------------------------------------------------------------


def test_a_review_notifies_whom_it_names(caller, other):
    other.will((200, b""))
    params = {
        "review_data": {"x": 1},
        "notify_url": f"{other.url}/reviews",
        "notify_headers": {"X-Team": "red"},
    }
    end, made = call(caller, "human_review", params)
    assert (end, made["status"], made["review_data"]) == ("completed", "pending", {"x": 1})
    ((method, path, headers, body),) = other.calls
    assert (method, path, headers["x-team"]) == ("POST", "/reviews", "red")
    assert json.loads(body)["review_data"] == {"x": 1}


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://10.0.0.1/", "ftp://x", "/reviews"])
def test_a_review_that_nobody_can_be_told_of_is_made_all_the_same(caller, url):
    end, made = call(caller, "human_review", {"notify_url": url})
    assert (end, made["status"], made["notified"]) == ("completed", "pending", False)
    assert made["notify_error"]
    assert call(caller, "human_review", {"notify_url": 5})[0] == "failed"


def test_a_dry_run_tells_nobody_of_a_review(caller, other):
    other.will()
    block = step("s", "human_review", params={"notify_url": other.url})
    instance = caller.instance(caller.sequence(block), dry_run=True)
    assert caller.settle(instance) == "completed"
    made = caller.outputs(instance)[-1][1]
    assert (made["dry_run"], made["would"]) == (True, {"method": "POST", "url": other.url})
    assert other.calls == []
