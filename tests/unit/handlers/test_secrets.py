"""Secrets on their way to a handler, and what is left of them when it has ended."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import msgspec
import pytest

from detent.handlers import Applied, Failed, Registry, allow, handler, policy
from detent.handlers.secrets import REDACTED, hide, resolve
from detent.model import limits
from detent.model.errors import RequestError, StoreError
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed, EffectReconciled
from tests.unit.handlers.calling import order_for, perform

pytestmark = pytest.mark.req("CORE-EFF-1")
KNOWN = {
    "key": "s3cret-value",
    "login": '{"user": "robert", "password": "pa55 wörd"}',
    "n": "123456",
}


class Known:
    """The secrets of tenant acme; it notes who asks."""

    def __init__(self, error=None):
        self.error = error
        self.asked = []

    def value(self, id, tenant):
        self.asked.append((id, tenant))
        if self.error is not None:
            raise self.error
        if tenant != "acme" or id not in KNOWN:
            raise RequestError("credential.unusable", f"there is no credential {id!r}")
        return KNOWN[id]


def run(function, request, secrets=None, **fields):
    registry = Registry(secrets or Known())
    registry.collect([function])
    name = function.detent_name
    fields.setdefault("doubt", registry.specs()[name].doubt)
    return perform(registry, order_for(name, request, **fields))


def find(id):
    return KNOWN[id]


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("credentials://key", "s3cret-value"),
        ("credentials://login", {"user": "robert", "password": "pa55 wörd"}),
        ("credentials://login/password", "pa55 wörd"),
        ("credentials://n", 123456),
        ("Bearer credentials://key", "Bearer s3cret-value"),
        ("Bearer credentials://login/password", "Bearer pa55 wörd"),
        ("bearer credentials://key", "bearer credentials://key"),
        ("Bearer  credentials://key", "Bearer  credentials://key"),
        ("Bearer see credentials://key", "Bearer see credentials://key"),
        ("see credentials://key", "see credentials://key"),
        ("Credentials://key", "Credentials://key"),
        (
            ["credentials://key", {"a": "credentials://key"}],
            ["s3cret-value", {"a": "s3cret-value"}],
        ),
        ({"credentials://key": 1}, {"credentials://key": 1}),
        (None, None),
    ],
)
def test_a_string_that_is_a_reference_becomes_the_value_and_nothing_else_does(given, value):
    assert resolve(given, find).params == value


def test_what_was_handed_out_is_told_so_that_it_can_be_hidden():
    found = resolve({"a": "credentials://login", "b": "credentials://key"}, find)
    assert set(found.secrets) == {KNOWN["login"], "robert", "pa55 wörd", "s3cret-value"}
    assert resolve({"a": "credentials://login/user"}, find).secrets == ("robert",)
    assert resolve({"a": 1}, find) == ({"a": 1}, ())


@pytest.mark.parametrize(
    "wrong",
    [
        "credentials://",
        "credentials:///key",
        "credentials://key/",
        "credentials://key/field",
        "credentials://login/nothing",
        "credentials://a b",
        "credentials://" + "x" * 256,
        "credentials://key\n",
        "Bearer credentials://",
        "Bearer credentials://login",
        "Bearer credentials://n",
        "Bearer credentials://key/field",
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(wrong):
    with pytest.raises(RequestError) as refused:
        resolve([wrong], find)
    assert refused.value.code == "credential.unusable"
    assert "s3cret" not in refused.value.message


def test_a_step_names_only_so_many_credentials():
    many = [f"credentials://c{n}" for n in range(limits.SECRETS_PER_STEP)]
    assert len(resolve([*many, *many], str).params) == 200
    with pytest.raises(RequestError, match="at most 100"):
        resolve([*many, "credentials://one-more"], str)


def test_a_handler_is_called_with_the_value_for_its_tenant():
    seen, secrets = [], Known()

    @handler
    def plain(key, n):
        seen.append((key, n))

    @handler
    async def waits(key, n):
        seen.append((key, n))

    for function in (plain, waits):
        outcome = run(function, {"key": "credentials://key", "n": 1}, secrets)
        assert isinstance(outcome, EffectApplied)
    assert seen == [("s3cret-value", 1)] * 2
    assert secrets.asked == [("key", "acme")] * 2


def test_annotations_are_checked_against_the_value():
    @handler
    def takes(login: dict[str, str]):
        return sorted(login)

    assert run(takes, {"login": "credentials://login"}).result == ["password", "user"]
    outcome = run(takes, {"login": "credentials://key"})
    assert isinstance(outcome, EffectFailed)
    assert "s3cret" not in outcome.message


@pytest.mark.parametrize("reference", ["credentials://nothing", "credentials://login/nothing"])
def test_a_credential_that_is_missing_fails_the_step_for_good_and_nothing_is_called(reference):
    @handler
    def never(key):
        raise AssertionError

    outcome = run(never, {"key": reference})
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (False, {"code": "credential.unusable"})


def test_without_anybody_who_knows_credentials_a_reference_fails_the_step():
    @handler
    def never(key):
        raise AssertionError

    registry = Registry()
    registry.collect([never])
    outcome = perform(registry, order_for("never", {"key": "credentials://key"}))
    assert (outcome.retryable, outcome.details["code"]) == (False, "credential.unusable")


def test_a_store_in_trouble_is_no_final_failure_and_no_doubt_either():
    @handler(on_doubt="once")
    def never(key):
        raise AssertionError

    trouble = Known(StoreError("store.unavailable", "the disk is gone"))
    outcome = run(never, {"key": "credentials://key"}, trouble)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (True, {"code": "store.unavailable"})
    again = run(never, {"key": "credentials://key"}, trouble, dispatch=1)
    assert isinstance(again, EffectDoubted)


def test_a_token_that_may_be_refreshed_later_is_no_final_failure_either():
    @handler
    def never(key):
        raise AssertionError

    late = Known(RequestError("credential.refresh", "status 503; it is tried again", again=True))
    outcome = run(never, {"key": "Bearer credentials://key"}, late)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (True, {"code": "credential.refresh"})
    refused = Known(RequestError("credential.refresh", "status 400; enter a new one"))
    assert run(never, {"key": "credentials://key"}, refused).retryable is False


def test_a_result_is_stored_without_the_secrets_that_went_in():
    @handler
    def echoes(key, login, n):
        return {
            "key": key,
            "text": f"Authorization: Bearer {key}!",
            key: [login["password"], login["user"], "other"],
            "basic": base64.b64encode(key.encode()).decode(),
            "url": f"https://x/?k={quote(login['password'])}",
            "json": json.dumps(login),
            "repr": repr(login),
            "n": n,
            "m": 7,
        }

    request = {
        "key": "credentials://key",
        "login": "credentials://login",
        "n": "credentials://n",
    }
    result = run(echoes, request).result
    assert result["key"] == REDACTED
    assert result["text"] == f"Authorization: Bearer {REDACTED}!"
    assert result[REDACTED] == [REDACTED, REDACTED, "other"]
    assert (result["n"], result["m"]) == (REDACTED, 7)
    text = msgspec.json.encode(result).decode()
    for secret in ("s3cret", "robert", "pa55", "123456", "czNjcmV0"):
        assert secret not in text


def test_a_result_without_secrets_keeps_its_very_bytes():
    @handler
    def answers(key):
        return {"big": 2**62, "float": 1.50, "text": "ü"}

    assert run(answers, {"key": "credentials://key"}).result == {
        "big": 2**62,
        "float": 1.5,
        "text": "ü",
    }


@pytest.mark.parametrize("doubt", ["repeatable", "once"])
@pytest.mark.parametrize("form", ["async", "plain"])
def test_an_error_is_stored_without_the_secrets(doubt, form):
    @handler("plain", on_doubt=doubt)
    def plain(key):
        raise ValueError(f"cannot use {key!r}")

    @handler("async", on_doubt=doubt)
    async def waits(key):
        raise ValueError(f"cannot use {key!r}")

    outcome = run(plain if form == "plain" else waits, {"key": "credentials://key"})
    text = msgspec.json.encode(outcome).decode()
    assert "s3cret" not in text
    assert REDACTED in text


def test_the_details_of_a_failure_are_stored_without_the_secrets():
    @handler
    def fails(key):
        raise Failed(f"no {key}", details={"sent": key, "status": 401}, code="denied")

    outcome = run(fails, {"key": "credentials://key"})
    assert outcome.details == {"code": "denied", "sent": REDACTED, "status": 401}
    assert outcome.message == f"no {REDACTED}"


@pytest.mark.parametrize("pad", range(1_985, 2_002, 2))
def test_a_secret_that_a_cut_left_half_of_is_hidden_too(pad):
    @handler
    def fails(key):
        raise Failed("x" * pad + key + "y" * 100)

    message = run(fails, {"key": "credentials://key"}).message
    assert "s3cr" not in message


def test_a_short_secret_is_hidden_only_where_it_stands_alone():
    assert hide({"a": "on", "b": "on and on", "n": 1}, ("on", "1")) == {
        "a": REDACTED,
        "b": "on and on",
        "n": 1,
    }


def test_a_reconcile_function_gets_the_value_and_its_answer_is_hidden():
    def asks(key):
        return Applied({"key": key})

    @handler(on_doubt="queryable", reconcile=asks)
    def pays(key): ...

    outcome = run(pays, {"key": "credentials://key"}, mode="reconcile", doubt="queryable")
    assert isinstance(outcome, EffectReconciled)
    assert outcome.result == {"key": REDACTED}


def test_a_policy_sees_the_reference_and_never_the_value():
    seen, secrets = [], Known()

    @policy
    def looks(params):
        seen.append(params)
        return allow()

    run(looks, {"params": {"key": "credentials://key"}}, secrets)
    assert seen == [{"key": "credentials://key"}]
    assert secrets.asked == []


def test_a_dry_run_shows_the_reference():
    @handler
    def never(key):
        raise AssertionError

    outcome = run(never, {"key": "credentials://key"}, dry_run=True)
    assert outcome.result["would"] == {"key": "credentials://key"}
    missing = run(never, {"key": "credentials://nothing"}, dry_run=True)
    assert isinstance(missing, EffectFailed)


def test_params_without_a_reference_ask_nobody():
    secrets = Known()

    @handler
    def plain(text):
        return text

    assert run(plain, {"text": "see credentials://key"}, secrets).result == "see credentials://key"
    assert secrets.asked == []
