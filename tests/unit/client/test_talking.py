"""A talk with a server, held by hand: what is sent, when it is sent again, when it is given up."""

from __future__ import annotations

import pytest

from detent.client.talking import Ask, Heard, Manners, Pause, Sent, Trouble, ask
from detent.model import limits
from detent.model.errors import DetentError

HIGH, LOW = b"\xff", b"\x00"
WELL = Heard(status=200, headers={}, body=b"7")
BUSY = Heard(status=503, headers={}, body=b"")
BROKEN = Trouble(kind="broken", text="reset")


def manners(chance=HIGH, **settings):
    return Manners(url="http://there", chance=lambda count: chance * count, **settings)


def talk(answers, what=None, how=None):
    """Hold a talk with these answers; every step of it, and its result or error."""
    steps, answers = [], list(answers)
    held = ask(how or manners(), what or Ask(method="GET", path="/x", gives=int))
    given = None
    try:
        while True:
            step = held.send(given)
            steps.append(step)
            given = answers.pop(0) if isinstance(step, Sent) else None
    except StopIteration as end:
        return steps, end.value
    except DetentError as error:
        return steps, error.code


def pauses(steps):
    return [step.seconds for step in steps if isinstance(step, Pause)]


def test_an_answer_ends_the_talk():
    steps, found = talk([WELL])
    assert ([type(step) for step in steps], found) == ([Sent], 7)
    assert steps[0].path == "/api/v1/x"


def test_pauses_double_up_to_a_limit_and_are_spread_by_chance():
    long = manners(attempts=9, timeout_ms=10**6)
    most = pauses(talk([BUSY] * 9, how=long)[0])
    least = pauses(talk([BUSY] * 9, how=manners(LOW, attempts=9, timeout_ms=10**6))[0])
    assert most == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], rel=0.01)
    assert least == pytest.approx([each / 2 for each in most], rel=0.01)


def test_attempts_are_counted_and_the_last_refusal_is_told():
    steps, code = talk([BUSY] * 9)
    assert sum(isinstance(step, Sent) for step in steps) == limits.CLIENT_ATTEMPTS
    assert code == "server.unreachable"


def test_a_talk_is_not_longer_than_its_timeout():
    steps, code = talk([BUSY] * 9, how=manners(attempts=9, timeout_ms=50))
    assert (len(steps), code) == (1, "server.unreachable")


def test_a_server_says_how_long_to_wait():
    told = Heard(status=429, headers={"retry-after": "3"}, body=b"")
    steps, found = talk([told, WELL])
    assert (pauses(steps), found) == ([3.0], 7)


@pytest.mark.parametrize("said", ["soon", "-1", "9" * 30, "٣"])
def test_a_wait_that_is_no_number_is_not_listened_to(said):
    told = Heard(status=503, headers={"retry-after": said}, body=b"")
    assert pauses(talk([told, WELL])[0]) == pytest.approx([0.1], rel=0.01)


AGAIN = {
    ("GET", "broken"): True,
    ("POST", "broken"): True,
    ("PUT", "broken"): True,
    ("DELETE", "broken"): False,
    ("DELETE", "unreached"): True,
    ("POST", "late"): False,
    ("GET", "late"): False,
}


@pytest.mark.parametrize(("method", "kind"), AGAIN)
def test_only_what_cannot_happen_twice_is_tried_again(method, kind):
    what = Ask(method=method, path="/x", gives=int)
    steps, _end = talk([Trouble(kind=kind, text=""), WELL], what)
    assert (len(steps) > 1) is AGAIN[method, kind]


def test_a_post_has_one_key_for_all_its_attempts_and_others_have_none():
    steps, _end = talk([BROKEN, BUSY, WELL], Ask(method="POST", path="/x", gives=int))
    keys = [step.headers["idempotency-key"] for step in steps if isinstance(step, Sent)]
    assert (len(keys), len(set(keys))) == (3, 1)
    (got,), _end = talk([WELL])
    assert "idempotency-key" not in got.headers


def test_a_post_without_a_key_may_act_twice_and_so_is_not_tried_again():
    what = Ask(method="POST", path="/x", gives=int, keyed=False)
    (sent,), code = talk([BROKEN, WELL], what)
    assert ("idempotency-key" in sent.headers, code) == (False, "server.unreachable")
    assert talk([Trouble(kind="unreached", text=""), BUSY, WELL], what)[1] == 7


def test_the_first_attempt_that_still_runs_is_waited_for():
    body = b'{"error": "conflict: not answered yet", "code": "request.in_progress"}'
    running = Heard(status=409, headers={}, body=body)
    assert talk([running, WELL], Ask(method="POST", path="/x", gives=int))[1] == 7


def test_a_tenant_of_the_call_counts_more_than_the_clients():
    ours = manners(tenant="ours")
    for named, sent in ((None, "ours"), ("theirs", "theirs")):
        what = Ask(method="GET", path="/x", gives=int, tenant=named)
        (step,), _end = talk([WELL], what, ours)
        assert step.headers["x-tenant-id"] == sent
    (step,), _end = talk([WELL])
    assert "x-tenant-id" not in step.headers
