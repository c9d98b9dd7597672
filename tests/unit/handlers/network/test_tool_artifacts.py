"""tool_call with bytes: answers that are kept, and bodies that were."""

from __future__ import annotations

import hashlib

import pytest

from detent.handlers.artifacts import artifact_of, key_of
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.calling import INSTANCE
from tests.unit.handlers.network.calling_out import called
from tests.unit.handlers.network.loopback import Loopback, answer

pytestmark = pytest.mark.req("SEQ-HND-1")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
OTHER = "0190a6d2-0000-7000-8000-00000000000f"


class Shelf:
    """Artifacts in memory; instances are acme's but for one."""

    def __init__(self, *bodies):
        self.kept = {}
        for body in bodies:
            self.keep(INSTANCE, hashlib.sha256(body).hexdigest(), body)

    def keep(self, instance, digest, body):
        self.kept[instance, digest] = body

    def read(self, tenant, instance, digest):
        mine = tenant == "acme" and instance != OTHER
        return self.kept.get((instance, digest)) if mine else None


class Values:
    """One credential."""

    def value(self, _id, _tenant):
        return "sk_very_secret_value"


def ended(params, said=None, shelf=None, **options):
    with Loopback(lambda _: answer(200, {"ok": 1}) if said is None else said) as server:
        given = {"url": f"{server.url}/tool", **params}
        outcome = called("tool_call", given, artifacts=shelf or Shelf(), **options)
        return outcome, server.seen


# answers -----------------------------------------------------------------------------------------


def test_an_answer_is_kept_as_it_is_and_told_by_a_reference():
    shelf = Shelf()
    said = answer(201, PNG, ["Content-Type: image/png"])
    outcome, [seen] = ended({"response_as": "artifact", "tool_name": "draw"}, said, shelf)
    assert isinstance(outcome, EffectApplied)
    digest = hashlib.sha256(PNG).hexdigest()
    assert outcome.result == {
        "tool_name": "draw",
        "status": 201,
        "artifact": {
            "id": digest,
            "instance_id": INSTANCE,
            "key": f"{INSTANCE}/{digest}",
            "content_type": "image/png",
            "size": len(PNG),
            "uri": f"artifact://{INSTANCE}/{digest}",
        },
    }
    assert shelf.kept == {(INSTANCE, digest): PNG}
    assert seen.headers["accept"] == "*/*"


@pytest.mark.parametrize("status", [404, 503])
def test_an_answer_that_is_a_failure_is_not_kept(status):
    shelf = Shelf()
    outcome, _ = ended({"response_as": "artifact"}, answer(status, b"no"), shelf)
    assert isinstance(outcome, EffectFailed)
    assert shelf.kept == {}


def test_an_empty_answer_is_an_artifact_without_bytes():
    outcome, _ = ended({"response_as": "artifact"}, answer(204))
    assert outcome.result["artifact"]["size"] == 0
    assert outcome.result["artifact"]["content_type"] == "application/octet-stream"


def test_secrets_that_come_back_among_the_bytes_are_not_kept():
    shelf = Shelf()
    key = "sk_very_secret_value"
    said = answer(200, b"\x00key=" + key.encode() + b" token=abcdefgh-token\xff")
    params = {
        "response_as": "artifact",
        "headers": {"Authorization": "Bearer abcdefgh-token"},
        "arguments": {"key": "credentials://card"},
    }
    outcome, [seen] = ended(params, said, shelf, secrets=Values())
    assert key.encode() in seen.body
    (body,) = shelf.kept.values()
    assert body == b"\x00key=[REDACTED] token=[REDACTED]\xff"
    assert outcome.result["artifact"]["size"] == len(body)


def test_without_a_place_for_them_no_bytes_are_taken():
    with Loopback(lambda _: answer(200, PNG)) as server:
        outcome = called("tool_call", {"url": server.url, "response_as": "artifact"})
    assert (outcome.retryable, outcome.details["code"]) == (False, "request.invalid")


# bodies ------------------------------------------------------------------------------------------

REF = {"key": f"{INSTANCE}/{hashlib.sha256(PNG).hexdigest()}", "content_type": "image/png"}


@pytest.mark.parametrize(
    "given", [REF, {"artifact": REF}, REF["key"], f"artifact://{REF['key']}"], ids=str
)
def test_the_bytes_of_an_artifact_are_the_body(given):
    outcome, [seen] = ended({"body_artifact": given, "method": "PUT"}, shelf=Shelf(PNG))
    assert outcome.result == {"tool_name": "unknown", "result": {"ok": 1}, "status": 200}
    assert (seen.method, seen.body) == ("PUT", PNG)
    known = "image/png" if isinstance(given, dict) else "application/octet-stream"
    assert seen.headers["content-type"] == known
    assert seen.headers["idempotency-key"] == "k1"


def test_the_bytes_of_an_artifact_are_a_file_in_a_form():
    upload = {"mode": "multipart", "field": "pic", "filename": 'a"b\r\n.png'}
    outcome, [seen] = ended({"body_artifact": REF, "upload": upload}, shelf=Shelf(PNG))
    assert isinstance(outcome, EffectApplied)
    kind, _, boundary = seen.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    head = b'Content-Disposition: form-data; name="pic"; filename="a%22b%0D%0A.png"\r\n'
    expected = b"--%b\r\n%bContent-Type: image/png\r\n\r\n%b\r\n--%b--\r\n"
    mark = boundary.encode()
    assert seen.body == expected % (mark, head, PNG, mark)
    _, [again] = ended({"body_artifact": REF, "upload": upload}, shelf=Shelf(PNG))
    assert again.body == seen.body, "a repetition is the same request"


def test_a_boundary_is_never_among_the_bytes():
    _, [seen] = ended({"body_artifact": REF, "upload": {"mode": "multipart"}}, shelf=Shelf(PNG))
    mark = seen.headers["content-type"].partition("; boundary=")[2].encode()
    tricky = b"\r\n--" + mark + b"\r\n"
    ref = {"key": f"{INSTANCE}/{hashlib.sha256(tricky).hexdigest()}"}
    shelf = Shelf(tricky)
    _, [seen] = ended({"body_artifact": ref, "upload": {"mode": "multipart"}}, shelf=shelf)
    other = seen.headers["content-type"].partition("; boundary=")[2].encode()
    assert other != mark
    assert seen.body.count(b"--" + other) == 2


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"body_artifact": "x"}, "request.invalid"),
        ({"body_artifact": {}}, "request.invalid"),
        ({"body_artifact": {"artifact": 3}}, "request.invalid"),
        ({"body_artifact": {"key": "../etc/passwd"}}, "request.invalid"),
        ({"body_artifact": {**REF, "content_type": "a\r\nb: c"}}, "request.invalid"),
        ({"body_artifact": REF, "method": "GET"}, "request.invalid"),
        ({"body_artifact": REF, "arguments": {"a": 1}}, "request.invalid"),
        ({"body_artifact": REF, "upload": {"mode": "ftp"}}, "request.invalid"),
        ({"body_artifact": REF, "upload": {"name": "x"}}, "request.invalid"),
        ({"upload": {"mode": "multipart"}}, "request.invalid"),
        ({"body_artifact": {"key": f"{INSTANCE}/{'0' * 64}"}}, "artifact.not_found"),
        ({"body_artifact": {"key": REF["key"].replace(INSTANCE, OTHER)}}, "artifact.not_found"),
    ],
    ids=str,
)
def test_a_body_that_is_none_of_ours_is_final_and_nothing_is_called(params, code):
    shelf = Shelf(PNG)
    shelf.keep(OTHER, hashlib.sha256(PNG).hexdigest(), PNG)
    outcome, seen = ended(params, shelf=shelf)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details["code"]) == (False, code)
    assert seen == []


def test_a_reference_says_where_its_bytes_are():
    made = artifact_of(INSTANCE, PNG, "")
    assert key_of({"artifact": {"key": made.key}}) == (INSTANCE, made.id)
    assert key_of(made.uri) == (INSTANCE, made.id)
    assert key_of([made.key]) is None
