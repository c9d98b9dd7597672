"""API keys: shown once, known by their hash, and what their capabilities open."""

from __future__ import annotations

import datetime as dt
import re

import msgspec
import pytest

from detent.model import limits
from detent.service.api_keys import (
    KeyUses,
    NewApiKey,
    Principal,
    allowed,
    create_api_key,
    list_api_keys,
    revoke_api_key,
    same_secret,
    verify_api_key,
    write_use,
)
from tests.unit.service.shelf import NOW, a_store, refusal

pytestmark = pytest.mark.req("SEQ-OPS-1")
SOON = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


@pytest.fixture
def store():
    store = a_store()
    yield store
    store.close()


def create(store, tenant="acme", now_ms=NOW, **fields):
    return create_api_key(store, NewApiKey(tenant_id=tenant, **fields), now_ms)


def test_a_key_is_shown_once_and_then_only_its_hash_is_kept(store):
    made = create(store, name="ci", expires_at=SOON)
    assert re.fullmatch(r"ak_[0-9a-f]{32}", made.id)
    assert made.secret.startswith("sk_")
    wire = msgspec.json.decode(msgspec.json.encode(made))
    assert wire["capabilities"] == ["operator"]
    assert (wire["expires_at"], wire["created_at"]) == (
        "2026-01-02T00:00:00Z",
        "2026-01-01T00:00:00Z",
    )
    assert made.secret.encode() not in store.record("api_key", made.id).body
    assert made.secret not in repr(made)
    listed = msgspec.to_builtins(list_api_keys(store, "acme"))
    assert "secret" not in listed[0]
    assert (listed[0]["last_used_at"], listed[0]["revoked"]) == (None, False)
    assert msgspec.to_builtins(create(store))["expires_at"] is None


def test_a_secret_lets_its_tenant_in_with_its_capabilities(store):
    made = create(store, capabilities=("worker", "auditor", "worker"))
    assert verify_api_key(store, made.secret, NOW) == Principal(
        made.id, "acme", ("worker", "auditor")
    )


@pytest.mark.parametrize(
    "wrong", ["", "sk_", "nope", None, 7, "sk_" + "0" * 32 + "_" + "x" * 43, "\ud800"]
)
def test_what_is_no_secret_lets_nobody_in(store, wrong):
    create(store)
    refusal("api_key.refused", verify_api_key, store, wrong, NOW)


def test_another_secret_of_a_known_key_lets_nobody_in(store):
    made, other = create(store), create(store)
    end = "A" if made.secret[-1] != "A" else "B"
    mixed = made.secret[:36] + other.secret[36:]
    for wrong in (made.secret[:-1] + end, mixed, made.secret + "x", made.secret.upper()):
        refusal("api_key.refused", verify_api_key, store, wrong, NOW)


def test_a_revoked_or_expired_key_lets_nobody_in_and_stays_listed(store):
    gone, old = create(store), create(store, expires_at=SOON)
    revoke_api_key(store, None, gone.id, NOW)
    refusal("api_key.refused", verify_api_key, store, gone.secret, NOW)
    at = int(SOON.timestamp() * 1000)
    assert verify_api_key(store, old.secret, at - 1).key == old.id
    refusal("api_key.refused", verify_api_key, store, old.secret, at)
    assert [each.revoked for each in list_api_keys(store, "acme")] == [True, False]


def test_a_key_of_another_tenant_is_neither_listed_nor_revoked(store):
    own, foreign = create(store), create(store, "beta")
    assert [each.id for each in list_api_keys(store, "acme")] == [own.id]
    assert [each.id for each in list_api_keys(store, None)] == [own.id, foreign.id]
    for id in (foreign.id, "ak_nothing", "a\x00b", None):
        refusal("api_key.not_found", revoke_api_key, store, "acme", id, NOW)
    assert verify_api_key(store, foreign.secret, NOW).tenant == "beta"


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("request.invalid", {"tenant": ""}),
        ("request.invalid", {"tenant": "x" * 256}),
        ("request.invalid", {"name": "x" * 256}),
        ("api_key.invalid", {"capabilities": ("root",)}),
        ("api_key.invalid", {"expires_at": "tomorrow"}),
    ],
)
def test_a_field_that_is_wrong_is_refused(store, code, fields):
    refusal(code, create, store, **fields)
    assert list_api_keys(store, None) == []


def test_a_tenant_has_only_so_many(store, monkeypatch):
    monkeypatch.setattr(limits, "API_KEYS_PER_TENANT", 1)
    create(store)
    refusal("record.limit", create, store)


OPEN = {
    "operator": [("POST", "/instances"), ("DELETE", "/api/v1/pools/1")],
    "worker": [("POST", "/workers/tasks/poll"), ("GET", "/api/v1/handlers"), ("GET", "/workers")],
    "device": [("POST", "/mobile/register")],
    "publisher": [
        ("POST", "/sequences"),
        ("GET", "/sequences.json"),
        ("PUT", "/releases/1"),
        ("POST", "/plugins"),
    ],
    "approver": [("GET", "/approvals"), ("POST", "/api/v1/instances/i-1/signals")],
    "auditor": [("GET", "/instances/i-1"), ("HEAD", "/api/v1/credentials"), ("get", "/changes")],
}
SHUT = {
    "operator": [],
    "worker": [("GET", "/instances"), ("POST", "/sequences"), ("GET", "/api/v1/api/v1/workers")],
    "device": [("GET", "/instances")],
    "publisher": [("POST", "/instances"), ("GET", "/workers")],
    "approver": [
        ("POST", "/instances/i-1/retry"),
        ("POST", "/instances/i-1/x/signals"),
        ("POST", "/instances//signals"),
        ("GET", "/instances/i-1"),
    ],
    "auditor": [("POST", "/instances"), ("DELETE", "/sequences/1"), ("OPTIONS", "/instances")],
}


@pytest.mark.parametrize("capability", OPEN)
def test_a_capability_opens_its_routes_and_no_others(capability):
    assert all(allowed([capability], *route) for route in OPEN[capability])
    assert not any(allowed([capability], *route) for route in SHUT[capability])


def test_capabilities_are_a_union_and_none_opens_nothing():
    assert allowed(["worker", "auditor"], "GET", "/instances")
    assert allowed(["worker", "auditor"], "POST", "/workers/tasks/poll")
    assert not allowed(["worker", "auditor"], "POST", "/instances")
    assert not allowed([], "GET", "/instances")
    assert not allowed(["unknown"], "GET", "/instances")


def test_the_last_use_is_written_at_most_once_a_minute(store):
    made, uses = create(store), KeyUses()
    due = [uses.note(made.id, NOW + ms) for ms in (0, 1, 59_999, 60_000, 60_001, 120_000)]
    assert due == [True, False, False, True, False, True]
    write_use(store, made.id, NOW + 5)
    write_use(store, made.id, NOW + 1)
    write_use(store, "ak_gone", NOW)
    used = list_api_keys(store, "acme")[0].last_used_at
    assert used == dt.datetime(2026, 1, 1, 0, 0, 0, 5_000, dt.UTC)


def test_only_so_many_uses_are_remembered(monkeypatch):
    monkeypatch.setattr(limits, "API_KEYS_TRACKED", 2)
    uses = KeyUses()
    for key in ("a", "b", "a", "c"):
        uses.note(key, NOW)
    assert [uses.note(key, NOW) for key in ("a", "c", "b")] == [False, False, True]


def test_the_root_key_is_compared_as_a_whole_and_no_key_is_nobodys():
    assert same_secret("r00t", "r00t")
    assert not any(same_secret(wrong, "r00t") for wrong in ("r00", "", None, 7, "R00T"))
    assert not same_secret("", "")
