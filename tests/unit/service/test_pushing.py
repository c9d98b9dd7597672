"""What a receiver's answer to a pushed task means, and when it is pushed again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detent.model import limits
from detent.service.push_targets import KeptTarget, Target
from detent.service.pushing import Again, Broken, Done, Push, Taken, given_back, meaning
from detent.service.work_views import Task

NOW = 1_000_000


def said(status, body=b"", **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return meaning(status, headers, body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", Taken()),
        (b"OK", Taken()),
        (b"[" * 10_000, Taken()),
        ([{"output": 1}], Taken()),
        ({"message": "thanks"}, Taken()),
        ({"error": "no"}, Taken()),
        ({"error": {"retryable": True}}, Taken()),
        ({"output": None}, Done(output=None)),
        (
            {"output": {"a": 1}, "logs": [{"message": "x"}]},
            Done(output={"a": 1}, logs=[{"message": "x"}]),
        ),
        ({"output": 1, "logs": "none"}, Done(output=1)),
        ({"error": {"message": "no"}}, Broken(message="no")),
        ({"error": {"message": "no", "retryable": True}}, Broken(message="no", retryable=True)),
        ({"error": {"message": "no", "retryable": "yes"}}, Broken(message="no")),
        ({"error": {"message": "no"}, "output": 1}, Broken(message="no")),
    ],
)
@pytest.mark.parametrize("status", [200, 201, 202])
def test_only_an_output_or_an_error_ends_a_task_at_once(status, body, expected):
    assert said(status, body) == expected


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 422, 451])
def test_a_refusal_is_no_matter_of_waiting_a_little(status):
    found = said(status, {"output": 1})
    assert found == Again(reason=f"the receiver answered {status}", final=True)


def test_a_receiver_that_is_gone_wants_no_more():
    assert said(410) == Again(reason="the receiver answered 410", final=True, gone=True)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 599])
def test_a_receiver_in_trouble_says_when_it_may_be_asked_again(status):
    assert said(status) == Again(reason=f"the receiver answered {status}")
    asked = said(status, **{"retry-after": "7"})
    assert asked == Again(reason=f"the receiver answered {status}", asked_ms=7_000)
    assert said(status, **{"retry-after": "soon"}).asked_ms == 0


def a_push(failed=0, epoch=1):
    blank = dict.fromkeys(Task.__struct_fields__)
    task = Task(**{**blank, "id": "task", "claim_epoch": epoch})
    target = Target("id", "acme", KeptTarget(queue_name="q", url="https://example.com/"))
    return Push(target=target, task=task, keys=(), failed=failed)


def pause(push, **more):
    return given_back(push, Again(reason="r", **more), NOW).push_ms - NOW


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_pauses_grow_to_a_most_and_those_that_fail_together_come_apart(failed, epoch):
    found = pause(a_push(failed, epoch))
    grown = min(limits.PUSH_BACKOFF_MS * 2 ** min(failed, 64), limits.PUSH_BACKOFF_MAX_MS)
    assert grown * 3 // 4 <= found <= grown * 5 // 4
    assert pause(a_push(failed, epoch)) == found


def test_a_refusal_waits_the_longest_and_no_pause_is_shorter_than_was_asked():
    assert pause(a_push(), final=True) >= limits.PUSH_BACKOFF_MAX_MS * 3 // 4
    assert pause(a_push(), asked_ms=10**7) == 10**7
    assert pause(a_push(), asked_ms=1) > 1


def test_a_task_goes_back_under_its_claim_with_a_reason_of_bounded_length():
    push = a_push(epoch=4)
    back = given_back(push, Again(reason="x" * 10**6), NOW)
    assert (back.id, back.worker, back.epoch, back.now_ms) == ("task", "push:q", 4, NOW)
    assert len(back.reason) == limits.WEBHOOK_EXCERPT_CHARS
    assert push.holder.worker == replace(push, failed=9).holder.worker == "push:q"
