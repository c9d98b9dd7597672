"""Webhooks go through the guarded client."""

from __future__ import annotations

import asyncio

import pytest

from detent.handlers.network import NetworkSettings, Outside, Posting
from detent.model.errors import RequestError
from tests.unit.handlers.network.loopback import Loopback, answer, pieces

INSIDE = NetworkSettings(allow_internal=True)


def posted(say, settings=INSIDE, timeout_ms=5_000):
    with Loopback(say) as server:
        posting = Posting(Outside(settings))
        headers = {"Webhook-Id": "w1", "content-type": "application/json"}
        told = asyncio.run(posting(f"{server.url}/hook", headers, b"{}", timeout_ms))
        return told, server.seen


@pytest.mark.parametrize("status", [200, 404, 410, 429, 500])
def test_an_answer_is_told_whatever_its_status(status):
    said = answer(status, b"said", ["Retry-After: 7"])
    (got, headers, excerpt), [seen] = posted(lambda _: said)
    assert (got, headers["retry-after"], excerpt) == (status, "7", "said")
    assert (seen.method, seen.path, seen.body) == ("POST", "/hook", b"{}")
    assert seen.headers["webhook-id"] == "w1"


@pytest.mark.req("SEQ-HND-4")
def test_a_private_address_is_refused_for_good():
    with pytest.raises(RequestError) as refusal:
        posted(lambda _: answer(200), NetworkSettings())
    assert refusal.value.code == "network.refused"


def test_a_redirect_is_refused_for_good():
    with pytest.raises(RequestError) as refusal:
        posted(lambda _: answer(308, headers=["Location: /other"]))
    assert refusal.value.code == "network.refused"


@pytest.mark.parametrize("parts", [(b"nonsense",), ()])
def test_anything_else_may_be_tried_again(parts):
    with pytest.raises(ConnectionError):
        posted(lambda _: pieces(*parts))


def test_silence_may_be_tried_again():
    with pytest.raises(ConnectionError):
        posted(lambda _: pieces(then_wait=True), timeout_ms=50)
