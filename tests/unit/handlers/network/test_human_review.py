"""`human_review` with a notify_url: a courtesy that never fails the step."""

from __future__ import annotations

import pytest

from detent.handlers.network import NetworkSettings
from detent.model.inputs import EffectApplied
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import Loopback, answer

REVIEW = {"type": "human_review", "review_data": {"x": 1}}


def told(say=None, url=None, headers=None, **options):
    """The outcome of a notice, and what the server saw."""
    with Loopback(say or (lambda _: answer(204))) as server:
        params = {"notify_url": url or f"{server.url}/r", "review": REVIEW}
        outcome = called("human_review", params | {"notify_headers": headers or {}}, **options)
        return outcome, server.seen


@pytest.mark.req("SEQ-HND-1")
def test_the_review_is_posted_with_the_key_of_its_effect():
    outcome, [seen] = told(headers={"X-Team": "red"})
    assert isinstance(outcome, EffectApplied)
    assert outcome.result == {**REVIEW, "notified": True}
    assert (seen.method, seen.path, seen.json()) == ("POST", "/r", REVIEW)
    assert (seen.headers["x-team"], seen.headers["idempotency-key"]) == ("red", "k1")


@pytest.mark.req("SEQ-HND-1", "SEQ-HND-4")
@pytest.mark.parametrize(
    "options",
    [
        {"say": lambda _: answer(500, b"no")},
        {"say": lambda _: answer(404, b"no")},
        {"url": "http://127.0.0.1:1/"},
        {"url": "no url"},
        {"headers": {"bad header": "x"}},
        {"settings": NetworkSettings()},
    ],
)
def test_that_nobody_took_it_is_said_and_the_review_is_made(options):
    outcome, _ = told(**options)
    assert isinstance(outcome, EffectApplied)
    assert outcome.result["notified"] is False
    assert outcome.result["notify_error"]
    assert outcome.result["review_data"] == {"x": 1}
